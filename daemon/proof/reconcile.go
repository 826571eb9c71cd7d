package proof

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ccship/ccship/daemon/delivery"
	"github.com/ccship/ccship/daemon/remote"
	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/tail"
)

const (
	firstRetry = time.Second
	lastRetry  = time.Minute
	// memoryOf is how long the store that answered before, and a replacement of this daemon, are remembered.
	memoryOf = time.Hour
	// singleAnswers is how often in a row one store must answer after two stores did.
	singleAnswers = 5
)

// ReconcilerDeps is what a Reconciler needs. Every field is required.
type ReconcilerDeps struct {
	State   *state.DB
	Files   *tail.Tailer
	Servers delivery.Steps
	Rules   reconcileRules
	Masking Masking
	Machine machine
	Origin  outbox.Origin // names this machine and its state at the servers
	LineCap int64         // bytes; a longer line was delivered as a digest
	Log     *slog.Logger
}

// reconcileRules decides what is not delivered.
type reconcileRules interface {
	// LeavesOut reports whether a line of a file is not delivered.
	LeavesOut(f *tail.File, line []byte) bool
}

// machine has the name of this machine.
type machine interface {
	// Former are the names before, the last one first.
	Former() []string
	// Change gives this machine a new name and restarts the daemon's parts.
	Change() error
}

// Reconciler compares transcripts with servers. Safe for concurrent use.
type Reconciler struct {
	ReconcilerDeps
	wake    outbox.Bell
	changes atomic.Uint64

	mu      sync.Mutex
	servers map[string]protocol.Refusal // to be compared, by destination; guarded by mu
	// streams are those to compare alone, by destination; true: the server stores other bytes. Guarded by mu.
	streams map[string]map[uint64]bool
	// waiting are closed once a server was compared, by destination; guarded by mu
	waiting map[string][]chan struct{}

	left     map[string]map[string]time.Time // stores that answered before, by destination; only Run uses it
	replaced map[string]time.Time            // when this daemon was replaced last, by destination; only Run uses it
}

// NewReconciler returns a Reconciler. It starts nothing.
func NewReconciler(d ReconcilerDeps) *Reconciler {
	return &Reconciler{
		ReconcilerDeps: d, wake: outbox.NewBell(), servers: map[string]protocol.Refusal{},
		streams: map[string]map[uint64]bool{}, waiting: map[string][]chan struct{}{},
		left: map[string]map[string]time.Time{}, replaced: map[string]time.Time{},
	}
}

// Changes changes whenever a transcript rejoins: its lines leave the outbox without being sent, and are read again.
func (r *Reconciler) Changes() uint64 { return r.changes.Load() }

// OutOfStep schedules the comparison of a server, or of one of its streams. It never blocks.
func (r *Reconciler) OutOfStep(dest string, why protocol.Refusal) {
	r.mu.Lock()
	r.note(dest, why)
	r.mu.Unlock()
	r.Retry()
}

// Retry repeats failed comparisons now. It never blocks.
func (r *Reconciler) Retry() { r.wake.Ring() }

// note records what to compare. The caller holds mu.
func (r *Reconciler) note(dest string, why protocol.Refusal) {
	if why.Stream == 0 {
		r.servers[dest] = why
		return
	}
	if r.streams[dest] == nil {
		r.streams[dest] = map[uint64]bool{}
	}
	r.streams[dest][why.Stream] = r.streams[dest][why.Stream] || why.Code == protocol.CodeOtherBytes
}

