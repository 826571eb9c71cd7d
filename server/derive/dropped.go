package derive

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/transcript"
	"github.com/ccship/ccship/transcript/provenance"
	"github.com/ccship/ccship/transcript/session"
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

// FoldOf returns the fold of the newest view of a snapshot's epoch, and up to where it goes. Both are zero as long as
// nothing is derived, or nothing in this program's format.
func FoldOf(ctx context.Context, snap server.Snapshot) (*session.Fold, server.Position, error) {
	at, state, err := snap.Folded(ctx)
	var fold session.Fold
	var times session.TimelineBuilder
	var wrote provenance.Builder
	if err != nil || decodeState(state, &fold, &times, &wrote) != nil {
		return &session.Fold{}, server.Position{}, err
	}
	return &fold, at, nil
}

// Origin returns the id of the session whose history a session begins with; "" if it is no fork, or as long as nothing
// is derived. Claude Code 2.1.328 names that session in copied records; of other copies, it is the session that had the
// first of the copied answers.
func Origin(ctx context.Context, snap server.Snapshot) (string, error) {
	fold, _, err := FoldOf(ctx, snap)
	if err != nil {
		return "", err
	}
	if from := fold.Summary().ForkedFrom; from != "" {
		return from, nil
	}
	return snap.CopiedFrom(ctx)
}

// origin says which session a transcript is, by its records: see server.Summary.
type origin struct {
	name string
	copy bool
}

// add adds a record of a stream. A file that continues another session begins with that one's records, and has its own
// after them: it is no copy.
func (o *origin) add(stream string, r *transcript.Record) {
	switch {
	case r.UUID == "" || r.SessionID == "":
	case o.name == "":
		o.name, o.copy = r.SessionID+"/"+r.UUID, r.SessionID != stream
	case o.copy && r.SessionID == stream:
		_, first, _ := strings.Cut(o.name, "/")
		o.name, o.copy = stream+"/"+first, false
	}
}

// Cost is what the answers of a row cost. Its Model must be set.
func Cost(p *transcript.Prices, row server.UsageRow) transcript.Cost {
	t := row.Tokens
	u := transcript.Usage{
		Input: t.Input, Output: t.Output, CacheRead: t.CacheRead, CacheWrite5m: t.CacheWrite5m, CacheWrite1h: t.CacheWrite1h,
		WebSearches: t.Searches,
	}
	return p.Cost(row.Model, u, row.Long)
}

// CostOfAll is what the answers of all rows cost together.
func CostOfAll(p *transcript.Prices, rows []server.UsageRow) (sum transcript.Cost) {
	for _, r := range rows {
		sum = sum.Plus(Cost(p, r))
	}
	return sum
}

// shift is what a worker does with the tasks that it leased at once. What is derived of several streams is stored in
// one transaction.
type shift struct {
	d     *Deriver
	ends  time.Time
	rest  bool  // streams rest when they are done
	steps int   // that were made
	first error // of a task

	group []saving
	text  int // bytes of texts in the group
	rows  int
}

// saving is a step that waits to be stored.
type saving struct {
	w   *derivation
	out *server.Derivation
}

// derive works on every task: until it is done, or in the first step after the shift has ended.
func (s *shift) derive(ctx context.Context, tasks []server.Task) {
	for _, task := range tasks {
		w := s.d.kept.take(s.d.Store, &task)
		for ended := false; !ended; {
			w.last = time.Now().After(s.ends)
			out, err := w.step(ctx)
			if err != nil {
				s.failed(&task, err)
				break
			}
			out.Released = !out.Done && w.last
			if s.rest && out.Done {
				out.Rest = rest
			}
			ended = out.Done || out.Released
			if s.add(w, out); !ended || s.full() {
				ended = !s.save(ctx) || ended
			}
		}
	}
	s.save(ctx)
}

// failed keeps the first error. Another worker has the stream, it has changed, or it was forgotten: that is none.
func (s *shift) failed(task *server.Task, err error) {
	if errors.Is(err, server.ErrStale) || errors.Is(err, server.ErrNotFound) || s.first != nil {
		return
	}
	s.first = fmt.Errorf("derive session %q: %w", task.SessionID, err)
}

func (s *shift) add(w *derivation, out *server.Derivation) {
	s.steps++
	s.group = append(s.group, saving{w, out})
	for i := range out.Texts {
		s.text += len(out.Texts[i].Text)
	}
	s.rows += len(out.Answers) + len(out.Moments)
}

// full says that the group is as much as a transaction may write.
func (s *shift) full() bool {
	return s.text >= stepText || s.rows >= stepAnswers || len(s.group) >= leaseMost
}

// save stores the group; steps that cannot be stored together are stored one by one. It reports whether the last one
// is stored.
func (s *shift) save(ctx context.Context) (saved bool) {
	group := s.group
	s.group, s.text, s.rows = nil, 0, 0
	if len(group) == 0 {
		return true
	}
	list := make([]*server.Derivation, len(group))
	for i, x := range group {
		list[i] = x.out
	}
	err := s.d.Store.SaveDerived(ctx, list...)
	for i, x := range group {
		err := err
		if err != nil && len(group) > 1 {
			err = s.d.Store.SaveDerived(ctx, list[i])
		}
		if saved = err == nil; !saved {
			s.failed(&x.w.task, err)
			continue
		}
		x.w.stored(x.out)
		if x.out.Done {
			s.d.kept.put(x.w)
		}
	}
	return saved
}
