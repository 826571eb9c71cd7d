package doctor

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ccship/ccship/daemon"
	"github.com/ccship/ccship/daemon/config"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/internal/service"
	"github.com/ccship/ccship/protocol"
)

// patience is how long anything may take on the slowest machine, and hangs how much longer than on a quick one a test
// waits for what hangs on purpose.
const patience, hangs = 2 * time.Minute, 5 * time.Second

// world is a home with transcripts, a server, and if it is started a real daemon between them.
type world struct {
	t      *testing.T
	home   string
	root   string
	web    *httptest.Server
	answer atomic.Pointer[http.HandlerFunc] // what the server does
	told   manager
	opts   Options
}

// newWorld is one in which no problems found, but that no daemon runs.
func newWorld(t *testing.T) *world {
	t.Helper()
	home := kit.Try(os.MkdirTemp("", "ccdoc")).Must(t) // short: the socket lies in it
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	home = kit.Try(filepath.EvalSymlinks(home)).Must(t)
	w := &world{t: t, home: home, root: filepath.Join(home, ".claude", "projects")}
	w.serve(takeAll)
	w.web = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { (*w.answer.Load())(rw, r) }))
	t.Cleanup(w.web.Close)
	w.write(".claude/projects/-p/a.jsonl", `{"type":"user","cwd":"/p"}`+"\n", 0)
	w.write(".config/ccship/config.toml", fmt.Sprintf("server_url = %q\nhead_room = \"1\"\n", w.web.URL), 0)
	w.write(".config/ccship/api_key", "k3y\n", 0)
	self := kit.Try(os.Executable()).Must(t)
	lingers := true
	w.told.st = service.Status{
		Manager: service.SystemdUser, Installed: true, Enabled: true, Running: true, PID: os.Getpid(),
		Binary: self, UnitPath: "/home/me/.config/systemd/user/ccship.service", Linger: &lingers,
	}
	w.told.current = true
	w.opts = Options{Service: &w.told, Version: "1.2.3", Program: self, Days: 7, Env: w.env, patience: patience}
	w.load()
	return w
}

// env is an environment that knows the home.
func (w *world) env(name string) (string, bool) {
	if name == "HOME" || name == "USERPROFILE" {
		return w.home, true
	}
	return "", false
}

// load reads the configuration as it is now.
func (w *world) load() {
	w.t.Helper()
	c := kit.Try(config.Load(nil, w.env)).Must(w.t)
	c.Log, c.Version = slog.New(slog.DiscardHandler), w.opts.Version
	w.opts.Config = c
	w.opts.Sockets = []string{c.Socket, filepath.Join(c.StateDir, "up", "ccship.sock")}
	w.opts.ForeignSocket = w.opts.Sockets[1]
}

// write makes a file below the home, last changed so long ago.
func (w *world) write(name, text string, age time.Duration) string {
	w.t.Helper()
	path := filepath.Join(w.home, filepath.FromSlash(name))
	kit.WriteFile(w.t, path, text)
	when := time.Now().Add(-age)
	kit.Must(w.t, os.Chtimes(path, when, when))
	return path
}

func (w *world) serve(h http.HandlerFunc) { w.answer.Store(&h) }

// synced is a world whose daemon has nothing left to do.
func synced(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.start()
	w.sync()
	return w
}

// start runs the daemon until the test ends.
func (w *world) start() { w.startAt(w.opts.Config) }

func (w *world) startAt(cfg config.Config) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- daemon.Run(ctx, cfg) }()
	w.t.Cleanup(func() {
		cancel()
		kit.Err(w.t, "Run", nil)(<-ended)
	})
	client := control.Dial(cfg.Socket)
	w.until("the daemon answers", func() bool {
		_, err := client.Status(ctx)
		return err == nil
	})
}

// must ends the test on the error of a call whose answer does not matter.
func (w *world) must(_ any, err error) {
	w.t.Helper()
	kit.Must(w.t, err)
}

// sync waits until everything is delivered.
func (w *world) sync() {
	w.t.Helper()
	r, err := control.Dial(w.opts.Config.Socket).Sync(context.Background(), control.SyncRequest{Wait: true, Timeout: patience.String()})
	kit.Require(w.t, err == nil && r.Done, "sync: %+v %v", r, err)
}

// status waits until the daemon says what is wanted.
func (w *world) status(what string, so func(control.Status) bool) {
	w.t.Helper()
	client := control.Dial(w.opts.Config.Socket)
	w.until(what, func() bool {
		s, err := client.Status(context.Background())
		return err == nil && so(s)
	})
}

func (w *world) until(what string, so func() bool) {
	w.t.Helper()
	kit.Eventually(w.t, what, 10*time.Second, so)
}

