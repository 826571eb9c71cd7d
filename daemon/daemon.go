// Package daemon puts ccship together: it reads the configuration, opens the state, and runs the tailer, the relay,
// one drainer per server and the control socket until it must stop. All wiring is in Run.
package daemon

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/ccship/ccship/daemon/config"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/delivery"
	"github.com/ccship/ccship/daemon/derive"
	"github.com/ccship/ccship/daemon/document"
	"github.com/ccship/ccship/daemon/project"
	"github.com/ccship/ccship/daemon/proof"
	"github.com/ccship/ccship/daemon/route"
	"github.com/ccship/ccship/internal/service"
	"github.com/ccship/ccship/internal/sys"
	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/state/projection"
	"github.com/ccship/ccship/tail"
)

// idleConns is the number of idle connections kept to each server: enough for its parallel requests and verify's.
const idleConns = 8

// stopTime is how long a graceful stop may take.
const stopTime = 5 * time.Second

// Daemon is a running ccship. Its exported methods answer requests of the control socket that no other package answers.
type Daemon struct {
	cfg         config.Config // as at the start; conf holds the current one
	log         *slog.Logger
	started     time.Time
	origin      outbox.Origin
	db          *state.DB
	projections *projection.DB // in the file of db
	tailer      *tail.Tailer
	relay       *route.Relay
	router      *route.Router
	servers     *delivery.Servers
	pause       *delivery.Pause // the user's
	masking     *masking
	remasker    *proof.Remasker
	derive      *derive.Deriver
	inbox       *derive.Inbox

	checkpoints       *derive.Checkpoints
	storedCheckpoints derive.Stored

	introductions *derive.Introductions

	documents    *document.Tracker
	linkRequests *document.LinkRequests
	guard        *document.Guard
	client       *http.Client

	manager *service.Notifier

	projects    *project.Finder
	rewrites    *rewrites
	counter     *rewriteCounter
	attachments *document.Collector

	clear      clearList // what servers have with secrets in clear
	reconciler *proof.Reconciler
	syncer     *proof.Syncer
	forgetter  *proof.Forgetter
	comparer   *proof.Service
	name       *ownName

	conf atomic.Pointer[config.Config] // in force
	// stamp of the configuration file when it was last read, even if it was invalid
	lastRead    atomic.Pointer[string]
	badConfig   atomic.Pointer[control.Advice] // why the configuration on disk is not in force; nil: it is in force
	needRestart atomic.Pointer[[]string]       // options whose new value needs a restart
	reloading   sync.Mutex                     // held while conf is exchanged

	elsewhere atomic.Pointer[[]control.Home] // conversations that are not below the roots; nil: not looked for yet

	memoryUsed atomic.Bool // by a request; it can be returned to the system

	mu        sync.Mutex
	announced map[string]bool // formerly plain servers that speak the extension now; guarded by mu
}

// Run delivers transcripts until ctx is done, then stops within five seconds and returns nil. It returns
// ErrAlreadyRunning when another daemon holds the state or delivers the same roots, and a *config.Error when the
// configuration makes it impossible to run. Any other error means that a part of the daemon failed: the process must
// then end, so that its manager restarts it.
func Run(ctx context.Context, cfg config.Config) error {
	lock, err := aloneOn(ctx, cfg)
	if err != nil || lock == nil {
		return err
	}
	defer func() { _ = lock.Release() }() // closing the files unlocks them; so does the end of the process
	for {
		if err := run(ctx, cfg); !errors.Is(err, errRenamed) {
			return err
		}
	}
}

// run is Run until the machine's name changes.
func run(ctx context.Context, cfg config.Config) (err error) {
	d, err := open(ctx, cfg) // first: only the daemon that has the state's lock may take the socket
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil // stopped before it had started
	}
	if err != nil {
		return err
	}
	defer func() {
		if e := d.db.Close(); err == nil {
			err = e
		}
	}()
	ln, err := listen(cfg)
	if err != nil {
		return err
	}
	defer func() { _ = ln.Close() }() // serve closes it, except after an error
	d.log.Info("started", "version", cfg.Version, "state", cfg.StateDir, "server", cfg.ServerURL)
	err = d.serve(ctx, ln)
	d.log.Info("stopped", "err", err)
	return err
}

// listen opens the control socket. Where nobody named one and another user has taken its place, it is in the state
// folder, where clients look too.
func listen(cfg config.Config) (net.Listener, error) {
	ln, err := control.Listen(cfg.Socket)
	if control.UnusablePath(err) && cfg.OriginOf("socket") == config.FromDefault {
		if at := sys.Unnamed(cfg.Socket, cfg.StateDir)[1]; at != cfg.Socket {
			cfg.Logger().Warn("another place for the control socket", "path", at, "err", err)
			return control.Listen(at)
		}
	}
	return ln, err
}

// open wires every part. It starts nothing.
func open(ctx context.Context, cfg config.Config) (*Daemon, error) {
	d := &Daemon{cfg: cfg, log: cfg.Logger(), started: time.Now(), client: outbox.NewClient(idleConns)}
	d.manager = service.NewNotifier(os.Getenv, d.log)
	d.conf.Store(&cfg)
	stamp := cfg.Stamp()
	d.lastRead.Store(&stamp)
	projections, err := openState(ctx, cfg, d.log)
	if err != nil {
		return nil, err
	}
	d.db, d.projections = projections.State, projections
	if d.clear, err = loadClear(ctx, d.db); err == nil {
		err = d.wire(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, d.db.Close())
	}
	return d, nil
}

