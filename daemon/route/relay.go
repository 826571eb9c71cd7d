package route

import (
	"context"
	"log/slog"
	"slices"
	"sync"

	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/tail"
	"github.com/ccship/ccship/transcript/redact"
)

// Listener is called for every chunk once it is durable. Several chunks may be delivered at once.
type Listener interface {
	// Committed gets a chunk and the decision about it. Both are valid until it returns. It must not block.
	Committed(c *tail.Chunk, d *Decision)
}

// copyDetector sets in a file's facts which of its lines were written while a daemon ran.
type copyDetector interface {
	// Watch is called for every chunk before its commit. redelivered: the lines written so far were delivered before.
	Watch(facts *state.Routing, c *tail.Chunk, redelivered bool)
}

// checkpoints are the checkpoints that the state keeps.
type checkpoints interface {
	// Batches returns all checkpoints of a transcript, oldest first.
	Batches(ctx context.Context, p *outbox.Packer, id tail.FileID) ([]outbox.Batch, error)
}

// masking decides where secrets are masked.
type masking interface {
	// For returns the masker for texts of a project, given its folder, on their way to a server; nil: no masking.
	For(dest, cwd string) *redact.Masker
	// Count gets the masked ranges once they are durable.
	Count(ranges []redact.Range)
}

// Relay is the tailer's sink. It is safe for concurrent use with different files.
type Relay struct {
	State       *state.DB
	Router      *Router
	Copies      copyDetector
	Checkpoints checkpoints
	Masking     masking
	Log         *slog.Logger
	Listeners   []Listener // called in this order; set before the first chunk

	batchers sync.Pool // of *batcher
}

var _ tail.Sink = (*Relay)(nil)

// HasSpace reports whether reading makes sense: there is a server, and space in the outbox.
func (r *Relay) HasSpace(live bool) bool { return r.Router.AnyServer() && r.State.HasCapacity(live) }

// staged is a chunk on its way into the state.
type staged struct {
	chunk    *tail.Chunk
	result   *tail.Result
	decision Decision
	batches  []outbox.Batch
}

// Deliver commits every chunk whose file has a destination. See tail.Sink.
func (r *Relay) Deliver(ctx context.Context, chunks []tail.Chunk) ([]tail.Result, error) {
	results := make([]tail.Result, len(chunks))
	all := make([]staged, 0, len(chunks))
	b, ok := r.batchers.Get().(*batcher)
	if !ok {
		b = &batcher{packer: outbox.NewPacker()}
	}
	defer func() {
		b.release()
		r.batchers.Put(b)
	}()
	b.rules = r.Router.Rules()
	for i := range chunks {
		d, err := r.Router.Decide(ctx, &chunks[i])
		switch {
		case err != nil:
			return nil, err
		case d.Verdict == Take:
			all = append(all, staged{chunk: &chunks[i], result: &results[i], decision: d})
			r.stage(ctx, &all[len(all)-1], b)
		case d.Verdict == Reread:
			results[i].Err = tail.ErrReread
		default: // the tailer treats an excluded file as not taken yet
			results[i] = tail.Result{Err: tail.ErrLater, After: d.After}
		}
	}
	if len(all) == 0 {
		return results, nil
	}
	if err := r.commit(ctx, all); err != nil {
		return nil, err
	}
	r.Masking.Count(b.masked)
	for i := range all {
		if all[i].result.Err != nil {
			continue
		}
		r.restarted(ctx, all[i].chunk, b.rules)
		for _, l := range r.Listeners {
			l.Committed(all[i].chunk, &all[i].decision)
		}
	}
	return results, nil
}

// stage turns a chunk into batches, and its decision into the facts that are committed with them.
func (r *Relay) stage(ctx context.Context, s *staged, b *batcher) {
	c, facts := s.chunk, &s.decision.Facts
	r.Copies.Watch(facts, c, s.decision.DestinationChanged)
	if c.From != c.Prev {
		facts.RewoundTo, facts.Odd = c.From.Line, facts.Odd.Before(c.From.Line)
		if c.From.Offset == 0 {
			facts.Excluded = 0
		}
	}
	b.history, b.masker = nil, r.Masking.For(facts.Dest, facts.Stream.Cwd)
	if c.File.Kind == tail.History {
		b.history = r.Router.History
	}
	facts.Stream.ID = uint64(c.File.ID)
	facts.Stream.Path = c.File.RelPath()
	before := len(b.masked)
	s.batches = b.build(c, facts)
	if len(b.masked) == before && b.excluded == 0 && !c.Sealed {
		s.decision.CleanBy = b.masker
	}
	if s.decision.DestinationChanged {
		s.batches = append(s.batches, r.checkpointsAgain(ctx, c.File.ID, b.packer)...)
	}
	facts.Excluded += b.excluded
	facts.Odd = facts.Odd.Plus(&b.odd)
	facts.Compacted = facts.Compacted || b.compaction
	s.decision.Compaction = b.compaction
}

// checkpointsAgain returns the checkpoints of a transcript whose lines go to another server from now on.
func (r *Relay) checkpointsAgain(ctx context.Context, id tail.FileID, p *outbox.Packer) []outbox.Batch {
	batches, err := r.Checkpoints.Batches(context.WithoutCancel(ctx), p, id)
	if err != nil {
		r.Log.Warn("cannot send a session's checkpoints to its new server", "err", err)
	}
	return batches
}

// restarted notes what is delivered again from line 0.
func (r *Relay) restarted(ctx context.Context, c *tail.Chunk, by *Rules) {
	if c.From == c.Prev || c.From.Offset > 0 {
		return
	}
	err := r.Router.Restarted(ctx, c.File.ID, by)
	if err == nil && c.File.Kind == tail.History {
		err = r.Router.History.Restarted(ctx, c.File.ID)
	}
	if err != nil {
		r.Log.Warn("a transcript may be delivered once more at the next start", "path", c.File.Path, "err", err)
	}
}

// commit makes staged chunks durable, and with them what is left out of prompt histories. The chunks get their results;
// after an error none of them is durable.
func (r *Relay) commit(ctx context.Context, all []staged) error {
	histories := slices.ContainsFunc(all, func(s staged) bool { return s.chunk.File.Kind == tail.History })
	if histories {
		if err := r.Router.History.Persist(ctx); err != nil {
			return err
		}
	}
	steps := make([]state.Step, len(all))
	for i := range all {
		c := all[i].chunk
		steps[i] = state.Step{
			Prev: c.Prev, From: c.From, Tracked: c.Tracked, Marks: c.Marks,
			Routing: all[i].decision.Facts, Batches: all[i].batches,
		}
	}
	errs, err := r.State.Commit(ctx, steps)
	if err != nil {
		return err
	}
	for i, err := range errs {
		all[i].result.Err = err
	}
	return nil
}
