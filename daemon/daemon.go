// Package daemon puts ccship together: it reads the configuration, opens the state, and runs the tailer, the relay,
// one drainer per server and the control socket until it is told to stop. All wiring is in Run.
package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/ccship/ccship/daemon/attachment"
	"github.com/ccship/ccship/daemon/checkpoint"
	"github.com/ccship/ccship/daemon/config"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/delivery"
	"github.com/ccship/ccship/daemon/derive"
	"github.com/ccship/ccship/daemon/document"
	"github.com/ccship/ccship/daemon/inbox"
	"github.com/ccship/ccship/daemon/machine"
	"github.com/ccship/ccship/daemon/project"
	"github.com/ccship/ccship/daemon/relay"
	"github.com/ccship/ccship/daemon/rewrite"
	"github.com/ccship/ccship/daemon/route"
	"github.com/ccship/ccship/daemon/service"
	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/tail"
)

// idleConns is how many idle connections are kept to each server: one for each of its requests at once, and verify's.
const idleConns = 8

// stopTime is how long a graceful stop may take.
const stopTime = 5 * time.Second

// Daemon is a running ccship. Its exported methods answer the control socket.
type Daemon struct {
	cfg     config.Config // as it was at the start; what may change since is in conf
	log     *slog.Logger
	started time.Time
	origin  outbox.Origin
	db      *state.DB
	tailer  *tail.Tailer
	relay   *relay.Relay
	router  *route.Router
	servers *delivery.Servers
	pause   *delivery.Pause // the user's
	derive  *derive.Deriver
	inbox   *inbox.Inbox

	checkpoints       *checkpoint.Checkpoints
	storedCheckpoints checkpoint.Stored

	introductions *inbox.Introductions

	documents    *document.Tracker
	linkRequests *document.LinkRequests
	guard        *document.Guard
	client       *http.Client

	events  *bus
	manager *service.Notifier

	projects    *project.Finder
	rewrites    *rewrite.List
	counter     *rewrite.Counter
	attachments *attachment.Collector

	conf        atomic.Pointer[config.Config]  // in force
	lastRead    atomic.Pointer[string]         // stamp of the configuration file when it was read last, with success or not
	badConfig   atomic.Pointer[control.Advice] // why the configuration as it is now is not in force; nil: it is
	needRestart atomic.Pointer[[]string]       // options whose new value needs a restart
	reloading   sync.Mutex                     // held while conf is exchanged
	editing     sync.Mutex                     // held while the configuration file is edited

	stirred atomic.Bool // a verify has used memory that can be given back

	mu        sync.Mutex
	announced map[string]bool // servers that took lines as plain ones and speak the extension now; guarded by mu
}

var _ control.Daemon = (*Daemon)(nil)

// Run delivers transcripts until ctx is done, then stops in at most five seconds and returns nil. It returns
// ErrAlreadyRunning when another daemon holds the state, a *config.Error for what the configuration makes impossible,
// and any other error when a part of the daemon broke: the process is then to end, so that its manager restarts it.
func Run(ctx context.Context, cfg config.Config) error {
	d, err := open(ctx, cfg) // first: the state's lock makes this the only daemon that may take the socket
	if err != nil {
		return err
	}
	defer d.db.Close()
	ln, err := control.Listen(cfg.Socket)
	if err != nil {
		return err
	}
	defer ln.Close()
	d.log.Info("started", "version", cfg.Version, "state", cfg.StateDir, "server", cfg.ServerURL)
	err = d.serve(ctx, ln)
	d.log.Info("stopped", "err", err)
	return err
}

// open wires every part. Nothing runs yet.
func open(ctx context.Context, cfg config.Config) (*Daemon, error) {
	d := &Daemon{cfg: cfg, log: cfg.Logger(), started: time.Now(), client: outbox.NewClient(idleConns), events: newBus()}
	d.manager = service.NewNotifier(os.Getenv, d.log)
	d.conf.Store(&cfg)
	stamp := cfg.Stamp()
	d.lastRead.Store(&stamp)
	db, err := openState(ctx, cfg, d.log)
	if err != nil {
		return nil, err
	}
	d.db = db
	if err := d.wire(ctx); err != nil {
		db.Close()
		return nil, err
	}
	return d, nil
}

// ErrAlreadyRunning is returned by Run when another daemon holds the same state.
var ErrAlreadyRunning = errors.New("another ccship is running on the same state")

