//go:build unix

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
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
	w := alonePlain(t)
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
	w := alonePlain(t)
	out := w.ccship("status", "--json")
	var gone map[string]any
	if err := json.Unmarshal([]byte(out.stdout), &gone); err != nil || out.code != 3 || gone["running"] != false || gone["schema_version"] != 1.0 {
		t.Errorf("without a daemon: exit %d, %q", out.code, out.stdout)
	}
	out = w.ccship("status")
	kit.Check(t, out.code == 3 && strings.TrimSpace(out.stdout+out.stderr) != "", "without a daemon: exit %d, %q %q", out.code, out.stdout, out.stderr)
	shipped(w, 91, 25)
	s := w.status()
	kit.Check(t, s.SchemaVersion == 1 && s.Running && s.Files.Tracked == 1 && s.Outbox.Entries == 0 && s.Sent.Entries == 25 && s.Sent.Bytes != 0,
		"status is %+v", s)
	out = w.ccship("status")
	kit.Check(t, out.code == 0 && !strings.Contains(out.stdout, "\x1b"), "status: exit %d, %q (no colours without a terminal)", out.code, out.stdout)
	w.look("", 1, "run")
	kit.Check(t, w.status().Running, "the second run ended the first")
	w.d.MustStop(w.t)
	_, err := os.Stat(w.socket())
	kit.Check(t, os.IsNotExist(err), "the socket is left behind: %v", err)
}

// TestUp is the first thing a person types: server, import, viewer, and everything again without sending a line twice.
func TestUp(t *testing.T) {
	h := aloneHome(t)
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
	upAgain(h, "http://"+address+"/login?ticket=")
	up.MustStop(t)
	h.look("", 3, "status")
	conn, err := net.Dial("tcp", address)
	if err == nil {
		_ = conn.Close()
		t.Error("the server still listens after up has ended")
	}
	up = h.launch(kit.Program(t, "ccship"), "up", "--listen", address)
	eventually(t, "up runs again", 60*time.Second, func() bool { return h.ccship("sync", "--wait").code == 0 })
	h.entriesSent(0)
	up.MustStop(t)
	taken := kit.Try(net.Listen("tcp", address)).Must(t)
	defer taken.Close()
	h.look("ccship: ", 1, "up", "--listen", address)
}

// upAgain wants a second up, and open, to print another link into the viewer of the first, whose files are its user's.
func upAgain(h *home, link string) {
	h.t.Helper()
	for command, want := range map[string]string{"up": "see it: " + link, "open": link} {
		if out := h.ccship(command); out.code != 0 || !strings.HasPrefix(out.stdout, want) || strings.Count(out.stdout, "\n") != 1 {
			h.t.Errorf("%s beside up: exit %d\n%s%s", command, out.code, out.stdout, out.stderr)
		}
	}
	for _, name := range []string{"api_key", "listen", "ccship.log", "server.log", "ccship.sock"} {
		info, err := os.Stat(filepath.Join(h.dir, "xdg", "state", "ccship", "up", name))
		if must(h.t, err); info.Mode().Perm() != 0o600 {
			h.t.Errorf("%s has mode %v, want 0600", name, info.Mode())
		}
	}
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
			h := aloneHome(t)
			h.url = "http://127.0.0.1:9"
			test.setup(h)
			p := h.launch(kit.Program(t, "ccship"), "run")
			eventually(t, "ccship run ends", time.Minute, p.Ended)
			said := p.Log.String()
			code := p.Code()
			kit.Check(t, code == test.code || test.code == -1 && (code == 1 || code == 2), "exit %d, want %d", code, test.code)
			kit.Check(t, strings.Contains(said, "ccship: ") && strings.Contains(said, "hint: ") && strings.Contains(strings.ToLower(said), test.words),
				"it said %q; want one line, a hint, and %q", said, test.words)
			n := strings.Count(strings.TrimSpace(said), "\n")
			kit.Check(t, n <= 1, "%d lines, want the line and its hint:\n%s", n+1, said)
			data, err := os.ReadFile(h.socket())
			kit.Check(t, test.name != "foreign file at the socket path" || err == nil && string(data) == "precious", "the foreign file is gone or changed: %v", err)
		})
	}
	t.Run("a root that can't be read", func(t *testing.T) {
		h := aloneHome(t)
		must(t, os.Remove(h.projects()))
		must(t, os.WriteFile(h.projects(), []byte("a file, no folder"), 0o600))
		h.daemon()
		h.until("status names the root", func(s status) bool { return len(s.Watch.Unread) > 0 })
	})
	t.Run("the server's port is taken", func(t *testing.T) {
		h := aloneHome(t)
		listener := kit.Try(net.Listen("tcp", "127.0.0.1:0")).Must(t)
		defer listener.Close()
		out := h.runProgram(kit.Program(t, "ccship-server"), "serve", "--listen", listener.Addr().String(), "--store", "sqlite:"+filepath.Join(h.dir, "s.db"))
		kit.Check(t, out.code == 1 && strings.Contains(out.stderr, listener.Addr().String()),
			"exit %d, %q", out.code, out.stderr)
	})
	t.Run("usage", func(t *testing.T) {
		h := aloneHome(t)
		for _, args := range [][]string{{"no-such-verb"}, {"status", "--no-such-flag"}, {"sync", "--timeout", "soon"}} {
			h.look("", 2, args...)
		}
	})
}

