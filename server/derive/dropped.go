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

// maxDropped limits how many lines of one rewrite are searched for; later ones count as present.
const maxDropped = 200_000

// pendingDrop is what a generation may have dropped from the file.
type pendingDrop struct {
	seed              maphash.Seed
	epoch, generation int64
	missing           []droppedLine // by hash
	seen              int64         // lines of the view before this one have been matched
}

// droppedLine is a line of the view before, with the hash of its bytes.
type droppedLine struct {
	hash uint64
	line int64
}

// dropped records in out which lines the segment's generation dropped from the file so far. The first generation
// drops none.
func (w *derivation) dropped(ctx context.Context, snap server.Snapshot, s *segment, out *server.Derivation) error {
	if s.at == 0 {
		return nil
	}
	if gone, err := w.retired(ctx, snap, s); err != nil || gone {
		return err // what is stored of the rewrite was derived when the lines were there
	}
	r, err := w.rewrite(ctx, snap, s)
	if err != nil {
		return err
	}
	view, err := server.ViewOf(s.generations, s.generation().Number)
	if err != nil {
		return err
	}
	if err := r.match(ctx, snap, view); err != nil {
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

// retired reports whether some of the lines that a segment's generation replaces were removed since.
func (w *derivation) retired(ctx context.Context, snap server.Snapshot, s *segment) (gone bool, err error) {
	before, err := server.ViewOf(s.generations, s.generations[s.at-1].Number)
	if err != nil {
		return false, err
	}
	for _, span := range before.Between(s.generation().RewoundTo, before.Total) {
		err := snap.Retired(ctx, span, false, func(*server.RetiredRun) error { gone = true; return nil })
		if err != nil {
			return false, fmt.Errorf("compare lines: %w", err)
		}
	}
	return gone, nil
}

// rewrite returns what began a segment's generation: what is kept of it, or anew all lines of the view before that
// the generation replaces.
func (w *derivation) rewrite(ctx context.Context, snap server.Snapshot, s *segment) (*pendingDrop, error) {
	number := s.generation().Number
	if x := w.drop; x != nil && x.epoch == s.epoch.ID && x.generation == number {
		return x, nil
	}
	before, err := server.ViewOf(s.generations, s.generations[s.at-1].Number)
	if err != nil {
		return nil, err
	}
	from := s.generation().RewoundTo
	x := &pendingDrop{seed: maphash.MakeSeed(), epoch: s.epoch.ID, generation: number, seen: from}
	err = x.each(ctx, snap, before.Between(from, before.Total), func(hash uint64, line int64) error {
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
	w.drop = x
	return x, nil
}

// match removes the missing lines that new lines of the view have.
func (x *pendingDrop) match(ctx context.Context, snap server.Snapshot, view server.View) error {
	if len(x.missing) == 0 || x.seen >= view.Total {
		return nil
	}
	err := x.each(ctx, snap, view.Between(x.seen, view.Total), func(hash uint64, _ int64) error {
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

// each hashes lines, except blank ones.
func (x *pendingDrop) each(ctx context.Context, snap server.Snapshot, spans []server.Span,
	yield func(hash uint64, line int64) error) error {
	for _, span := range spans {
		err := server.Readable(ctx, snap, span, func(l server.Line) error {
			raw := l.Raw
			if l.Kind == server.Oversize {
				if note, err := transcript.ParseOversize(raw); err == nil {
					raw = note.SHA256[:]
				}
			} else if len(bytes.TrimSpace(raw)) == 0 {
				return nil
			}
			return yield(maphash.Bytes(x.seed, raw), l.Index)
		}, nil)
		if err != nil {
			return fmt.Errorf("compare lines: %w", err)
		}
	}
	return nil
}
