package daemon

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/ccship/ccship/daemon/attachment"
	"github.com/ccship/ccship/daemon/checkpoint"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/derive"
	"github.com/ccship/ccship/daemon/rewrite"
	"github.com/ccship/ccship/daemon/route"
	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/tail"
)

// relay is the tailer's Sink: it decides once for each file which stream it is and where its lines go, turns chunks
// into outbox rows, and commits both in one step.
type relay struct {
	db     *state.DB
	router *route.Router // decides
	log    *slog.Logger
	rows   sync.Pool // *rows
	counts counts

	copies derive.CopyDetector

	events      *bus                  // hears of new transcripts and of rewinds
	rewrites    *rewrite.List         // notes rewinds
	attachments *attachment.Collector // notified of every committed chunk; may be nil
	derive      *derive.Deriver       // notified of every committed chunk; may be nil
}

// counts is what the relay saw since the daemon started.
type counts struct{ malformed, oversize atomic.Int64 }

func newRelay(db *state.DB, router *route.Router, log *slog.Logger) *relay {
	return &relay{
		db: db, router: router, log: log,
		rows: sync.Pool{New: func() any { return &rows{packer: outbox.NewPacker()} }},
	}
}

// Room says whether reading makes sense: there is a server to queue for, and space in the outbox.
func (r *relay) Room(live bool) bool { return r.router.AnyServer() && r.db.Room(live) }

// Deliver commits every chunk whose file has somewhere to go. See tail.Sink.
func (r *relay) Deliver(ctx context.Context, chunks []tail.Chunk) ([]tail.Result, error) {
	results := make([]tail.Result, len(chunks))
	steps := make([]state.Step, 0, len(chunks))
	at := make([]int, 0, len(chunks)) // steps[i] is of chunks[at[i]]
	w := r.rows.Get().(*rows)
	defer func() {
		w.release()
		r.rows.Put(w)
	}()
	w.exclude = r.router.Rules().ExcludeTypes
	var sum tally
	decided := make([]route.Decision, 0, len(chunks)) // of steps
	compactions := make([]bool, 0, len(chunks))       // of steps
	for i := range chunks {
		d, err := r.router.Decide(ctx, &chunks[i])
		if err != nil {
			return nil, err
		}
		if d.Verdict != route.Take {
			results[i] = refusal(&d)
			continue
		}
		steps = append(steps, r.step(&chunks[i], &d, w))
		at, decided, compactions = append(at, i), append(decided, d), append(compactions, w.tally.compaction)
		sum.malformed += w.tally.malformed
		sum.oversize += w.tally.oversize
	}
	if len(steps) == 0 {
		return results, nil
	}
	errs, err := r.commit(ctx, steps, chunks, at)
	if err != nil {
		return nil, err
	}
	for i, err := range errs {
		results[at[i]].Err = err
		if err == nil {
			r.tell(&chunks[at[i]], &decided[i])
			if r.derive != nil {
				r.derive.Note(&chunks[at[i]], &steps[i].Facts, compactions[i])
			}
		}
	}
	r.counts.malformed.Add(sum.malformed)
	r.counts.oversize.Add(sum.oversize)
	return results, nil
}

// commit makes steps durable, and around that what is left out of histories. steps[i] is of chunks[at[i]].
func (r *relay) commit(ctx context.Context, steps []state.Step, chunks []tail.Chunk, at []int) ([]error, error) {
	histories := slices.ContainsFunc(at, func(i int) bool { return chunks[i].File.Kind == tail.History })
	if histories {
		if err := r.router.History.Persist(ctx); err != nil {
			return nil, err
		}
	}
	errs, err := r.db.Commit(ctx, steps)
	if err != nil || !histories {
		return errs, err
	}
	for i, err := range errs {
		c := &chunks[at[i]]
		if err != nil || c.File.Kind != tail.History || c.From == c.Prev || c.From.Offset > 0 {
			continue
		}
		if err := r.router.History.Restarted(ctx, c.File.ID); err != nil {
			r.log.Warn("a history may be delivered once more at the next start", "err", err)
		}
	}
	return errs, nil
}

// step turns one chunk into the durable move of its file.
func (r *relay) step(c *tail.Chunk, d *route.Decision, w *rows) state.Step {
	facts := d.Facts
	r.copies.Watch(&facts, c, d.DestinationChanged)
	if c.From != c.Prev {
		facts.RewoundTo = c.From.Line
		if c.From.Offset == 0 {
			facts.Excluded = 0
		}
	}
	w.omits = nil
	if c.File.Kind == tail.History {
		w.omits = func(line []byte) bool { return r.router.History.Excludes(c.File.ID, line) }
	}
	facts.Stream.ID = uint64(c.File.ID)
	facts.Stream.Path = c.File.RelPath()
	batches := w.build(c, &facts)
	if d.DestinationChanged {
		batches = r.resendCheckpoints(batches, c.File.ID, w.packer)
	}
	facts.Excluded += w.tally.excluded
	facts.Compacted = facts.Compacted || w.tally.compaction
	return state.Step{
		Prev: c.Prev, From: c.From, Tracked: c.Tracked, Marks: c.Marks,
		Facts: facts, Batches: batches, Live: c.Live,
	}
}

// resendCheckpoints adds the checkpoints of a transcript whose lines go to another server from here on.
func (r *relay) resendCheckpoints(batches []outbox.Batch, id tail.FileID, p *outbox.Packer) []outbox.Batch {
	again, err := checkpoint.Batches(context.Background(), r.db, p, id)
	if err != nil {
		r.log.Warn("the checkpoints of a session that goes to another server now are not sent there", "err", err)
	}
	return append(batches, again...)
}

// refusal is what the tailer is told of a chunk that is not taken. For it an excluded file is one that is not taken yet.
func refusal(d *route.Decision) tail.Result {
	if d.Verdict == route.Reread {
		return tail.Result{Err: tail.ErrReread}
	}
	return tail.Result{Err: tail.ErrLater, After: d.After}
}

// tell announces what a durable chunk is the first word of.
func (r *relay) tell(c *tail.Chunk, d *route.Decision) {
	if r.attachments != nil {
		r.attachments.Committed(c, &d.Facts)
	}
	if c.From != c.Prev && !d.DestinationChanged && r.rewrites != nil {
		r.rewrites.Rewound(c, &d.Facts)
	}
	if r.events.quiet() {
		return
	}
	t := control.TranscriptEvent{
		Session: d.Facts.Stream.SessionID, Parent: d.Facts.Stream.Parent, Path: c.File.Path, Cwd: d.Facts.Stream.Cwd,
		Project: d.Facts.Stream.Project, Generation: c.To.Generation, Line: c.From.Line,
	}
	switch {
	case d.New:
		r.events.publish(control.Event{Type: control.EventTranscript, Transcript: &t})
	case c.From != c.Prev && !d.DestinationChanged:
		r.events.publish(control.Event{Type: control.EventRewind, Transcript: &t})
	}
}

var _ tail.Sink = (*relay)(nil)