// Run makes the scheduled comparisons until ctx is done.
func (r *Reconciler) Run(ctx context.Context) error {
	var wait time.Duration // before failed comparisons are repeated; 0: none failed
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

// compareAll makes all scheduled comparisons. It reports whether none is left.
func (r *Reconciler) compareAll(ctx context.Context) bool {
	r.mu.Lock()
	servers, streams := r.servers, r.streams
	r.servers, r.streams = map[string]protocol.Refusal{}, map[string]map[uint64]bool{}
	r.mu.Unlock()
	done := true
	for dest, why := range servers {
		delete(streams, dest) // compared with the rest
		if err := r.compareServer(ctx, dest, why); err != nil {
			done = r.again(ctx, dest, why, err)
		}
	}
	for dest, ids := range streams {
		for id, otherBytes := range ids {
			if err := r.compareStream(ctx, dest, id, otherBytes); err != nil {
				why := protocol.Refusal{Stream: id}
				if otherBytes {
					why.Code = protocol.CodeOtherBytes
				}
				done = r.again(ctx, dest, why, err)
			}
		}
	}
	return done
}

// again schedules a failed comparison again. It returns false.
func (r *Reconciler) again(ctx context.Context, dest string, why protocol.Refusal, err error) bool {
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

// compareServer compares every transcript that may differ, and resumes sending to the server.
func (r *Reconciler) compareServer(ctx context.Context, dest string, why protocol.Refusal) error {
	known, _, err := r.Servers.Ledger(ctx, dest)
	if err != nil {
		return err
	}
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
	if why.Code != protocol.CodeStoreBehind { // else counts that agree again prove nothing
		c.only = changedSince(&at, &known)
	}
	r.Log.Warn("comparing with the server", "server", dest, "code", why.Code, "store", at.Store, "its count", at.Count,
		"known store", known.Store, "known count", known.Count, "transcripts", c.size())
	if err := c.run(ctx); err != nil {
		return err
	}
	if at.Store != known.Store && known.Store != "" || at.Count < known.Count || why.Code == protocol.CodeStoreBehind {
		if err := r.Servers.Resend(ctx, dest); err != nil {
			return fmt.Errorf("queue checkpoints, documents and files again: %w", err)
		}
	}
	if err := c.retryReplaced(ctx); err != nil {
		return err
	}
	if at, err = r.settled(ctx, at, c); err != nil {
		return err
	}
	r.leave(dest, known.Store, at.Store)
	if why.Code == protocol.CodeWriterReplaced {
		r.replaced[dest] = time.Now() // not earlier: a failed comparison is repeated for the same reason
	}
	r.Log.Info("in step with the server again", "server", dest, "compared", c.compared, "rejoined", c.rejoined)
	r.Servers.Trouble(dest, "", "")
	r.Servers.InStep(dest, protocol.Ledger{Store: at.Store, Count: at.Count, Token: at.Token, Writer: at.Writer}, writer)
	r.release(dest)
	return nil
}

// changedSince returns the sessions that may differ; nil: all. If an earlier run of this daemon wrote last, only the
// changes of its last requests are unknown.
func changedSince(at *protocol.WriteLedger, known *protocol.Ledger) map[string]bool {
	if judge(at, known, at.Writer) == protocol.CodeStoreBehind || at.Store != known.Store || at.Writer == "" ||
		at.Writer != known.Writer || at.Count < known.Count ||
		len(at.Changed) >= protocol.MaxChanged {
		return nil
	}
	only := map[string]bool{}
	for _, s := range at.Changed {
		only[s.SessionID] = true
	}
	return only
}

// settled returns the ledger to continue with: the one from the beginning, or the one after the copies.
func (r *Reconciler) settled(ctx context.Context, at protocol.WriteLedger,
	c *comparison) (protocol.WriteLedger, error) {
	if c.copied == 0 {
		return at, nil
	}
	return c.reader.Ledger(ctx, r.Origin.Machine, at.Count)
}

// writer returns the incarnation to continue with. Once another daemon has taken over from this one, the server refuses
// writes of this incarnation. If that happens twice within an hour, both daemons are alive: this one changes its name.
func (r *Reconciler) writer(dest string, why protocol.Refusal) (string, error) {
	if why.Code != protocol.CodeWriterReplaced {
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

// errNewName ends a comparison, because the parts of the daemon restart.
var errNewName = errors.New("the daemon starts again with a new name")

// leave records which store answered before.
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

// oneStore returns an error while two databases answer in turn. at becomes the ledger of the remaining one.
func (r *Reconciler) oneStore(ctx context.Context, dest string, at *protocol.WriteLedger, known protocol.Ledger) error {
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
	if err := c.retryReplaced(ctx, tail.FileID(stream)); err != nil {
		return err
	}
	r.Servers.StreamInStep(dest, stream)
	return nil
}
