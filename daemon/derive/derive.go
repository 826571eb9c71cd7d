// Package derive folds committed lines into projections: what sessions mean. It reads transcripts again after delivery,
// keeps projections in the state and a few in memory, and answers queries about them. It does not know what follows
// from an event; observers do. Delivery never waits for it, and every projection can be rebuilt from its transcript.
package derive

import (
	"context"
	"errors"
	"io/fs"
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

// Run folds what is scheduled until ctx is done, then saves all unsaved projections. Queries come first, and
// transcripts take turns, one slice each, so that a large one does not delay the others.
func (d *Deriver) Run(ctx context.Context) error {
	d.queries.start()
	defer close(d.stopped)
	saved := make(chan struct{})
	go func() { defer close(saved); d.saver.run() }()
	defer func() {
		close(d.saver.in)
		<-saved
		d.queries.refuse(ErrStopping)
	}()
	d.scheduleLagging(ctx)
	d.schedule.begin()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		if d.nextWork(ctx) {
			continue
		}
		pause := d.idle(time.Now())
		if pause == 0 {
			continue
		}
		timer.Reset(pause)
		select {
		case <-ctx.Done():
		case <-d.bell:
		case results := <-d.saver.out:
			d.finishSaves(results)
		case <-timer.C:
		}
	}
	d.saveAll()
	return nil
}

// scheduleLagging schedules the transcripts that an earlier daemon has not folded to their end.
func (d *Deriver) scheduleLagging(ctx context.Context) {
	ids, err := d.projections.Sessions.Lagging(ctx)
	if err != nil {
		d.cfg.Log.Warn("cannot find the sessions to catch up with; each waits until something happens in it", "err", err)
		return
	}
	for _, id := range ids {
		d.schedule.add(id, false)
	}
}

// nextWork does one piece of work and reports whether there was any: a slice for a query and a slice of a scheduled
// transcript, so that neither waits for the other.
func (d *Deriver) nextWork(ctx context.Context) bool {
	select {
	case results := <-d.saver.out:
		d.finishSaves(results)
	default:
	}
	q := d.queries.next()
	if q != nil {
		d.answer(ctx, q)
	}
	if len(d.cache.projections) >= maxBurst {
		d.save(false)
		return q != nil // otherwise wait for the saver's report, or for a retry
	}
	id, ok := d.schedule.nextLive()
	backfill := false
	if !ok && d.schedule.hasBackfill() && !d.files.Stats().Importing {
		id, ok = d.schedule.nextBackfill()
		backfill = true
	}
	if ok {
		d.foldNext(ctx, id, backfill)
	}
	d.save(false)
	return ok || q != nil
}

// foldNext folds one slice of a scheduled transcript.
func (d *Deriver) foldNext(ctx context.Context, id tail.FileID, backfill bool) {
	p, more, err := d.advance(ctx, id)
	if err != nil {
		more = d.foldFailed(id, err)
	} else {
		d.schedule.succeed(id)
	}
	d.schedule.folded(id, backfill, more)
	if p != nil && !more {
		p.transient = backfill
		d.cache.evict(p)
	}
}

// foldFailed reports whether a transcript that could not be folded is tried again.
func (d *Deriver) foldFailed(id tail.FileID, err error) bool {
	if errors.Is(err, state.ErrUnknownFile) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, context.Canceled) {
		d.schedule.succeed(id) // if the file comes back, its next line schedules it
		return false
	}
	if d.schedule.fail(id) {
		return true
	}
	d.cfg.Log.Warn("cannot fold a transcript; it is left alone until it changes", "err", err)
	return false
}

// idle removes unused projections, and returns how long Run can wait; 0: there is work.
func (d *Deriver) idle(now time.Time) time.Duration {
	pause := time.Hour
	for _, p := range d.cache.projections {
		switch {
		case p.saving, d.saver.busy && !p.dirtySince.IsZero(): // the saver reports
		case !p.dirtySince.IsZero():
			pause = min(pause, max(time.Millisecond, p.saveAt().Sub(now)))
		case now.Sub(p.usedAt) >= cacheTime:
			d.cache.remove(p)
			if len(d.cache.projections) == 0 {
				d.buf, d.packer, d.cache.projections = nil, nil, map[tail.FileID]*liveProjection{}
				d.freed.Store(true)
			}
		default:
			pause = min(pause, cacheTime-now.Sub(p.usedAt))
		}
	}
	if d.queries.any() {
		return 0
	}
	return d.schedule.waiting(now, pause)
}

// Watch sets in facts from which offset on a file's lines count as watched, that is, written while a daemon ran. Call
// it for every chunk before its commit. redelivered says that the lines are delivered again: what was written before
// has no further effects.
func (d *CopyDetector) Watch(f *state.Routing, c *tail.Chunk, redelivered bool) {
	if d.isCopy(c, time.Now()) {
		f.WatchedFrom = max(f.WatchedFrom, c.File.Stat.Size)
	}
	watch(f, c, redelivered)
}

// watch is Watch for a file that is not a copy.
func watch(f *state.Routing, c *tail.Chunk, redelivered bool) {
	switch {
	case c.File.Kind == tail.History:
	case redelivered:
		f.WatchedFrom = max(f.WatchedFrom, c.Prev.Offset)
	case c.From != c.Prev && (!f.Watched || c.From.Offset < f.WatchedFrom):
		// The part that was written before a daemon watched has other text now. As many bytes as there were, and all bytes
		// there are, count as written before: a file that is rewritten in place is empty for a moment.
		f.WatchedFrom = max(c.Prev.Offset, c.File.Stat.Size)
	case !f.Watched && c.To.Offset > max(f.WatchedFrom, c.Before):
		f.Watched, f.WatchedFrom = true, max(f.WatchedFrom, c.Before, c.From.Offset)
	}
}
