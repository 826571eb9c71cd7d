package daemon

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/tail"
	"github.com/ccship/ccship/transcript/session"
)

// Understanding is a second stage behind delivery: the deriver reads what the relay has committed once more from the
// disk, and folds it into what it means. It follows a transcript only when there is a reason: lines were written while
// a daemon watched, somebody asks for the session, or a compaction lies in what was imported. Delivery never waits for
// it, and all of it can be made again from the transcripts.

// observer hears everything that a pass over new lines brings, in file order, and adds to the step that becomes
// durable. All calls come from one goroutine, and must not wait for a disk or anybody else.
type observer interface {
	// begin starts a pass over the new lines of one transcript. A long catch-up is several passes.
	begin(p *pass)
	// event is one thing that a line brought; p.session and p.log have taken its record, p.marks is the observer's to
	// feed. watched says that the line was written while a daemon looked on, and has had no effects yet: only then
	// anybody may be told or sent anything new because of it.
	event(p *pass, e *session.Event, watched bool)
	// end comes behind the last line. What it adds to the step is kept with the place behind that line. An error undoes
	// what is not durable yet, and the lines come again.
	end(p *pass) error
}

// pass is one transcript at a moment of its folding, or of a question.
type pass struct {
	file    tail.Tracked
	facts   state.Facts
	session *session.Session // as of the event
	marks   *session.Marks
	log     *session.MessageLog
	line    int64             // behind the last line that was folded
	step    *state.Derivation // Checkpoints, Pending, Documents and Batches are to be added to
	packer  *outbox.Packer
	first   bool // refolded from line 0
	follow  *following
}

// keep has the step stored at once, though only the fold changed.
func (p *pass) keep() { p.follow.urgent = true }

const (
	saveEvery  = 1500 * time.Millisecond // what only changes the fold is stored so long after the first change
	quietAfter = 2 * time.Minute         // without lines and questions a transcript leaves the memory
	mostHot    = 64                      // transcripts in memory
	mostBurst  = 4 * mostHot             // the same while the disk is waited for: then folding waits too
	hotBytes   = 8 << 20                 // of their encodings, about
	sliceBytes = 1 << 20                 // of one transcript that are folded before others have their turn
	giveUp     = 6                       // failures in a row, after which a file is left until it changes
	firstRetry = 50 * time.Millisecond   // and twice as long after each
)

// deriver understands transcripts. All folding is done by the goroutine of run; what others want of it they leave
// behind under mu and ring the bell.
type deriver struct {
	db        *state.DB
	log       *slog.Logger
	where     func(tail.FileID) (tail.Tracked, bool) // as the tailer knows it
	barred    func(*tail.Tracked, *state.Facts) bool // it was forgotten or left out: nothing more comes of it
	importing func() bool
	rested    func()                  // nothing is in memory any more
	stored    func(*state.Derivation) // hears of what is durable; must not wait
	lineCap   int64
	limits    func() messageLimits
	observers []observer // set before run

	bell chan struct{}
	gone chan struct{} // closed when run has ended

	mu     sync.Mutex
	wanted map[tail.FileID]struct{} // of which more was read than is understood; guarded by mu
	later  map[tail.FileID]struct{} // those of an import; guarded by mu
	asks   []*ask                   // guarded by mu
	saved  []outcome                // of saves, not looked at yet; guarded by mu
	active bool                     // run is at work; guarded by mu
	begun  bool                     // run was called; guarded by mu
	owed   int                      // transcripts with effects that are not stored; guarded by mu

	// Of run alone:
	hot    map[tail.FileID]*following
	failed map[tail.FileID]failure
	saves  chan []save
	flight bool           // a list of saves is on its way
	full   bool           // something has to leave the memory, and is not stored yet
	packer *outbox.Packer // nil while nothing is in memory, as is:
	buf    []byte

	folded   atomic.Int64 // lines
	inMemory atomic.Int64 // len(hot)
}

// messageLimits are the options of the short history.
type messageLimits struct{ kept, input, output int }

// failure is a transcript that could not be read.
type failure struct {
	times int
	after time.Time // when it is tried again; zero: not before something happens
}

func newDeriver(db *state.DB, log *slog.Logger) *deriver {
	return &deriver{
		db: db, log: log, bell: make(chan struct{}, 1), gone: make(chan struct{}),
		wanted: map[tail.FileID]struct{}{}, later: map[tail.FileID]struct{}{},
		hot: map[tail.FileID]*following{}, failed: map[tail.FileID]failure{}, saves: make(chan []save, 1),
		barred: func(*tail.Tracked, *state.Facts) bool { return false }, importing: func() bool { return false }, rested: func() {}, stored: func(*state.Derivation) {},
		limits: func() messageLimits { return messageLimits{} },
	}
}

func (v *deriver) ring() {
	select {
	case v.bell <- struct{}{}:
	default:
	}
}

// note hears of a durable chunk. It never waits.
func (v *deriver) note(c *tail.Chunk, f *state.Facts, compaction bool) {
	watched := f.Watched && c.To.Offset > f.WatchedFrom
	if c.File.Kind == tail.History || !watched && !compaction {
		return
	}
	v.mu.Lock()
	if watched {
		v.wanted[c.File.ID] = struct{}{}
	} else {
		v.later[c.File.ID] = struct{}{}
	}
	v.mu.Unlock()
	if watched || c.Live {
		v.ring()
	}
}

// watch says from where on a file's lines count as watched, once a chunk of it is durable. again says that its lines
// are delivered anew and are no news.
func watch(f *state.Facts, c *tail.Chunk, again bool) {
	switch {
	case c.File.Kind == tail.History:
	case again:
		f.WatchedFrom = max(f.WatchedFrom, c.Prev.Offset)
	case c.From != c.Prev && (!f.Watched || c.From.Offset < f.WatchedFrom):
		// What was written before anybody looked is another text now: as much as there was, and all there is, counts as
		// written before. A file that is rewritten in place is seen empty at times.
		f.WatchedFrom = max(c.Prev.Offset, c.File.Stat.Size)
	case !f.Watched && c.To.Offset > max(f.WatchedFrom, c.Before):
		f.Watched, f.WatchedFrom = true, max(f.WatchedFrom, c.Before, c.From.Offset)
	}
}

// settled says whether everything that is followed is understood, and its effects are in the outbox.
func (v *deriver) settled() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.wanted)+len(v.later)+v.owed == 0 && !v.active
}

// wait returns when settled.
func (v *deriver) wait(ctx context.Context) error {
	v.ring()
	for !v.settled() {
		select {
		case <-v.gone:
			return errStopping
		default:
		}
		if err := pause(ctx, syncPoll); err != nil {
			return err
		}
	}
	return nil
}

// wireDeriver makes the deriver, behind relay and tailer.
func (d *Daemon) wireDeriver() {
	v := newDeriver(d.db, d.log)
	v.where, v.lineCap = d.tailer.File, d.cfg.LineCap
	v.limits = func() messageLimits {
		c := d.conf.Load()
		return messageLimits{kept: c.MessagesKept, input: c.MessageInputLimit, output: c.MessageOutputLimit}
	}
	v.barred = func(t *tail.Tracked, f *state.Facts) bool {
		if d.desk.graves.has(d.desk.streamOf(f, t.File)) {
			return true
		}
		_, out := d.goesTo(f)
		return out != ""
	}
	v.importing = func() bool { return d.tailer.Stats().Importing }
	v.rested = func() { d.stirred.Store(true) }
	v.observers = append(v.observers, &marker{db: d.db})
	d.derive, d.relay.derive = v, v
}
