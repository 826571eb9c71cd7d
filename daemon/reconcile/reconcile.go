package reconcile

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ccship/ccship/daemon/remote"
	"github.com/ccship/ccship/daemon/verify"
	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/outbox/ledger"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/tail"
)

const (
	firstRetry = time.Second
	lastRetry  = time.Minute
	// memoryOf is how long a store that was left, and a replacement of this daemon, are remembered.
	memoryOf = time.Hour
	// singleAnswers is how often in a row one store must answer before two are believed to have become one.
	singleAnswers = 5
)

// Deps is what a Reconciler works with. Every field is required.
type Deps struct {
	State   *state.DB
	Files   Files
	Servers Servers
	Rules   Rules
	Masking verify.Masking
	Machine Machine
	Origin  outbox.Origin // names this machine and its state at the servers
	LineCap int64         // bytes; a longer line was delivered as a digest
	Log     *slog.Logger
}

// Files are the remembered transcripts; *tail.Tailer is one.
type Files interface {
	Files() []tail.Tracked
	File(id tail.FileID) (tail.Tracked, bool)
	Reload(ids ...tail.FileID)
	Stats() tail.Stats
}

// Servers are the destinations.
type Servers interface {
	// Reader answers a client of a server's reading API. It is never nil.
	Reader(dest string) *remote.Client
	// SpeaksExtension reports whether a server is known to speak the extension, so that it can be asked what it holds.
	SpeaksExtension(dest string) bool
	// InStep lets a server be sent to again, with the ledger at the beginning of the comparison, and unless it is ""
	// under another incarnation.
	InStep(dest string, at ledger.Ledger, incarnation string)
	// StepBack stops sending to a server, and has OutOfStep called; false: another incarnation writes by now.
	StepBack(dest, code, incarnation string) bool
	// Ledger returns a server's ledger as it is known here, and the incarnation that writes to it; "" when none does.
	Ledger(ctx context.Context, dest string) (known ledger.Ledger, incarnation string, err error)
	// StreamInStep is InStep for one stream.
	StreamInStep(dest string, stream uint64)
	// Resend queues again what the server lost beside lines: checkpoints, documents, attachments.
	Resend(ctx context.Context, dest string) error
	// Trouble shows why nothing is sent to a server; "" when there is no such reason any more.
	Trouble(dest, why, hint string)
}

// Rules say what is not delivered.
type Rules interface {
	// LeavesOut reports whether a line of a file is not delivered.
	LeavesOut(f *tail.File, line []byte) bool
}

// Machine is the name of this machine.
type Machine interface {
	// Former is the name before the last change; "" when it never changed.
	Former() string
	// Change gives this machine a name of its own and restarts the daemon's parts with it.
	Change() error
}

// Reconciler compares. Safe for concurrent use.
type Reconciler struct {
	Deps
	wake    chan struct{}
	changes atomic.Uint64

	mu      sync.Mutex
	servers map[string]ledger.Refusal // to be compared, by destination; guarded by mu
	// streams are to be compared alone, by destination; true: the server stores other bytes. Guarded by mu.
	streams map[string]map[uint64]bool
	// waiting are closed when a server was compared, by destination; guarded by mu
	waiting map[string][]chan struct{}

	left     map[string]map[string]time.Time // stores that answered before, by destination; only Run uses it
	replaced map[string]time.Time            // when this daemon was replaced last, by destination; only Run uses it
}

// New returns a Reconciler. It starts nothing.
func New(d Deps) *Reconciler {
	return &Reconciler{
		Deps: d, wake: make(chan struct{}, 1), servers: map[string]ledger.Refusal{},
		streams: map[string]map[uint64]bool{}, waiting: map[string][]chan struct{}{},
		left: map[string]map[string]time.Time{}, replaced: map[string]time.Time{},
	}
}

// Changes is a number that changes whenever a transcript rejoins: its lines leave the outbox without being sent, and
// are read again.
func (r *Reconciler) Changes() uint64 { return r.changes.Load() }

