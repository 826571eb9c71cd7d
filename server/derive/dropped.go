package derive

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/transcript"
)

const (
	// maxDropped limits how many lines of one rewrite are searched for; later ones count as present.
	maxDropped = 200_000
	// maxPending is how many rewrites are kept, so that each line of a live session is read once.
	maxPending = 4
)

// dropFinder keeps which lines are still missing from the newest generations. For one goroutine.
type dropFinder struct {
	seed  maphash.Seed
	ready bool
	list  []*pendingDrop // most recently used last
}

// pendingDrop is what a generation may have dropped from the file.
type pendingDrop struct {
	stream, epoch, generation int64
	missing                   []droppedLine // by hash
	seen                      int64         // lines of the view before this one have been matched
}

// droppedLine is a line of the view before, with the hash of its bytes.
type droppedLine struct {
	hash uint64
	line int64
}

// dropped records in out which lines the segment's generation dropped from the file so far. The first generation drops
// none.
func (w *derivation) dropped(ctx context.Context, snap server.Snapshot, s *segment, out *server.Derivation) error {
	if s.at == 0 {
		return nil
	}
	r, err := w.drops.find(ctx, snap, w.task.Stream, s)
	if err != nil {
		return err
	}
	view, err := server.ViewOf(s.generations, s.generation().Number)
	if err != nil {
		return err
	}
	if err := w.drops.match(ctx, snap, r, view); err != nil {
		return err
	}
	x := server.Rewrite{Epoch: s.epoch.ID, Generation: s.generation().Number, Lines: int64(len(r.missing))}
	for i, l := range r.missing {
		if i == 0 || l.line < x.First {
			x.First = l.line
		}
		x.Last = max(x.Last, l.line+1)
	}
	out.Drops = []server.Rewrite{x}
	return nil
}

// find returns the rewrite that began a segment's generation: the one kept, or a new one with all lines of the view
// before that the generation replaces.
func (r *dropFinder) find(ctx context.Context, snap server.Snapshot, stream int64, s *segment) (*pendingDrop, error) {
	if !r.ready {
		r.seed, r.ready = maphash.MakeSeed(), true
	}
	number := s.generation().Number
	for i, x := range r.list {
		if x.stream == stream && x.epoch == s.epoch.ID && x.generation == number {
			r.list = append(slices.Delete(r.list, i, i+1), x)
			return x, nil
		}
	}
	before, err := server.ViewOf(s.generations, s.generations[s.at-1].Number)
	if err != nil {
		return nil, err
	}
	from := s.generation().RewoundTo
	x := &pendingDrop{stream: stream, epoch: s.epoch.ID, generation: number, seen: from}
	err = r.each(ctx, snap, before.Between(from, before.Total), func(hash uint64, line int64) error {
		if len(x.missing) == maxDropped {
			return errStepFull
		}
		x.missing = append(x.missing, droppedLine{hash, line})
		return nil
	})
	if err != nil && !errors.Is(err, errStepFull) {
		return nil, err
	}
	slices.SortFunc(x.missing, func(a, b droppedLine) int {
		return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.line, b.line))
	})
	if r.list = append(r.list, x); len(r.list) > maxPending {
		r.list = slices.Delete(r.list, 0, 1)
	}
	return x, nil
}

// match removes the missing lines that new lines of the view have.
func (r *dropFinder) match(ctx context.Context, snap server.Snapshot, x *pendingDrop, view server.View) error {
	if len(x.missing) == 0 || x.seen >= view.Total {
		return nil
	}
	err := r.each(ctx, snap, view.Between(x.seen, view.Total), func(hash uint64, _ int64) error {
		i, ok := slices.BinarySearchFunc(x.missing, hash, func(l droppedLine, h uint64) int { return cmp.Compare(l.hash, h) })
		if !ok {
			return nil
		}
		for ; i < len(x.missing) && x.missing[i].hash == hash; i++ {
			x.missing[i].line = found
		}
		return nil
	})
	x.missing = slices.DeleteFunc(x.missing, func(l droppedLine) bool { return l.line == found })
	x.seen = view.Total
	return err
}

// found replaces the number of a missing line once it is found.
const found = -1

// drop removes what is remembered of a stream.
func (r *dropFinder) drop(stream int64) {
	r.list = slices.DeleteFunc(r.list, func(x *pendingDrop) bool { return x.stream == stream })
}

// each hashes lines, except blank ones.
func (r *dropFinder) each(ctx context.Context, snap server.Snapshot, spans []server.Span,
	yield func(hash uint64, line int64) error) error {
	for _, span := range spans {
		err := snap.Lines(ctx, span, func(l server.Line) error {
			raw := l.Raw
			if l.Kind == server.Oversize {
				if note, err := transcript.ParseOversize(raw); err == nil {
					raw = note.SHA256[:]
				}
			} else if len(bytes.TrimSpace(raw)) == 0 {
				return nil
			}
			return yield(maphash.Bytes(r.seed, raw), l.Index)
		})
		if err != nil {
			return fmt.Errorf("compare lines: %w", err)
		}
	}
	return nil
}