// openState opens the state, which no other process has open then for as long as this one lives: the system drops its
// lock when the process ends, however it ends, so there is no stale pid to clean up.
func openState(ctx context.Context, cfg config.Config, log *slog.Logger) (*state.DB, error) {
	db, err := state.Open(ctx, state.Options{
		Path: filepath.Join(cfg.StateDir, "state.db"), Cap: cfg.OutboxCap, HeadRoom: cfg.HeadRoom,
		CompactAbove: cfg.CompactAbove, NoWait: true, Log: log,
	})
	switch {
	case errors.Is(err, state.ErrLocked):
		return nil, ErrAlreadyRunning
	case errors.Is(err, state.ErrNewer):
		return nil, control.Failed(err.Error(), "run the newer ccship, or name another folder with --state-dir")
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.EROFS):
		return nil, &config.Error{Message: err.Error(), Hint: "the state folder must belong to this user; name another one with state_dir or CCSHIP_STATE_DIR"}
	}
	return db, err
}

func (d *Daemon) wire(ctx context.Context) error {
	machineName, err := machine.Name(d.cfg.StateDir)
	if err != nil {
		return err
	}
	host, _ := os.Hostname()
	d.origin = outbox.Origin{Machine: machineName, Host: host, Epoch: d.db.Epoch(), UserAgent: "ccship/" + d.cfg.Version}
	d.servers = delivery.New(delivery.Config{
		State: d.db, Owner: owner{d}, Origin: d.origin, Client: d.client, Plain: d.cfg.Protocol == "plain", Log: d.log,
	})
	d.servers.SetOwn(&d.cfg)
	d.announced = map[string]bool{}
	d.projects = project.NewFinder()
	d.projects.Home = d.cfg.Home()
	d.router, err = route.New(ctx, route.Config{
		State: d.db, Projects: d.projects, Destinations: d.servers, Machine: machineName, Rules: rulesOf(&d.cfg),
	})
	if err != nil {
		return err
	}
	if d.rewrites, err = rewrite.Load(ctx, d.db); err != nil {
		return err
	}
	d.storedCheckpoints = checkpoint.Stored{State: d.db}
	d.relay = relay.New(relay.Deps{
		State: d.db, Router: d.router, Copies: &derive.CopyDetector{}, Checkpoints: d.storedCheckpoints, Log: d.log,
	})
	d.tailer = tail.New(tail.Config{
		Roots: tailRoots(d.cfg), Watch: d.cfg.Watch, Cap: d.cfg.LineCap, Log: d.log,
	}, d.db, d.relay)
	d.counter = &rewrite.Counter{List: d.rewrites, Files: d.tailer, Servers: d.servers, Origin: d.origin}
	d.attachments = attachment.New(attachment.Deps{
		State: d.db, Files: d.tailer, Router: d.router, Servers: d.servers, Settings: settings{d}, Log: d.log,
	})
	if d.introductions, err = inbox.LoadIntroductions(ctx, d.db, d.log); err != nil {
		return err
	}
	if err := d.wireDocuments(ctx); err != nil {
		return err
	}
	d.wireDeriver(checkpoint.NewCheckpointer(d.db), d.documents.Observer())
	d.inbox = inbox.New(inbox.Deps{
		State: d.db, Deriver: d.derive, Introductions: d.introductions, Sessions: d.router, Documents: d.documents,
		Settings: settings{d}, Log: d.log,
	})
	d.db.Notify = d.servers.Wake
	d.db.RoomChanged = d.tailer.Wake
	if d.pause, err = delivery.LoadPause(ctx, d.db, d.servers, d.log); err != nil {
		return err
	}
	return d.reroute(ctx)
}

// serve runs every part until ctx is done or one of them breaks.
func (d *Daemon) serve(ctx context.Context, ln net.Listener) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	parts := map[string]func(context.Context) error{
		"tail":            d.tailer.Run,
		"deliver":         d.servers.Run,
		"derive":          d.derive.Run,
		"inbox":           d.inbox.Run,
		"documents":       d.documents.Run,
		"link requests":   d.linkRequests.Run,
		"state":           d.db.Run,
		"control":         func(ctx context.Context) error { return control.NewServer(d, d.log).Serve(ctx, ln) },
		"keep":            d.keep,
		"background jobs": d.backgroundJobs,
		"events":          d.watchStatus,
		"attachments":     d.attachments.Run,
		"notifier":        d.notifyManager,
	}
	var wg sync.WaitGroup
	for name, run := range parts {
		wg.Go(func() {
			if err := run(ctx); err != nil && !errors.Is(err, context.Canceled) {
				cancel(fmt.Errorf("%s: %w", name, err))
			}
		})
	}
	<-ctx.Done()
	ended := make(chan struct{})
	go func() { wg.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(stopTime):
		d.log.Warn("a part did not stop in time", "limit", stopTime)
	}
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// notifyManager keeps the service manager informed.
func (d *Daemon) notifyManager(ctx context.Context) error {
	d.manager.Run(ctx, service.Parts{Control: control.Dial(d.cfg.Socket), Tailer: d.tailer, State: d.db})
	return nil
}

