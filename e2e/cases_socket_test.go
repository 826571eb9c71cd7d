//go:build unix

package e2e

import (
	"bytes"
	"context"
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
	url, err := s.proc.Listening()
	must(s.t, err)
	if url != "unix://"+s.at {
		s.t.Errorf("it listens on %s", url)
	}
}

// raw is a session's transcript as the server has it.
func (s *socketServer) raw(session string) []byte {
	s.t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", s.at)
	}}}
	r, err := http.NewRequest(http.MethodGet, "http://localhost/api/sessions/"+session+"/raw", nil)
	must(s.t, err)
	r.Header.Set("X-API-Key", s.key)
	answer, err := client.Do(r)
	must(s.t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	must(s.t, err)
	return text
}

// TestSocket: server, daemon and commands over a Unix socket. It is this machine, so nothing is masked; only its user can
// connect, and another who listens there later gets neither key nor lines.
func TestSocket(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	s := newSocketServer(h)
	h.writeKey(s.key)
	h.url = "unix://" + s.at
	w := &world{home: h}
	if info, err := os.Stat(s.at); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the socket: %v %v", info, err)
	}
	c := newConversation(41, h.cwd())
	path := h.path("-work-shop", c.session+".jsonl")
	h.add(path, c.even(5, 500))
	h.add(path, []byte(`{"type":"user","message":{"role":"user","content":"ghp_abcdEFGH1234abcdEFGH1234abcdEFGH1234"}}`+"\n"))
	w.startAndSync()
	if got := s.raw(c.session); !bytes.Equal(got, h.read(path)) {
		t.Errorf("the server has other bytes: %s", firstDifference(got, h.read(path)))
	}
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
	if second.code == 0 || !strings.Contains(second.stderr, "a server listens there") {
		t.Errorf("a second server: %+v", second)
	}

	s.proc.Kill()
	s.start() // where the socket of the one that was killed still is
	h.add(path, c.even(2, 500))
	w.sync()
	w.verified()
	socketThief(t, w, s, path, c.even(2, 500))
}

// socketThief listens on the server's socket after it has ended, until it is back.
func socketThief(t *testing.T, w *world, s *socketServer, path string, more []byte) {
	t.Helper()
	s.proc.MustStop(t)
	thief := newTakenPort(t, http.NotFoundHandler())
	thief.give(thief.noting(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"success":true}`) }))
	_ = os.Remove(s.at)
	ln, err := net.Listen("unix", s.at)
	must(t, err)
	go func() { _ = http.Serve(ln, thief.Config.Handler) }()
	w.add(path, more)
	w.until("status says that the server does not prove itself", func(s status) bool {
		return len(s.Servers) > 0 && strings.Contains(s.Servers[0].Detail, "does not prove")
	})
	for _, args := range [][]string{{"list"}, {"search", "x"}, {"doctor"}} {
		_ = w.ccship(args...)
	}
	must(t, ln.Close())
	if log := w.d.Log.String(); strings.Contains(log, ".unix.invalid") || !strings.Contains(log, "server=unix://"+s.at) {
		t.Errorf("the log names the server otherwise:\n%s", log)
	}
	thief.mu.Lock()
	if thief.keys > 0 || thief.bodies > 0 || len(thief.impostor) == 0 {
		t.Errorf("the thief was shown %d keys and %d bytes: %q", thief.keys, thief.bodies, thief.impostor)
	}
	thief.mu.Unlock()
	s.start()
	w.sync()
	w.verified()
}