func (w *world) examine() Report {
	w.t.Helper()
	return Examine(context.Background(), w.opts)
}

// of are the findings of one check that are not well.
func of(r Report, id string) (found []Finding) {
	for _, f := range r.Findings {
		if f.ID == id && f.Level != OK {
			found = append(found, f)
		}
	}
	return found
}

// wants finds exactly one finding of a check, and holds it to what it should say.
func (w *world) wants(r Report, id string, level Level, text, fix string) Finding {
	w.t.Helper()
	found := of(r, id)
	kit.Require(w.t, len(found) == 1, "%d findings of %s: %+v\nall: %+v", len(found), id, found, r.Findings)
	f := found[0]
	kit.Check(w.t, f.Level == level && strings.Contains(f.Text, text) && strings.Contains(f.Fix, fix) &&
		(fix != "" || f.Fix == ""),
		"%+v\nwant %s %q, fixed by %q", f, level, text, fix)
	return f
}

// silent wants nothing wrong found by a check.
func (w *world) silent(r Report, id string) {
	w.t.Helper()
	found := of(r, id)
	kit.Check(w.t, len(found) == 0, "%s: %+v", id, found)
}

// fixed wants that ApplyFixes fixes a finding, that the finding is gone then, and that nothing is left to fix.
func (w *world) fixed(r Report, id string) {
	w.t.Helper()
	asked := false
	for _, f := range ApplyFixes(context.Background(), r) {
		asked = asked || f.ID == id
		kit.Check(w.t, f.Done, "not fixed: %+v", f)
	}
	kit.Check(w.t, asked, "nothing was done about %s", id)
	again := w.examine()
	w.silent(again, id)
	more := ApplyFixes(context.Background(), again)
	kit.Check(w.t, len(more) == 0, "a second time: %+v", more)
}

// manager is a service manager that says what it is asked to say.
type manager struct {
	st      service.Status
	err     error
	current bool
	calls   []string
	do      func(verb string) error // what start, restart and install come to; nil: nothing
}

func (m *manager) Status(context.Context) (service.Status, error) { return m.st, m.err }
func (m *manager) Current(service.Status) (bool, error)           { return m.current, nil }
func (m *manager) Start(context.Context) error                    { return m.did("start") }
func (m *manager) Restart(context.Context) error                  { return m.did("restart") }

func (m *manager) Install(context.Context, bool) (service.Outcome, error) {
	return service.Outcome{}, m.did("install")
}

func (m *manager) did(verb string) error {
	m.calls = append(m.calls, verb)
	if m.do == nil {
		return nil
	}
	return m.do(verb)
}

// takeAll is a server that speaks the extension, and takes everything from those who know the key.
func takeAll(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Ccship-Protocol", "1")
	if r.URL.Path == protocol.KeyProofPath {
		hash, nonce := sha256.Sum256([]byte("k3y")), r.URL.Query().Get("nonce")
		a := protocol.KeyProof{Store: "s", Proof: protocol.ServerProof(hash, nonce, "s")}
		if !protocol.EqualProofs(r.URL.Query().Get("proof"), protocol.ClientProof(hash, nonce)) {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, `{"error":{"code":"`+protocol.CodeUnknownKey+`"}}`)
			return
		}
		_ = json.NewEncoder(w).Encode(a)
		return
	}
	takePlain(w, r)
}

// takePlain is a server that does not.
func takePlain(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/healthz" {
		_, _ = io.WriteString(w, `{"version":"9.8"}`)
		return
	}
	if r.Header.Get("X-API-Key") != "k3y" {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	_, _ = io.Copy(io.Discard, r.Body)
	_ = json.NewEncoder(w).Encode(map[string]any{"success": true, "entries_stored": 1})
}

func refuse(status int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Ccship-Protocol", "1")
		if r.URL.Path != "/healthz" {
			w.WriteHeader(status)
		}
		if r.URL.Path == protocol.KeyProofPath && status == http.StatusUnauthorized {
			_, _ = io.WriteString(w, `{"error":{"code":"`+protocol.CodeUnknownKey+`"}}`)
		}
	}
}

// frozen listens on a socket and never answers.
func frozen(t *testing.T, path string) {
	t.Helper()
	kit.Must(t, os.MkdirAll(filepath.Dir(path), 0o700))
	ln := kit.Try(net.Listen("unix", path)).Must(t)
	t.Cleanup(func() { _ = ln.Close() })
	kit.Must(t, os.Chmod(path, 0o600))
}

// modes skips a test where files have none, or where they bind nobody.
func modes(t *testing.T) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("modes are not kept here")
	}
}