// heard notes that a server which took lines as a plain one speaks the extension now, and acts on it.
func (d *Daemon) heard(dest string) {
	d.mu.Lock()
	d.announced[dest] = true
	d.mu.Unlock()
	d.rereadPlain(context.Background())
}

// rereadPlain has every file delivered again whose lines a server took before it spoke the extension. What fails is
// tried again at the next beat.
func (d *Daemon) rereadPlain(ctx context.Context) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.announced) == 0 {
		return
	}
	facts, err := d.db.LoadFacts(ctx)
	if err != nil {
		d.log.Warn("cannot find the files to deliver again, trying later", "err", err)
		return
	}
	var ids []tail.FileID
	for id, f := range facts {
		if d.announced[f.Dest] && (f.Plain || f.Withheld > 0) {
			ids = append(ids, id)
		}
	}
	d.log.Info("server speaks the extension now: files are delivered again", "files", len(ids))
	clear(d.announced)
	d.tailer.Reread(ids...)
}

// beat is how often the daemon looks whether the world around it changed: the clock, the key file, opt-outs.
const beat = 2 * time.Second

// keep notices what nobody tells the daemon.
func (d *Daemon) keep(ctx context.Context) error {
	tick := time.NewTicker(beat)
	defer tick.Stop()
	w := watchman{wall: time.Now().Round(0), mono: time.Now(), keys: d.servers.KeyStamps(), moved: math.MinInt64}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-d.cfg.Hangup:
			d.reloadAsked(ctx)
		case <-tick.C:
			d.look(ctx, &w)
		}
	}
}

// reloadAsked reads the configuration again for someone who cannot be answered: the log and the status say how it went.
func (d *Daemon) reloadAsked(ctx context.Context) { _, _ = d.Reload(ctx) }

// watchman is what keep saw at its last look.
type watchman struct {
	wall, mono time.Time
	keys       string
	rest       string // stamp of the configuration file at the last look: while it is being written it is not read
	moved      int64  // bytes read and sent when memory was given back last; the least there is before the first time
}

func (d *Daemon) look(ctx context.Context, w *watchman) {
	now := time.Now()
	const jump = 10 * time.Second
	if slept := now.Round(0).Sub(w.wall) - now.Sub(w.mono); slept > jump || slept < -jump {
		d.log.Info("clock jumped: trying again at once", "by", slept.Round(time.Second))
		d.client.CloseIdleConnections()
		d.servers.Retry(false)
	}
	w.wall, w.mono = now.Round(0), now
	if keys := d.servers.KeyStamps(); keys != w.keys {
		w.keys = keys
		d.servers.Retry(true)
	}
	if err := d.pause.Expire(ctx); err != nil {
		d.log.Warn("cannot end the pause yet", "err", err)
	}
	if stamp := config.Stamp(d.conf.Load().Path); stamp == w.rest && stamp != *d.lastRead.Load() {
		d.reloadAsked(ctx)
	} else {
		w.rest = stamp
	}
	d.rereadPlain(ctx)
	if d.router.ExclusionEnded() {
		d.tailer.Wake()
	}
	d.tailer.Reread(d.router.History.Readmitted()...)
	d.giveBack(w)
}

// giveBack returns the memory of an import to the system once it is over: a daemon that is idle all day should not
// keep what it needed for a minute.
func (d *Daemon) giveBack(w *watchman) {
	stats, usage := d.tailer.Stats(), d.db.Usage()
	if stats.UnreadBytes > 0 || usage.Batches > 0 {
		return
	}
	const large = 4 << 20
	_, sent := d.servers.List(usage)
	if moved := stats.ReadBytes + sent.Bytes; w.moved == math.MinInt64 || moved > w.moved+large || d.stirred.Swap(false) || d.derive.Freed() || d.attachments.Freed() {
		w.moved = moved
		debug.FreeOSMemory()
	}
}

// tailRoots are the configured projects folders, each with the prompt history that lies beside it.
func tailRoots(cfg config.Config) []tail.Root {
	roots := make([]tail.Root, 0, len(cfg.Roots))
	for _, dir := range cfg.Roots {
		r := tail.Root{Dir: dir}
		if cfg.History && filepath.Base(dir) == "projects" {
			r.History = filepath.Join(filepath.Dir(dir), "history.jsonl")
		}
		roots = append(roots, r)
	}
	return roots
}