// TestNewServerVersion: a server refuses a line that the next version of it takes. The dead letter is sent again by
// itself, and not before: the same version would refuse it again.
func TestNewServerVersion(t *testing.T) {
	w := aloneWorld(t)
	next := func(version string, flags ...string) {
		w.exact.proc.MustStop(t)
		w.exact.version, w.exact.flags = version, flags
		w.exact.start() // the gate asks for its address each time
	}
	next("1.0.0", "--max-body", "256KiB")
	c, path := w.conversation(3100)
	w.add(path, append(c.even(5, 2000), c.even(1, 400<<10)...))
	w.start()
	line := func() { w.add(path, c.even(1, 2000)) }
	dead := func() int64 { return w.status().Outbox.Dead }
	eventually(t, "the line is a dead letter", 2*time.Minute, func() bool { line(); return dead() == 1 })
	next("1.0.0")
	before := w.sent()
	line()
	w.sync()
	if w.sent() == before || dead() != 1 {
		t.Errorf("%d dead letters with the same version", dead())
	}
	next("1.0.1")
	line()
	w.sync()
	kit.Equal(t, "dead letters after the new version", dead(), 0)
	w.proven(c.session, path)
}

// socketServer is a ccship-server on a Unix socket.
type socketServer struct {
	*home
	at, key string
	proc    *kit.Process
}

func newSocketServer(h *home) *socketServer {
	h.t.Helper()
	dir, err := os.MkdirTemp("", "ccs") // short enough for every system
	must(h.t, err)
	h.t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s := &socketServer{home: h, at: filepath.Join(dir, "s.sock")}
	s.key = strings.TrimSpace(h.runProgram(kit.Program(h.t, "ccship-server"), "key", "create", "--name", "e2e", "--store", s.store()).stdout)
	s.start()
	return s
}

func (s *socketServer) store() string { return "sqlite:" + filepath.Join(s.dir, "socket.db") }

func (s *socketServer) start() {
	s.t.Helper()
	s.proc = s.launch(kit.Program(s.t, "ccship-server"), "serve", "--listen", "unix://"+s.at, "--store", s.store(), "--public-url", "https://ccship.example")
	url := kit.Try(s.proc.Listening()).Must(s.t)
	kit.Check(s.t, url == "unix://"+s.at, "it listens on %s", url)
}

// raw is a session's transcript as the server has it.
func (s *socketServer) raw(session string) []byte {
	s.t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", s.at)
	}}}
	r := kit.Try(http.NewRequest(http.MethodGet, "http://localhost/api/sessions/"+session+"/raw", nil)).Must(s.t)
	r.Header.Set("X-API-Key", s.key)
	answer := kit.Try(client.Do(r)).Must(s.t)
	defer answer.Body.Close()
	return kit.Try(io.ReadAll(answer.Body)).Must(s.t)
}

// TestSocket: server, daemon and commands over a Unix socket. It is this machine, so nothing is masked; only its user can
// connect, and another who listens there later gets neither key nor lines.
func TestSocket(t *testing.T) {
	h := aloneHome(t)
	s := newSocketServer(h)
	h.writeKey(s.key)
	h.url = "unix://" + s.at
	w := &world{home: h}
	info, err := os.Stat(s.at)
	kit.Check(t, err == nil && info.Mode().Perm() == 0o600, "the socket: %v %v", info, err)
	c := newConversation(41, h.cwd())
	path := h.path("-work-shop", c.session+".jsonl")
	h.add(path, c.even(5, 500))
	h.add(path, []byte(`{"type":"user","message":{"role":"user","content":"ghp_abcdEFGH1234abcdEFGH1234abcdEFGH1234"}}`+"\n"))
	w.startAndSync()
	got := s.raw(c.session)
	kit.Check(t, bytes.Equal(got, h.read(path)), "the server has other bytes: %s", firstDifference(got, h.read(path)))
	w.verified()
	for args, want := range map[string]string{
		"list": c.session[:8], "doctor --json": "proves that it is on this machine", "status": "unix://" + s.at,
	} {
		eventually(t, args+" says "+want, time.Minute, func() bool { // doctor waits for a slow daemon for seconds only
			out := h.ccship(strings.Fields(args)...)
			return out.code == 0 && strings.Contains(out.stdout, want)
		})
	}
	second := h.runProgram(kit.Program(t, "ccship-server"), "serve", "--listen", "unix://"+s.at, "--store", s.store())
	kit.Check(t, second.code != 0 && strings.Contains(second.stderr, "a server listens there"),
		"a second server: %+v", second)

	s.proc.Kill()
	s.start() // where the socket of the one that was killed still is
	h.add(path, c.even(2, 500))
	w.syncVerified()
	socketThief(t, w, s, path, c.even(2, 500))
}

// socketThief listens on the server's socket after it has ended, until it is back.
func socketThief(t *testing.T, w *world, s *socketServer, path string, more []byte) {
	t.Helper()
	s.proc.MustStop(t)
	thief := newTakenPort(t, http.NotFoundHandler())
	thief.give(thief.noting(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"success":true}`) }))
	_ = os.Remove(s.at)
	ln := kit.Try(net.Listen("unix", s.at)).Must(t)
	go func() { _ = http.Serve(ln, thief.Config.Handler) }()
	w.add(path, more)
	w.until("status says that the server does not prove itself", func(s status) bool {
		return len(s.Servers) > 0 && strings.Contains(s.Servers[0].Detail, "does not prove")
	})
	for _, args := range [][]string{{"list"}, {"search", "x"}, {"doctor"}} {
		_ = w.ccship(args...)
	}
	must(t, ln.Close())
	log := w.d.Log.String()
	kit.Check(t, !strings.Contains(log, ".unix.invalid") && strings.Contains(log, "server=unix://"+s.at), "the log names the server otherwise:\n%s", log)
	thief.mu.Lock()
	kit.Check(t, thief.keys <= 0 && thief.bodies <= 0 && len(thief.impostor) != 0,
		"the thief was shown %d keys and %d bytes: %q", thief.keys, thief.bodies, thief.impostor)
	thief.mu.Unlock()
	s.start()
	w.syncVerified()
}
