//go:build unix

package e2e

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

func TestSyncExitCodes(t *testing.T) {
	t.Parallel()
	w := plainWorld(t)
	w.look("", 3, "sync", "--wait")
	c, path := shipped(w, 90, 5)
	tests := []struct {
		name  string
		fault fault
		code  int
	}{
		{"delivered", nil, 0},
		{"the server hangs", onPost(func(*http.Request) *verdict { return &verdict{hang: true} }), 1},
		{"the server asks to wait", refuse(429, "Retry-After", "4"), 1},
		{"the server can't be reached", unreachable, 4},
		{"the server refuses the key", refuse(401), 5},
	}
	for _, test := range tests {
		w.gate.set(test.fault)
		w.add(path, c.line(900))
		limit := "3s"
		if test.code == 0 {
			limit = "8m"
		}
		eventually(t, fmt.Sprintf("%s: exit %d", test.name, test.code), time.Minute, func() bool {
			out := w.ccship("sync", "--wait", "--timeout", limit) // too short at first, where the daemon is slow to ask
			return out.code == test.code
		})
		w.gate.set(nil)
		w.gate.srv.CloseClientConnections() // ends what hangs
		w.sync()
	}
	w.same(c.session, path)
}

func TestStatus(t *testing.T) {
	t.Parallel()
	w := plainWorld(t)
	out := w.ccship("status", "--json")
	var gone map[string]any
	if err := json.Unmarshal([]byte(out.stdout), &gone); err != nil || out.code != 3 || gone["running"] != false || gone["schema_version"] != 1.0 {
		t.Errorf("without a daemon: exit %d, %q", out.code, out.stdout)
	}
	if out := w.ccship("status"); out.code != 3 || strings.TrimSpace(out.stdout+out.stderr) == "" {
		t.Errorf("without a daemon: exit %d, %q %q", out.code, out.stdout, out.stderr)
	}
	shipped(w, 91, 25)
	s := w.status()
	if s.SchemaVersion != 1 || !s.Running || s.Files.Tracked != 1 || s.Outbox.Entries != 0 || s.Sent.Entries != 25 || s.Sent.Bytes == 0 {
		t.Errorf("status is %+v", s)
	}
	if out := w.ccship("status"); out.code != 0 || strings.Contains(out.stdout, "\x1b") {
		t.Errorf("status: exit %d, %q (no colours without a terminal)", out.code, out.stdout)
	}
	w.look("", 1, "run")
	if !w.status().Running {
		t.Error("the second run ended the first")
	}
	w.d.MustStop(w.t)
	if _, err := os.Stat(w.socket()); !os.IsNotExist(err) {
		t.Errorf("the socket is left behind: %v", err)
	}
}

// TestUp is the first thing a person types: server, import, viewer, and everything again without sending a line twice.
func TestUp(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.env = []string{"CCSHIP_STATE_DIR=", "CCSHIP_SOCKET=", "CCSHIP_API_KEY_FILE="} // up keeps its own
	c := newConversation(92, h.cwd())
	h.add(h.path("-work-shop", c.session+".jsonl"), c.even(40, 4000))
	address := kit.Address(t)
	kit.Program(t, "ccship-server") // which up starts
	up := h.launch(kit.Program(t, "ccship"), "up", "--listen", address)
	said := func(words string) func() bool {
		return func() bool {
			if up.Ended() {
				t.Fatalf("up ended with %d:\n%s", up.Code(), up.Log)
			}
			return strings.Contains(up.Log.String(), words)
		}
	}
	eventually(t, "up says where the viewer is", 60*time.Second, said("http://"+address))
	eventually(t, "the import is done", 60*time.Second, func() bool { return h.ccship("sync", "--wait").code == 0 })
	h.look("", 0, "verify")
	h.entriesSent(40)
	up.MustStop(t)
	conn, err := net.Dial("tcp", address)
	if err == nil {
		_ = conn.Close()
		t.Error("the server still listens after up has ended")
	}
	up = h.launch(kit.Program(t, "ccship"), "up", "--listen", address)
	eventually(t, "up runs again", 60*time.Second, func() bool { return h.ccship("sync", "--wait").code == 0 })
	h.entriesSent(0)
	up.MustStop(t)
	taken, err := net.Listen("tcp", address)
	must(t, err)
	defer taken.Close()
	h.look("ccship: ", 1, "up", "--listen", address)
}

