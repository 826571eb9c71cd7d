package derive

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/transcript/provenance"
	"github.com/ccship/ccship/transcript/session"
)

const (
	// stepBytes, stepText, stepAnswers and stepMoments end a step: bytes of lines that were read, bytes of text, answers
	// and moments that are to be stored. A step is one transaction, behind which lines may wait.
	stepBytes   = 4 << 20
	stepText    = 1 << 20
	stepAnswers = 1000
	stepMoments = 1000
	// stateShare is how many times its own length in lines a fold's state is not stored again for, within stateLeast
	// and stateMost: so much may have to be read again to continue it.
	stateShare = 4
	stateLeast = 64 << 10
	stateMost  = 2 << 20
	// stateStep is the same while more is to be derived.
	stateStep = 16 << 20
)

var errStepFull = errors.New("step full")

// derivation is the work on one task.
type derivation struct {
	store   Derivable
	task    server.Task
	facts   server.Summary
	before  server.Summary // as stored when the task was leased
	origin  origin         // of the newest view, as far as it is folded
	last    bool           // the step after which the task is given back
	clock   time.Time      // the latest time seen: of records that have none
	turn    int64          // the line of the newest prompt; negative: not known
	arrived time.Time      // of records that come before any time
	// fold is that of the newest view up to task.Place, nil when it has to be read from task.State.
	fold *session.Fold
	// times is what the fold's lines make of the timeline; nil when fold is.
	times *session.TimelineBuilder
	// wrote is what they make of edits; nil when fold is.
	wrote *provenance.Builder
	// state is the length of the stored state, 0 for none; since is the bytes of lines folded after it.
	state, since int
	drop         *pendingDrop // of the newest generation; nil: not looked for
	weight       int          // in kept
}

// size is about how much memory is kept of a stream.
func (w *derivation) size() int {
	n := 4<<10 + 4*max(w.state, stateLeast/16)
	if w.drop != nil {
		n += 16 * cap(w.drop.missing)
	}
	return n
}

// stored notes that a step is stored.
func (w *derivation) stored(out *server.Derivation) {
	w.task.Position = out.Position
	switch {
	case !out.KeepState && len(out.State) > 0:
		w.state, w.since = len(out.State), 0
	case !out.KeepState:
		w.state = 0
	}
}

// segment is the lines of one generation that come next.
type segment struct {
	epoch       server.Epoch
	generations []server.Generation // of the epoch
	at          int                 // of them
	from        int64
	newest      bool // the newest generation of the epoch in front
}

func (s *segment) generation() server.Generation { return s.generations[s.at] }

func (s *segment) end() int64 { return max(s.generation().EndLine, s.generation().RewoundTo) }

// step derives from the next stretch of lines. The snapshots that it reads are closed before anything is stored.
func (w *derivation) step(ctx context.Context) (*server.Derivation, error) {
	snap, err := w.view(ctx, "")
	if err != nil {
		return nil, err
	}
	w.arrived = snap.Session().First
	s, snap, err := w.next(ctx, snap)
	if err != nil {
		return nil, err
	}
	var out *server.Derivation
	if s.newest {
		out, err = w.live(ctx, snap, s)
	} else {
		out, err = w.past(ctx, snap, s)
	}
	return out, errors.Join(err, snap.Close())
}

func (w *derivation) view(ctx context.Context, epoch string) (server.Snapshot, error) {
	return w.store.View(ctx, server.Scope{All: true}, server.Ref{Stream: w.task.Stream, Owner: w.task.Owner, Epoch: epoch})
}

// next finds where to continue, and opens the snapshot of its epoch; front, of the newest epoch, is that snapshot or
// is closed. Everything except the newest generation of the newest epoch comes first, oldest first.
func (w *derivation) next(ctx context.Context, front server.Snapshot) (*segment, server.Snapshot, error) {
	epochs := front.Epochs()
	at := len(epochs) - 1
	for i, e := range epochs {
		if e.ID == w.task.Position.Epoch {
			at = i
		}
	}
	for i := at; i > 0; i-- {
		snap, err := w.view(ctx, epochs[i].Name)
		if err != nil {
			return nil, nil, errors.Join(err, front.Close())
		}
		if s := w.segmentIn(epochs[i], snap.Generations(), false); s != nil {
			return s, snap, front.Close()
		}
		if err := snap.Close(); err != nil {
			return nil, nil, errors.Join(err, front.Close())
		}
	}
	return w.segmentIn(epochs[0], front.Generations(), true), front, nil
}

// segmentIn returns the first generation of an epoch that is not fully derived, nil when all are.
func (w *derivation) segmentIn(e server.Epoch, generations []server.Generation, front bool) *segment {
	p := w.task.Position
	for i, g := range generations {
		s := &segment{epoch: e, generations: generations, at: i, newest: front && i == len(generations)-1}
		if p.Epoch == e.ID {
			if g.Number < p.Generation {
				continue
			}
			if g.Number == p.Generation {
				s.from = p.Line
			}
		}
		if s.newest || s.from < s.end() {
			return s
		}
	}
	return nil
}