// ErrAlreadyRunning is returned by Run when another daemon holds the same state.
var ErrAlreadyRunning = errors.New("another ccship is running on the same state")

// openState opens the state and locks it. The system drops the lock when the process ends, however it ends, so there is
// no stale pid to clean up.
func openState(ctx context.Context, cfg config.Config, log *slog.Logger) (*projection.DB, error) {
	db, err := projection.Open(ctx, state.Options{
		Path: filepath.Join(cfg.StateDir, "state.db"), Cap: cfg.OutboxCap, HeadRoom: cfg.HeadRoom,
		CompactAbove: cfg.CompactAbove, NoWait: true, Log: log,
	})
	switch {
	case errors.Is(err, state.ErrLocked):
		return nil, ErrAlreadyRunning
	case errors.Is(err, state.ErrNewer):
		return nil, control.Failed(err.Error(), "run the newer ccship, or name another folder with --state-dir")
	case errors.Is(err, state.ErrEarlier):
		return nil, control.Failed(err.Error(), "ccship verify says when the server has everything")
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.EROFS):
		return nil, &config.Error{Message: err.Error(),
			Hint: "the state folder must belong to this user; name another one with state_dir or CCSHIP_STATE_DIR"}
	}
	return db, err
}

func (d *Daemon) wire(ctx context.Context) error {
	self, err := sys.LoadIdentity(d.cfg.StateDir)
	if err != nil {
		return err
	}
	d.origin = outbox.Origin{
		Machine: self.Name, Host: self.Host, Epoch: d.db.Epoch(), Incarnation: rand.Text(),
		UserAgent: "ccship/" + d.cfg.Version,
	}
	if err := d.wireServers(); err != nil {
		return err
	}
	d.announced, d.projects = map[string]bool{}, project.NewFinder()
	d.projects.Home = d.cfg.Home()
	d.router, err = route.New(ctx, route.Config{
		State: d.db, Projects: d.projects, Destinations: d.servers, Machine: self.Name, Rules: rulesOf(&d.cfg),
	})
	if err != nil {
		return err
	}
	if d.rewrites, err = loadRewrites(ctx, d.db); err != nil {
		return err
	}
	d.storedCheckpoints.Projections = d.projections
	d.relay = &route.Relay{
		State: d.db, Router: d.router, Copies: &derive.CopyDetector{}, Checkpoints: d.storedCheckpoints,
		Masking: d.masking, Log: d.log,
	}
	d.tailer = tail.New(d.tailConfig(), d.db.Files, d.relay)
	d.router.Remembered = d.tailer
	d.wireReconciler(self.Former)
	d.counter = &rewriteCounter{Rewrites: d.rewrites, Files: d.tailer, Servers: d.servers, Origin: d.origin}
	d.wireAttachments()
	if d.introductions, err = derive.LoadIntroductions(ctx, d.projections, d.log); err != nil {
		return err
	}
	if err := d.wireDocuments(ctx); err != nil {
		return err
	}
	notices := derive.NewNotices(d.projections, d.introductions, d.log)
	d.wireDeriver(derive.NewCheckpointer(d.projections), d.documents.Observer(), notices.Observer())
	d.inbox = derive.NewInbox(derive.Deps{
		Projections: d.projections, Deriver: d.derive, Introductions: d.introductions, Notices: notices, Sessions: d.router,
		Documents: d.documents, Settings: settings{d}, Log: d.log,
	})
	d.db.Listener = stateListener{d}
	if d.pause, err = delivery.LoadPause(ctx, d.db, d.servers, d.log); err != nil {
		return err
	}
	d.wireRequests()
	return d.reroute(ctx)
}

// wireServers makes the servers, and the maskers for their lines.
func (d *Daemon) wireServers() (err error) {
	d.servers = delivery.New(delivery.Config{
		State: d.db, Owner: owner{d}, Origin: d.origin, Client: d.client,
		Proven: protocol.ProvenServers{Path: d.cfg.ProvenServersFile()}, Plain: d.cfg.Protocol == "plain", Log: d.log,
	})
	d.servers.SetOwn(&d.cfg)
	d.masking, err = newMasking(&d.cfg, d.servers, protocol.AskSameHost)
	return err
}

// serve runs every part until ctx is done or one of them fails.
func (d *Daemon) serve(ctx context.Context, ln net.Listener) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	parts := map[string]func(context.Context) error{
		"tailer":          d.tailer.Run,
		"delivery":        d.servers.Run,
		"reconciler":      d.reconciler.Run,
		"machine name":    d.name.await,
		"deriver":         d.derive.Run,
		"inbox":           d.inbox.Run,
		"documents":       d.documents.Run,
		"link requests":   d.linkRequests.Run,
		"state":           d.db.Run,
		"control socket":  func(ctx context.Context) error { return d.serveSocket(ctx, ln) },
		"housekeeping":    d.housekeeping,
		"background jobs": d.backgroundJobs,
		"attachments":     d.attachments.Run,
		"service manager": d.notifyManager,
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

func (d *Daemon) tailConfig() tail.Config {
	return tail.Config{Roots: tailRoots(d.cfg), Watch: d.cfg.Watch, Local: diskTells, Cap: d.cfg.LineCap, Log: d.log}
}

// tailRoots returns the configured projects folders, each with the prompt history that lies next to it.
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
