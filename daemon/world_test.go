package daemon

import (
	"context"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ccship/ccship/daemon/config"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/e2e/kit"
)

// patience is how long anything may take on the slowest machine.
const patience = 2 * time.Minute

// world is a daemon on real files, with a real state and a server in this process.
type world struct {
	t      *testing.T
	cfg    config.Config
	server *memServer
	root   string
	client *control.Client
	stop   func()
}

// newWorld makes a home with a projects folder and a server, for a parallel test; start runs the daemon.
func newWorld(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	return newSerialWorld(t)
}

// newSerialWorld is newWorld for a test that has the process to itself, and for each world of one that has several.
func newSerialWorld(t *testing.T) *world {
	t.Helper()
	dir := kit.Try(os.MkdirTemp("", "ccship")).Must(t) // short: the socket lies in it
	t.Cleanup(func() { os.RemoveAll(dir) })
	w := &world{t: t, server: newMemServer(), root: filepath.Join(dir, "claude", "projects")}
	kit.Must(t, os.MkdirAll(w.root, 0o700))
	web := httptest.NewServer(w.server)
	t.Cleanup(web.Close)
	cfg := kit.Try(config.Load(map[string]string{
		"config": "", "server_url": web.URL, "state_dir": filepath.Join(dir, "state"),
		"socket": filepath.Join(dir, "s"), "roots": w.root, "head_room": "1",
	}, kit.Only(config.HomeVariable, dir))).Must(t)
	cfg.Log = slog.New(slog.DiscardHandler)
	w.cfg = cfg
	return w
}

func (w *world) start() {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, w.cfg) }()
	stopped := false
	w.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		kit.Err(w.t, "Run", nil)(<-ended)
	}
	w.t.Cleanup(w.stop)
	w.client = control.Dial(w.cfg.Socket)
	w.client.Patient = true
	w.until("the daemon answers", func() bool {
		_, err := w.client.Status(ctx)
		return err == nil
	})
}

// deliver starts the daemon and syncs.
func (w *world) deliver() control.SyncResult {
	w.t.Helper()
	w.start()
	return w.sync()
}

// must ends the test on the error of a call whose answer does not matter.
func (w *world) must(_ any, err error) {
	w.t.Helper()
	kit.Must(w.t, err)
}

// until waits for something to be so.
func (w *world) until(what string, so func() bool) {
	w.t.Helper()
	kit.Eventually(w.t, what, 10*time.Second, so)
}

// write appends text to a file below the projects folder.
func (w *world) write(name, text string) string {
	w.t.Helper()
	path := filepath.Join(w.root, name)
	kit.Must(w.t, os.MkdirAll(filepath.Dir(path), 0o700))
	kit.AppendTranscript(w.t, path, text)
	return path
}

// rewrite replaces a file's content in place.
func (w *world) rewrite(name, text string) {
	w.t.Helper()
	kit.Must(w.t, os.WriteFile(filepath.Join(w.root, name), []byte(text), 0o600))
}

// send writes and syncs.
func (w *world) send(name, text string) {
	w.t.Helper()
	w.write(name, text)
	w.sync()
}

// startWith writes, starts the daemon and syncs.
func (w *world) startWith(name, text string) {
	w.t.Helper()
	w.write(name, text)
	w.deliver()
}

// restart stops the daemon and starts it again.
func (w *world) restart() {
	w.t.Helper()
	w.stop()
	w.start()
}

func (w *world) sync() control.SyncResult {
	w.t.Helper()
	return kit.Try(w.client.Sync(context.Background(), control.SyncRequest{Wait: true, Timeout: patience.String()})).Must(w.t)
}

func (w *world) verify() control.VerifyReport {
	w.t.Helper()
	return kit.Try(w.client.Verify(context.Background(), control.VerifyRequest{Timeout: patience.String()}, nil)).Must(w.t)
}

func (w *world) status() control.Status {
	w.t.Helper()
	return kit.Try(w.client.Status(context.Background())).Must(w.t)
}

func TestOneDaemonPerState(t *testing.T) {
	w := newWorld(t)
	w.start()
	kit.Err(t, "a second Run", ErrAlreadyRunning)(Run(context.Background(), w.cfg))
}

// TestStoppedWhileItOpens: a daemon that is stopped before it has opened its state ends well.
func TestStoppedWhileItOpens(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	kit.Err(t, "run", nil)(run(ctx, w.cfg))
}

// TestSocketRemoved: commands find the daemon again after its socket was removed, with its folder.
func TestSocketRemoved(t *testing.T) {
	w := newWorld(t)
	w.cfg.Socket = filepath.Join(filepath.Dir(w.cfg.Socket), "run", "s")
	w.start()
	for range 2 {
		kit.Must(t, os.RemoveAll(filepath.Dir(w.cfg.Socket)))
		w.until("the daemon answers", func() bool {
			_, err := w.client.Status(t.Context())
			return err == nil
		})
	}
}