// past derives texts and answers from lines of a generation that is not the newest.
func (w *derivation) past(ctx context.Context, snap server.Snapshot, s *segment) (*server.Derivation, error) {
	h := w.extractor(snap)
	h.fold, h.wrote, h.keep = &session.Fold{}, &provenance.Builder{Session: h.session}, true
	out := w.begin(s)
	span := server.Span{Generation: s.generation().Number, From: s.from, To: s.end()}
	err := server.Readable(ctx, snap, span, func(l server.Line) error {
		out.Position.Line = l.Index + 1
		return h.line(l)
	}, nil)
	if err != nil && !errors.Is(err, errStepFull) {
		return nil, fmt.Errorf("read lines: %w", err)
	}
	if err == nil {
		out.Position.Line = s.end()
		if err := w.dropped(ctx, snap, s, out); err != nil {
			return nil, err
		}
	}
	h.into(out)
	out.Summary = w.facts
	return out, nil
}

// live continues with the newest view. It folds all of it, but keeps texts and answers only of lines from its own
// generation; those of other lines were derived when their generation was the newest.
func (w *derivation) live(ctx context.Context, snap server.Snapshot, s *segment) (*server.Derivation, error) {
	view, err := server.ViewOf(s.generations, s.generation().Number)
	if err != nil {
		return nil, err
	}
	if err := w.resume(ctx, snap, view, s); err != nil {
		return nil, err
	}
	h := w.extractor(snap)
	h.fold, h.times, h.wrote = w.fold, w.times, w.wrote
	h.wrote.Session = h.session
	out := w.begin(s)
	out.Live, out.LiveFrom = true, s.from
	blank := s.from == 0
	for _, span := range view.Between(s.from, view.Total) {
		h.keep = span.Generation == s.generation().Number
		err := server.Readable(ctx, snap, span, func(l server.Line) error {
			out.Position.Line, blank = l.Index+1, blank && l.Kind == server.Oversize
			return h.line(l)
		}, nil)
		if errors.Is(err, errStepFull) {
			return w.finish(h, out)
		}
		if err != nil {
			return nil, fmt.Errorf("read lines: %w", err)
		}
	}
	out.Position.Line, out.Done = max(view.Total, s.from), true
	if err := w.dropped(ctx, snap, s, out); err != nil {
		return nil, err
	}
	out, err = w.finish(h, out)
	if blank && w.before.Lines > 0 { // all lines were retired: what they summed up to stays known
		w.facts, w.facts.Lines = w.before, out.Position.Line
		out.Summary = w.facts
	}
	return out, err
}

// begin makes an empty derivation of a segment.
func (w *derivation) begin(s *segment) *server.Derivation {
	if p := w.task.Position; p.Epoch != s.epoch.ID || p.Generation != s.generation().Number {
		w.turn = -1
	}
	return &server.Derivation{Task: w.task, Format: Format,
		Position: server.Position{Epoch: s.epoch.ID, Generation: s.generation().Number, Line: s.from}}
}

func (w *derivation) finish(h extractor, out *server.Derivation) (*server.Derivation, error) {
	h.into(out)
	w.facts = factsOf(w.fold.Summary(), out.Position.Line)
	w.facts.Origin, w.facts.Copy = w.origin.name, w.origin.copy
	if out.Summary = w.facts; !out.Done && w.before.Lines > w.facts.Lines {
		out.Summary = w.before // what was known of the session shows until all of it is derived again
	}
	w.since += h.bytes
	most := stateStep
	if out.Done {
		most = min(max(stateShare*w.state, stateLeast), stateMost)
	}
	if w.since < most && !(w.last && !out.Done) && (w.state > 0 || !out.Done) {
		out.KeepState = w.state > 0
		return out, nil
	}
	var err error
	out.State, err = encodeState(w.fold, w.times, w.wrote)
	return out, err
}

// resume restores the fold at the beginning of the segment: from the previous step, from the stored state and the lines
// after it, or by folding all earlier lines again.
func (w *derivation) resume(ctx context.Context, snap server.Snapshot, view server.View, s *segment) error {
	if w.fold != nil && s.from > 0 {
		return nil
	}
	w.fold, w.times, w.wrote, w.origin = &session.Fold{}, &session.TimelineBuilder{}, &provenance.Builder{}, origin{}
	w.state, w.since = 0, 0
	if s.from == 0 {
		return nil
	}
	at, state, err := snap.Folded(ctx)
	if err != nil {
		return err
	}
	from := int64(0)
	if at.Generation == s.generation().Number && at.Line <= s.from && decodeState(state, w.fold, w.times, w.wrote) == nil {
		from, w.state, w.origin = at.Line, len(state), origin{w.before.Origin, w.before.Copy}
	}
	h := extractor{w: w, fold: w.fold, times: w.times, wrote: w.wrote}
	h.wrote.Session = w.extractor(snap).session
	for _, span := range view.Between(from, s.from) {
		err := server.Readable(ctx, snap, span, func(l server.Line) error {
			h.bytes = 0 // nothing is stored of these
			w.since += len(l.Raw)
			err := h.line(l)
			clear(h.moments)
			return err
		}, nil)
		if err != nil {
			return fmt.Errorf("read lines: %w", err)
		}
	}
	return nil
}

// factsOf returns a summary as it is stored.
func factsOf(s session.Summary, lines int64) server.Summary {
	f := server.Summary{
		Title: s.Title, FirstPrompt: s.FirstPrompt, Model: s.Model, Models: s.Models, Branch: s.Branch, Version: s.Version,
		Started: s.Started, Ended: s.Ended, Prompts: s.Prompts, Messages: s.Messages, Tools: s.Tools,
		Errors: s.ToolErrors + s.APIErrors, Compactions: s.Compactions, Context: s.Context.Tokens,
		Window: s.Budget.Window, Limit: s.Budget.Limit, Lines: lines,
	}
	return f
}
