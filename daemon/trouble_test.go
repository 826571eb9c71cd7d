package daemon

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/e2e/kit"
)

// tracked writes a file below a project's .codetracker folder.
func tracked(t *testing.T, project, name, text string) string {
	t.Helper()
	path := filepath.Join(project, ".codetracker", name)
	kit.WriteFile(t, path, text)
	return path
}

// TestVerifyUnfinished is never equal when the sync before it ran out of time, and names what is missing. What is
// written while the server is asked belongs to no comparison.
func TestVerifyUnfinished(t *testing.T) {
	w := newWorld(t)
	w.startWith("-p/"+sessionA+".jsonl", records("/home/kim/shop", 0, 5))
	w.server.with(func() { w.server.busy = true })
	w.write("-p/"+sessionA+".jsonl", records("/home/kim/shop", 5, 105))
	w.until("they wait", func() bool { return w.status().Outbox.Entries == 100 })
	w.server.with(func() {
		w.server.asked = sync.OnceFunc(func() { w.write("-p/"+sessionA+".jsonl", records("/home/kim/shop", 105, 110)) })
	})
	r := kit.Try(w.client.Verify(t.Context(), control.VerifyRequest{Timeout: "100ms"}, nil)).Must(t)
	kit.Require(t, !r.Equal && r.Incomplete != "" && len(r.Differences) == 1, "verify with 100 lines behind: %+v", r)
	kit.Same(t, "missing", cmp.Diff([]control.Range{{First: 5, Last: 104}}, r.Differences[0].Missing))
}

// TestVerifyWrittenAnew: a file that is removed, cut or rewritten while the server is asked ends no comparison.
func TestVerifyWrittenAnew(t *testing.T) {
	for name, change := range map[string]func(path string) error{
		"removed":   os.Remove,
		"cut":       func(path string) error { return os.Truncate(path, int64(len(records("/home/kim/shop", 0, 5)))) },
		"rewritten": func(path string) error { return os.WriteFile(path, []byte(strings.Repeat("{}\n", 9000)), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.startWith("-p/"+sessionA+".jsonl", records("/home/kim/shop", 0, 5))
			w.server.with(func() { w.server.busy = true })
			path := w.write("-p/"+sessionA+".jsonl", records("/home/kim/shop", 5, 105))
			w.write("-p/"+sessionB+".jsonl", records("/home/kim/shop", 0, 5))
			w.until("they wait", func() bool { return w.status().Outbox.Entries == 105 })
			w.server.with(func() { w.server.asked = sync.OnceFunc(func() { kit.Must(t, change(path)) }) })
			r := kit.Try(w.client.Verify(t.Context(), control.VerifyRequest{Timeout: "100ms"}, nil)).Must(t)
			kit.Check(t, !r.Equal && slices.ContainsFunc(r.Differences, func(d control.FileDifference) bool {
				return d.SessionID == sessionB && len(d.Missing) == 1
			}), "the other file: %+v", r)
		})
	}
}

// TestBadProjectServer keeps one project's unusable server from holding up the others.
func TestBadProjectServer(t *testing.T) {
	w := newWorld(t)
	project := t.TempDir()
	config := tracked(t, project, "config.json", `{"server_url":"http://127.0.0.1:1/?tenant=1"}`)
	w.cfg.TrustedProjects = []string{project}
	w.write("-bad/"+sessionA+".jsonl", records(project, 0, 3))
	w.write("-good/"+sessionB+".jsonl", records("/home/kim/shop", 0, 8))
	r := w.deliver()
	kit.Check(t, r.Done, "sync: %+v", r)
	kit.Equal(t, "the other project's lines: bytes", w.server.newest(sessionB), records("/home/kim/shop", 0, 8))
	if !w.told("server_url") {
		t.Errorf("status does not tell: %+v", w.status().Advice)
	}
	kit.Must(t, os.WriteFile(config, []byte(`{}`), 0o600))
	w.until("the notice is taken back", func() bool {
		w.write("-bad/"+sessionA+".jsonl", records(project, 9, 10))
		return !w.told("server_url")
	})
}

func (w *world) told(word string) bool {
	for _, n := range w.status().Advice {
		if strings.Contains(n.Text, word) {
			return true
		}
	}
	return false
}

// TestKeyFollowsNoRedirect shows the key to nobody but the server it is for, verify included.
func TestKeyFollowsNoRedirect(t *testing.T) {
	var shown atomic.Int64
	thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-API-Key") != "" {
			shown.Add(1)
		}
	}))
	defer thief.Close()
	w := newWorld(t)
	var astray atomic.Bool
	web := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if astray.Load() && (strings.HasSuffix(r.URL.Path, "/digest") || r.URL.Path == "/api/digests") {
			http.Redirect(rw, r, thief.URL, http.StatusTemporaryRedirect)
			return
		}
		w.server.ServeHTTP(rw, r)
	}))
	defer web.Close()
	w.cfg.ServerURL, w.cfg.APIKeyFile = web.URL, filepath.Join(t.TempDir(), "key")
	kit.Must(t, os.WriteFile(w.cfg.APIKeyFile, []byte("secret\n"), 0o600))
	w.startWith("-p/"+sessionA+".jsonl", records("/home/kim/shop", 0, 3))
	astray.Store(true)
	r, err := w.client.Verify(t.Context(), control.VerifyRequest{Timeout: patience.String()}, nil)
	kit.Check(t, err != nil || !r.Equal, "verify by way of a redirect: %+v", r)
	kit.Check(t, shown.Load() <= 0, "the key was shown to another server")
}

// TestDeletedOptOut does not let an opted-out file that is gone stand for one that cannot be delivered.
func TestDeletedOptOut(t *testing.T) {
	w := newWorld(t)
	project := t.TempDir()
	tracked(t, project, "config.json", `{"conversation_tracking":{"enabled":false}}`)
	path := w.write("-p/"+sessionA+".jsonl", records(project, 0, 3))
	w.deliver()
	kit.Equal(t, "files excluded", w.status().Files.Excluded, 1)
	kit.Must(t, os.Remove(path))
	w.sync()
	kit.Equal(t, "files excluded after the only one was deleted", w.status().Files.Excluded, 0)
}

// TestMetrics holds the text format to one HELP and TYPE a name.
func TestMetrics(t *testing.T) {
	w := newWorld(t)
	w.startWith("-p/"+sessionA+".jsonl", records("/home/kim/shop", 0, 3))
	w.until("the entries are counted", func() bool { return w.status().Sent.Entries == 3 }) // a moment after they left the outbox
	socket := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", w.cfg.Socket)
	}}}
	res := kit.Try(socket.Get("http://ccship/metrics")).Must(t)
	defer res.Body.Close()
	body := kit.Try(io.ReadAll(res.Body)).Must(t)
	text := string(body)
	for _, want := range []string{"ccship_sent_entries_total 3", fmt.Sprintf("ccship_server_ok{server=%q} 1", w.cfg.ServerURL)} {
		kit.Check(t, strings.Contains(text, want), "no %q in\n%s", want, text)
	}
}