// TestBadInput: one clear line, a hint, the documented exit code, and nothing is lost.
func TestBadInput(t *testing.T) {
	tests := []struct {
		name  string
		setup func(h *home)
		code  int    // -1: 1 or 2, for it is both a bad setting and a failure
		words string // in the line
	}{
		{"unknown key", func(h *home) { h.configure("server_ulr = \"http://127.0.0.1:1\"\n") }, 2, "server_url"},
		{"not TOML", func(h *home) { h.configure("server_url = \n") }, 2, "config.toml"},
		{"bad URL", func(h *home) { h.url = "ftp://example.org" }, 2, "server_url"},
		{"no URL at all", func(h *home) { h.url = "://" }, 2, "server_url"},
		{"key that others can read", func(h *home) { must(h.t, os.Chmod(h.keyFile(), 0o644)) }, 2, "chmod 600"},
		{"missing key file", func(h *home) { must(h.t, os.Remove(h.keyFile())) }, 2, "key"},
		{"empty key file", func(h *home) { must(h.t, os.WriteFile(h.keyFile(), nil, 0o600)) }, 2, "key"},
		{"socket path too long", func(h *home) { h.env = append(h.env, "CCSHIP_SOCKET="+filepath.Join(h.dir, strings.Repeat("x", 120))) }, -1, "bytes"},
		{"foreign file at the socket path", func(h *home) {
			must(h.t, os.MkdirAll(filepath.Dir(h.socket()), 0o700))
			must(h.t, os.WriteFile(h.socket(), []byte("precious"), 0o600))
		}, -1, "socket"},
		{"configuration that can't be read", func(h *home) { must(h.t, os.Remove(h.config())); must(h.t, os.Mkdir(h.config(), 0o700)) }, 2, "config"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			h := newHome(t)
			h.url = "http://127.0.0.1:9"
			test.setup(h)
			p := h.launch(kit.Program(t, "ccship"), "run")
			eventually(t, "ccship run ends", time.Minute, p.Ended)
			said := p.Log.String()
			if code := p.Code(); code != test.code && (test.code != -1 || (code != 1 && code != 2)) {
				t.Errorf("exit %d, want %d", code, test.code)
			}
			if !strings.Contains(said, "ccship: ") || !strings.Contains(said, "hint: ") || !strings.Contains(strings.ToLower(said), test.words) {
				t.Errorf("it said %q; want one line, a hint, and %q", said, test.words)
			}
			if n := strings.Count(strings.TrimSpace(said), "\n"); n > 1 {
				t.Errorf("%d lines, want the line and its hint:\n%s", n+1, said)
			}
			if data, err := os.ReadFile(h.socket()); test.name == "foreign file at the socket path" && (err != nil || string(data) != "precious") {
				t.Errorf("the foreign file is gone or changed: %v", err)
			}
		})
	}
	t.Run("a root that can't be read", func(t *testing.T) {
		t.Parallel()
		h := newHome(t)
		must(t, os.Remove(h.projects()))
		must(t, os.WriteFile(h.projects(), []byte("a file, no folder"), 0o600))
		h.daemon()
		h.until("status names the root", func(s status) bool { return len(s.Watch.Unread) > 0 })
	})
	t.Run("the server's port is taken", func(t *testing.T) {
		t.Parallel()
		h := newHome(t)
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		must(t, err)
		defer listener.Close()
		out := h.runProgram(kit.Program(t, "ccship-server"), "serve", "--listen", listener.Addr().String(), "--store", "sqlite:"+filepath.Join(h.dir, "s.db"))
		if out.code != 1 || !strings.Contains(out.stderr, listener.Addr().String()) {
			t.Errorf("exit %d, %q", out.code, out.stderr)
		}
	})
	t.Run("usage", func(t *testing.T) {
		t.Parallel()
		h := newHome(t)
		for _, args := range [][]string{{"no-such-verb"}, {"status", "--no-such-flag"}, {"sync", "--timeout", "soon"}} {
			h.look("", 2, args...)
		}
	})
}