// OutOfStep has a server, or one of its streams, compared. It never blocks.
func (r *Reconciler) OutOfStep(dest string, why ledger.Refusal) {
	r.mu.Lock()
	r.note(dest, why)
	r.mu.Unlock()
	r.Retry()
}

// Retry has what could not be compared compared again now. It never blocks.
func (r *Reconciler) Retry() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// note notes what is to be compared. The caller holds mu.
func (r *Reconciler) note(dest string, why ledger.Refusal) {
	if why.Stream == 0 {
		r.servers[dest] = why
		return
	}
	if r.streams[dest] == nil {
		r.streams[dest] = map[uint64]bool{}
	}
	r.streams[dest][why.Stream] = r.streams[dest][why.Stream] || why.Code == ledger.CodeOtherBytes
}

// Run compares what is asked for until ctx is done.
func (r *Reconciler) Run(ctx context.Context) error {
	var wait time.Duration // until what failed is compared again; 0: nothing did
	for {
		var retry <-chan time.Time
		if wait > 0 {
			retry = time.After(wait)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-r.wake:
		case <-retry:
		}
		if r.compareAll(ctx) {
			wait = 0
		} else {
			wait = min(max(2*wait, firstRetry), lastRetry)
		}
	}
}

// compareAll compares everything that is asked for. It reports whether nothing is left.
func (r *Reconciler) compareAll(ctx context.Context) bool {
	r.mu.Lock()
	servers, streams := r.servers, r.streams
	r.servers, r.streams = map[string]ledger.Refusal{}, map[string]map[uint64]bool{}
	r.mu.Unlock()
	done := true
	for dest, why := range servers {
		delete(streams, dest) // they are compared with the rest
		if err := r.compareServer(ctx, dest, why); err != nil {
			done = r.again(ctx, dest, why, err)
		}
	}
	for dest, ids := range streams {
		for id, otherBytes := range ids {
			if err := r.compareStream(ctx, dest, id, otherBytes); err != nil {
				why := ledger.Refusal{Stream: id}
				if otherBytes {
					why.Code = ledger.CodeOtherBytes
				}
				done = r.again(ctx, dest, why, err)
			}
		}
	}
	return done
}

// again has a comparison that failed repeated. It returns false.
func (r *Reconciler) again(ctx context.Context, dest string, why ledger.Refusal, err error) bool {
	if ctx.Err() == nil {
		if remote.Is(err, remote.CodeOtherStore) {
			const hint = "let one database answer at this address; check the load balancer and server_url"
			r.Servers.Trouble(dest, "two databases answer in turn at this address", hint)
		}
		r.Log.Warn("cannot compare with the server; retrying", "server", dest, "err", err)
		r.mu.Lock()
		defer r.mu.Unlock()
		if _, newer := r.servers[dest]; !newer || why.Stream != 0 {
			r.note(dest, why)
		}
	}
	return false
}

// compareServer compares every transcript that may differ, and lets the server be sent to again.
func (r *Reconciler) compareServer(ctx context.Context, dest string, why ledger.Refusal) error {
	learned, err := r.State.Outbox.Learned(ctx, dest)
	if err != nil {
		return err
	}
	known := learned.Ledger
	reader := r.Servers.Reader(dest)
	at, err := reader.Ledger(ctx, r.Origin.Machine, known.Count)
	if err != nil {
		return err
	}
	writer, err := r.writer(dest, why)
	if err != nil {
		return err
	}
	if err := r.oneStore(ctx, dest, &at, known); err != nil {
		return err
	}
	c, err := r.newComparison(ctx, dest)
	if err != nil {
		return err
	}
	c.reader = reader.Of(at.Store)
	c.only = changedSince(&at, &known)
	r.Log.Warn("comparing with the server", "server", dest, "code", why.Code, "store", at.Store, "its count", at.Count,
		"known store", known.Store, "known count", known.Count, "transcripts", c.size())
	if err := c.run(ctx); err != nil {
		return err
	}
	if at.Store != known.Store && known.Store != "" || at.Count < known.Count {
		if err := r.Servers.Resend(ctx, dest); err != nil {
			return fmt.Errorf("queue checkpoints, documents and files again: %w", err)
		}
	}
	if at, err = r.settled(ctx, at, c); err != nil {
		return err
	}
	r.leave(dest, known.Store, at.Store)
	if why.Code == ledger.CodeWriterReplaced {
		r.replaced[dest] = time.Now() // only now: a comparison that fails is repeated for the same reason
	}
	r.Log.Info("in step with the server again", "server", dest, "compared", c.compared, "rejoined", c.rejoined)
	r.Servers.Trouble(dest, "", "")
	r.Servers.InStep(dest, ledger.Ledger{Store: at.Store, Count: at.Count, Writer: at.Writer}, writer)
	r.release(dest)
	return nil
}

