// Package derive folds committed lines into projections: what sessions mean. It reads transcripts again after delivery,
// keeps projections in the state and a few in memory, and answers queries about them. It does not know what follows
// from an event; observers do. Delivery never waits for it, and every projection can be rebuilt from its transcript.
package derive

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/ccship/ccship/daemon/route"
	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/state/projection"
	"github.com/ccship/ccship/tail"
	"github.com/ccship/ccship/transcript"
	"github.com/ccship/ccship/transcript/redact"
	"github.com/ccship/ccship/transcript/session"
)

// Observer gets every event in newly folded lines, in file order, and adds effects to the step. All calls come
// from the deriver's goroutine and must not block. Several observers are called in the order in which New got them.
type Observer interface {
	// Begin starts a step over the next lines of one transcript, or a query about it. A long transcript takes several
	// steps. A query calls Begin alone.
	Begin(s *FoldStep)
	// Event is called for each event, after s.Session has processed its record. watched reports that the line was written
	// while a daemon watched, and has had no effects yet: only then may a person or a server be notified of it.
	Event(s *FoldStep, e *session.Event, watched bool)
	// End is called after the last line of a step. Its effects are committed together with the offset behind that line.
	// After an error nothing of the step is kept, and the same lines are folded again.
	End(s *FoldStep) error
}

// SaveObserver is an Observer that also learns which effects are durable.
type SaveObserver interface {
	Observer
	// Saved is called once a transaction is committed. It must not block, and must not change d.
	Saved(d *projection.Derivation)
}

// RecordObserver is an Observer that also sees records.
type RecordObserver interface {
	Observer
	// Record is called for each record, before the events that follow from it. watched is as for Event.
	Record(s *FoldStep, r *transcript.Record, watched bool)
}

// Files is the tailer: what it knows about transcripts. Its methods must be safe for concurrent use.
type Files interface {
	// File returns a file with the path that it has now; false if the tailer does not know it.
	File(id tail.FileID) (tail.Tracked, bool)
	// Stats reports whether an import is under way.
	Stats() tail.Stats
}

// Policy says which transcripts are folded, and how much of them is kept. The deriver's goroutine calls it; its methods
// must not wait for the deriver.
type Policy interface {
	// Excluded reports whether a transcript was forgotten or has opted out. Then it is not folded.
	Excluded(t *tail.Tracked, f *state.Routing) bool
	// Masker returns the masker of a transcript's lines; nil if its server gets them unmasked.
	Masker(f *state.Routing) *redact.Masker
	// MessageLimits returns the limits of a session's message log.
	MessageLimits() MessageLimits
}

// MessageLimits bounds a session's message log. 0 is the default of package session.
type MessageLimits struct {
	Kept          int // messages
	Input, Output int // characters of a tool's input and output
}

// FoldStep is one transcript while some of its lines are folded, or while a query looks at it. It is valid only during
// the call that gets it.
type FoldStep struct {
	File     tail.Tracked
	Facts    state.Routing
	Session  *session.Fold               // includes the record of the event
	Detector *session.CheckpointDetector // an observer feeds it
	Line     int64                       // the number of lines folded so far
	// Effects is committed together with the projection. Observers append to Checkpoints, Notices, Shown, Documents,
	// LinkRequests and Batches; the other fields belong to the deriver.
	Effects *projection.Derivation
	Packer  *outbox.Packer // makes the Batches

	projection *liveProjection
	masker     *redact.Masker
	clean      cleanRange // lines that masker need not look at
}

// Mask masks the secrets in a text that is stored in addition to the transcript.
func (s *FoldStep) Mask(text string) string { return s.masker.String(text) }

// Save saves the projection at once, even without effects.
func (s *FoldStep) Save() { s.projection.saveNow = true }

const (
	maxCached    = 64              // projections in memory
	maxBurst     = 4 * maxCached   // limit while saves wait for the disk; then folding waits too
	maxCacheSize = 8 << 20         // of the projections' encodings, approximately
	cacheTime    = 2 * time.Minute // a projection without lines and queries leaves memory after this
	sliceSize    = 1 << 20         // bytes of one transcript folded before the next one's turn
)

// Config holds the optional settings of New.
type Config struct {
	LineCap int64 // longer lines are skipped; in bytes
	Log     *slog.Logger
}

// Deriver folds transcripts. All folding happens in Run's goroutine; other goroutines leave work in schedule and
// queries.
type Deriver struct {
	cfg         Config
	projections *projection.DB
	files       Files
	policy      Policy
	observers   []Observer

	bell     outbox.Bell
	schedule schedule
	clean    cleanLines
	queries  queryQueue
	stopped  chan struct{} // closed when Run has ended

	// Owned by Run's goroutine:
	cache  cache
	saver  saver
	packer *outbox.Packer // nil while the cache is empty
	buf    []byte         // nil while the cache is empty

	foldedLines atomic.Int64
	freed       atomic.Bool // the cache has become empty
}

// ErrStopping is returned to callers that wait while the daemon stops.
var ErrStopping = errors.New("the daemon is stopping")

// New returns a deriver. Run starts it.
func New(cfg Config, projections *projection.DB, files Files, policy Policy, observers ...Observer) *Deriver {
	return &Deriver{
		cfg: cfg, projections: projections, files: files, policy: policy, observers: observers,
		bell: outbox.NewBell(), stopped: make(chan struct{}), saver: newSaver(projections),
		schedule: schedule{live: map[tail.FileID]struct{}{}, backfill: map[tail.FileID]struct{}{},
			failed: map[tail.FileID]failure{}},
		cache: cache{projections: map[tail.FileID]*liveProjection{}},
	}
}

// Committed is called for every committed chunk. It never blocks.
func (d *Deriver) Committed(c *tail.Chunk, by *route.Decision) {
	d.clean.note(c, by)
	f := &by.Facts
	watched := f.Watched && c.To.Offset > f.WatchedFrom
	if c.File.Kind == tail.History || !watched && !by.Compaction {
		return
	}
	d.schedule.add(c.File.ID, !watched)
	if watched || c.Live {
		d.bell.Ring()
	}
}

// CaughtUp reports whether every scheduled transcript is folded to its end and all effects are in the outbox. Until Run
// knows what an earlier daemon has left, it is false.
func (d *Deriver) CaughtUp() bool { return d.schedule.caughtUp() }

// waitPoll is how often Until checks.
const waitPoll = 2 * time.Millisecond

// Until returns when something is so. The error is ctx's, or ErrStopping once stopped is closed; nil never is.
func Until(ctx context.Context, stopped <-chan struct{}, so func() bool) error {
	tick := time.NewTicker(waitPoll)
	defer tick.Stop()
	for !so() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-stopped:
			return ErrStopping
		case <-tick.C:
		}
	}
	return nil
}

// Wait returns when the deriver has caught up. The error is ctx's, or ErrStopping.
func (d *Deriver) Wait(ctx context.Context) error {
	d.bell.Ring()
	return Until(ctx, d.stopped, d.CaughtUp)
}

// Stats are figures of a deriver since its start.
type Stats struct {
	FoldedLines int64
	Cached      int64 // projections in memory
}

// Stats returns the current figures.
func (d *Deriver) Stats() Stats {
	return Stats{FoldedLines: d.foldedLines.Load(), Cached: d.cache.count.Load()}
}

// Freed reports whether the cache has become empty since the last call: memory can be returned to the system.
func (d *Deriver) Freed() bool { return d.freed.Swap(false) }
