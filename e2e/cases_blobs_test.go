//go:build unix

package e2e

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

// besides is what the server lists of the files next to a session: name → content.
func (w *world) besides(session string) map[string][]byte {
	w.t.Helper()
	code, body := w.exact.get("/api/sessions/" + url.PathEscape(session) + "/blobs")
	if code == http.StatusNotFound {
		return nil
	}
	var list []struct{ SHA256, Name string }
	err := json.Unmarshal(body, &list)
	kit.Require(w.t, code == 200 && err == nil, "blobs of %s: %d %v %s", session, code, err, body)
	have := map[string][]byte{}
	for _, b := range list {
		code, body := w.exact.get("/api/blobs/" + b.SHA256)
		kit.Require(w.t, code == 200, "blob %s: %d %s", b.Name, code, body)
		have[b.Name] = body
	}
	return have
}

// spilled writes a session with files next to it, and answers them by name.
func spilled(w *world, seed uint64, large int) (c *conversation, folder string, files map[string][]byte) {
	c = newConversation(seed, w.cwd())
	w.add(w.path("-work-shop", c.session+".jsonl"), c.even(20, 1500))
	folder = filepath.Join(w.projects(), "-work-shop", c.session)
	files = map[string][]byte{
		"tool-results/toolu_0001.txt":                       []byte("spilled\ntext\n"),
		"tool-results/toolu_0002.txt":                       {},
		"tool-results/large.txt":                            bytes.Repeat([]byte("0123456789abcde\n"), large/16),
		"subagents/agent-a1.meta.json":                      []byte(`{"agentType":"reviewer"}`),
		"subagents/workflows/wf_1/agent-a2.meta.json":       []byte(`{"agentType":"planner"}`),
		"tool-results/toolu_0003 mit Wörtern & Zeichen.txt": []byte("odd name"),
	}
	for name, content := range files {
		path := filepath.Join(folder, filepath.FromSlash(name))
		must(w.t, os.MkdirAll(filepath.Dir(path), 0o700))
		must(w.t, os.WriteFile(path, content, 0o600))
	}
	return c, folder, files
}

func (w *world) haveBlobs(session string, files map[string][]byte) {
	w.t.Helper()
	have := w.besides(session)
	for name, content := range files {
		got, ok := have[name]
		kit.Check(w.t, ok && bytes.Equal(got, content), "%s: %d bytes on the server (%v), want %d", name, len(got), ok, len(content))
	}
	kit.Check(w.t, len(have) == len(files), "the server has %d files, want %d", len(have), len(files))
}

// TestFilesBesideReachTheServer holds every file next to a transcript against what the server has, on a server that
// takes them and on one that does not.
func TestFilesBesideReachTheServer(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		c, folder, files := spilled(w, 401, 3<<20)
		w.startAndSync()
		if w.exact != nil {
			w.haveBlobs(c.session, files)
		}
		r, code := w.report()
		kit.Check(t, code == 0 && r.Equal, "exit %d, report %+v", code, r)
		if w.exact == nil {
			return
		}
		// A file that comes with a line, in a session that goes on.
		files["tool-results/toolu_0004.txt"] = []byte("later")
		must(t, os.WriteFile(filepath.Join(folder, "tool-results", "toolu_0004.txt"), []byte("later"), 0o600))
		w.add(folder+".jsonl", c.even(1, 1500))
		eventually(t, "the new file arrives", time.Second, func() bool {
			return bytes.Equal(w.besides(c.session)["tool-results/toolu_0004.txt"], []byte("later"))
		})
		w.haveBlobs(c.session, files)
	})
}

// TestKilledInABlob kills the daemon again and again while a large file is on its way.
func TestKilledInABlob(t *testing.T) {
	w := aloneWorld(t)
	var chunks, killed atomic.Int64
	reached := make(chan struct{}, 1)
	w.gate.set(func(r *http.Request) *verdict {
		if r.Method == http.MethodPut && chunks.Add(1)%3 == 0 && killed.Load() < 3 {
			select {
			case reached <- struct{}{}:
			default:
			}
			return &verdict{hang: true} // until the kill: what follows must not arrive before it
		}
		return nil
	})
	c, _, files := spilled(w, 402, 24<<20)
	w.start()
	for range 3 {
		select {
		case <-reached:
		case <-time.After(10 * time.Minute):
			t.Fatalf("no chunk arrived: %d so far", chunks.Load())
		}
		w.d.Kill()
		killed.Add(1)
		w.start()
	}
	w.sync()
	w.haveBlobs(c.session, files)
	w.verified()
	// What was durable on the server is not sent again, but for the chunk in flight at each kill.
	n := chunks.Load()
	kit.Check(t, n <= 24+6+3*2, "%d chunks for a file of 24", n)
}

// TestBlobCap leaves files out that are larger than the cap, and says so.
func TestBlobCap(t *testing.T) {
	w := aloneWorld(t)
	c, folder, _ := spilled(w, 403, 1<<20)
	w.startAndSync()
	w.verified()
	must(t, os.Rename(filepath.Join(folder, "tool-results", "toolu_0001.txt"), filepath.Join(w.dir, "away.txt")))
	w.verified()
	w.configure(string(w.read(w.config())) + "\nblob_cap = \"4KiB\"\n")
	must(t, os.Rename(filepath.Join(w.dir, "away.txt"), filepath.Join(folder, "tool-results", "toolu_9999.txt")))
	w.d.Kill()
	w.startAndSync()
	out := w.ccship("verify", "--json")
	kit.Check(t, out.code == 0 && strings.Contains(out.stdout, `"too_large":1`),
		"verify: exit %d\n%s%s", out.code, out.stdout, out.stderr)
	_, ok := w.besides(c.session)["tool-results/toolu_9999.txt"]
	kit.Check(t, ok, "a file of a new name was not sent")
}