// changedSince returns the sessions that may differ; nil: all. If an earlier run of this daemon wrote last, only what
// its last requests changed is unknown.
func changedSince(at *remote.Ledger, known *ledger.Ledger) map[string]bool {
	if at.Store != known.Store || at.Writer == "" || at.Writer != known.Writer || at.Count < known.Count ||
		len(at.Changed) >= remote.MaxChanged {
		return nil
	}
	only := map[string]bool{}
	for _, s := range at.Changed {
		only[s.SessionID] = true
	}
	return only
}

// settled returns the ledger to go on with: that of the beginning, or the one behind the copies that were made.
func (r *Reconciler) settled(ctx context.Context, at remote.Ledger, c *comparison) (remote.Ledger, error) {
	if c.copied == 0 {
		return at, nil
	}
	return c.reader.Ledger(ctx, r.Origin.Machine, at.Count)
}

// writer returns the incarnation to go on with. Once another daemon has taken over from this one, the server takes
// nothing from this incarnation any more. The second time within an hour both are alive: this one changes its name.
func (r *Reconciler) writer(dest string, why ledger.Refusal) (string, error) {
	if why.Code != ledger.CodeWriterReplaced {
		return "", nil
	}
	last, ok := r.replaced[dest]
	if ok && time.Since(last) < memoryOf {
		r.Log.Warn("another daemon writes in the name of this machine: this one takes a name of its own", "server", dest)
		if err := r.Machine.Change(); err != nil {
			return "", fmt.Errorf("change the name of this machine: %w", err)
		}
		return "", errNewName
	}
	return rand.Text(), nil
}

// errNewName ends a comparison: the parts of the daemon start again.
var errNewName = errors.New("the daemon starts again with a new name")

// leave notes which store answered before.
func (r *Reconciler) leave(dest, was, now string) {
	if was == "" || was == now {
		return
	}
	if r.left[dest] == nil {
		r.left[dest] = map[string]time.Time{}
	}
	r.left[dest][was] = time.Now()
	delete(r.left[dest], now)
}

// oneStore refuses to go on while two databases answer in turn. at becomes the ledger of the one that is left.
func (r *Reconciler) oneStore(ctx context.Context, dest string, at *remote.Ledger, known ledger.Ledger) error {
	when, before := r.left[dest][at.Store]
	if !before || time.Since(when) > memoryOf {
		return nil
	}
	for range singleAnswers {
		next, err := r.Servers.Reader(dest).Of(at.Store).Ledger(ctx, r.Origin.Machine, known.Count)
		if err != nil {
			return err
		}
		*at = next
	}
	delete(r.left[dest], at.Store)
	return nil
}

// compareStream compares one transcript.
func (r *Reconciler) compareStream(ctx context.Context, dest string, stream uint64, otherBytes bool) error {
	c, err := r.newComparison(ctx, dest)
	if err != nil {
		return err
	}
	c.otherBytes = otherBytes
	if err := c.one(ctx, tail.FileID(stream)); err != nil {
		return err
	}
	r.Servers.StreamInStep(dest, stream)
	return nil
}
