package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/remote"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/tail"
)

// A deep verify goes beyond the files on disk: to the generations that rewinds ended, and to transcripts that are
// gone. Their bytes are read back from the server and held against the prefix hashes that were taken when they were
// read from the disk. Where those are not known any more it can only say that something is stored without gaps.

// Why something cannot be proven.
const (
	whyEpoch    = "of an earlier state file"
	whyUnkept   = "its hashes are not kept any more"
	whyLeftOut  = "some of its lines were left out or refused"
	whyUnknown  = "not remembered here any more"
	whyOversize = "a line longer than the cap is stored as a digest"
)

// compareHistory compares what lies beyond the files on disk.
func (v *verifier) compareHistory(ctx context.Context, facts map[tail.FileID]state.Facts, session string) error {
	v.report.Deep = &control.DeepReport{}
	byDest, known := map[string][]tail.Tracked{}, map[string]bool{}
	if own := v.d.dests.ownServer(); own != "" && v.d.dests.SpeaksExtension(own) {
		byDest[own] = nil
	}
	for _, t := range v.d.tailer.Files() {
		f := facts[t.File.ID]
		if !f.Decided {
			continue
		}
		known[f.Stream.SessionID] = true
		_, out := v.optedOut[t.File.ID]
		if out || f.Dest == "" || !v.d.dests.SpeaksExtension(f.Dest) || session != "" && !strings.HasPrefix(f.Stream.SessionID, session) {
			continue
		}
		byDest[f.Dest] = append(byDest[f.Dest], t)
	}
	for _, dest := range slices.Sorted(maps.Keys(byDest)) {
		pasts, strangers, err := v.listStored(ctx, dest, known, session)
		if err != nil {
			return err
		}
		files, err := v.withPast(ctx, byDest[dest], facts, pasts)
		if err != nil {
			return err
		}
		for part := range slices.Chunk(files, askAtOnce) {
			if err := v.compareStored(ctx, dest, part, facts); err != nil {
				return err
			}
		}
		if err := v.countStrangers(ctx, dest, strangers); err != nil {
			return err
		}
	}
	return nil
}

// listStored asks a server what it has of this machine: which transcripts have more than their first generation there,
// and those that the state does not remember.
func (v *verifier) listStored(ctx context.Context, dest string, known map[string]bool, session string) (pasts map[string]bool, strangers []remote.Ref, err error) {
	pasts = map[string]bool{}
	q := remote.Query{Machine: &v.d.origin.Machine, Agents: true}
	err = v.d.dests.reader(dest).Sessions(ctx, q, 1000, func(s *remote.Session) bool {
		pasts[s.SessionID] = s.Epochs > 1 || s.Generation > 0
		if !known[s.SessionID] && strings.HasPrefix(s.SessionID, session) {
			strangers = append(strangers, remote.Ref{Session: s.SessionID, Machine: &v.d.origin.Machine})
		}
		return true
	})
	if err != nil {
		return nil, nil, fmt.Errorf("list sessions of this machine: %w", err)
	}
	return pasts, strangers, nil
}

// withPast are the files that have more than what is on disk: by what is remembered here, or by what the server says.
func (v *verifier) withPast(ctx context.Context, files []tail.Tracked, facts map[tail.FileID]state.Facts, pasts map[string]bool) (some []tail.Tracked, err error) {
	for _, t := range files {
		known, err := v.d.db.History(ctx, t.File.ID)
		if err != nil && !errors.Is(err, state.ErrUnknownFile) {
			return nil, err
		}
		if t.Gone != 0 || len(known.Pasts) > 0 || pasts[facts[t.File.ID].Stream.SessionID] {
			some = append(some, t)
		}
	}
	slices.SortFunc(some, func(a, b tail.Tracked) int { return cmp.Compare(a.File.Path, b.File.Path) })
	return some, nil
}

// compareStored compares what a server has of some files beyond their generation on disk.
func (v *verifier) compareStored(ctx context.Context, dest string, files []tail.Tracked, facts map[tail.FileID]state.Facts) error {
	r := v.d.dests.reader(dest)
	var refs []remote.Ref
	for _, t := range files {
		refs = append(refs, remote.Ref{Session: facts[t.File.ID].Stream.SessionID, Machine: &v.d.origin.Machine})
	}
	digests, err := askEpochs(ctx, r, refs)
	if err != nil {
		return err
	}
	forgotten := map[string]bool{}
	if slices.ContainsFunc(digests, func(d remote.Digest) bool { return len(d.Epochs) == 0 }) {
		if forgotten, err = v.forgottenBy(ctx, dest); err != nil {
			return err
		}
	}
	const tries = 3 // one that is rewound meanwhile is asked about again
	for i, t := range files {
		if len(digests[i].Epochs) == 0 && isOf(refs[i].Session, forgotten) {
			continue
		}
		for try := 1; ; try++ {
			h := &hindsight{v: v, r: r, facts: facts[t.File.ID], ref: refs[i], file: t}
			if err := h.look(ctx, digests[i]); err != nil {
				return err
			}
			now, ok := v.d.tailer.File(t.File.ID)
			if len(h.diffs) == 0 || try == tries || !ok || now.Cursor.Generation == h.file.Cursor.Generation && t.Cursor == now.Cursor {
				h.report()
				break
			}
			again, err := askEpochs(ctx, r, refs[i:i+1])
			if err != nil {
				return err
			}
			t, digests[i] = now, again[0]
		}
	}
	return nil
}

// askEpochs asks for all generations of all epochs of some transcripts.
func askEpochs(ctx context.Context, r *remote.Client, refs []remote.Ref) ([]remote.Digest, error) {
	digests := make([]remote.Digest, len(refs))
	err := r.Digests(ctx, refs, true, func(i int, d remote.Digest, err error) error {
		if remote.Is(err, control.CodeNoSession) {
			return nil
		}
		digests[i] = d
		return err
	})
	return digests, err
}

// hindsight looks at one file's past.
type hindsight struct {
	v     *verifier
	r     *remote.Client
	facts state.Facts
	ref   remote.Ref
	file  tail.Tracked

	past, gone, stored control.DeepCount
	why                map[string]int
	diffs              []control.FileDifference
}

// ended is what is known of a generation that is not on disk.
type ended struct {
	cursor  tail.Cursor
	marks   []tail.Mark
	marked  bool
	leftOut bool
	count   *control.DeepCount
}

func (h *hindsight) look(ctx context.Context, d remote.Digest) error {
	h.why = map[string]int{}
	known, err := h.v.d.db.History(ctx, h.file.File.ID)
	if errors.Is(err, state.ErrUnknownFile) {
		return nil
	}
	if err != nil {
		return err
	}
	expected := h.expected(&known)
	has := map[uint32]remote.Generation{}
	for _, e := range d.Epochs {
		for _, g := range e.Generations {
			switch {
			case e.Epoch != h.v.d.origin.Epoch:
				h.unproven(g, whyEpoch)
			case expected[g.Generation] != nil:
				has[g.Generation] = g
			case g.Generation != known.Tracked.Cursor.Generation:
				h.unproven(g, whyUnkept)
			}
		}
	}
	for _, generation := range slices.Sorted(maps.Keys(expected)) {
		e := expected[generation]
		g, ok := has[generation]
		if !ok {
			h.differs(generation, "the server does not have this generation").Missing = []control.Range{{First: 0, Last: e.cursor.Line - 1}}
			continue
		}
		if err := h.compare(ctx, g, e); err != nil {
			return err
		}
	}
	return nil
}

// expected are the generations that this server should have, apart the one that is on disk.
func (h *hindsight) expected(known *state.History) map[uint32]*ended {
	all := map[uint32]*ended{}
	for _, p := range known.Pasts {
		if p.Dest != h.facts.Dest {
			continue // it went elsewhere
		}
		e := &ended{cursor: p.Cursor, leftOut: p.LeftOut || h.incomplete(), count: &h.past}
		e.marks, e.marked = known.MarksOf(p.Generation)
		all[p.Generation] = e
	}
	if t := known.Tracked; t.Gone != 0 && t.Cursor.Line > 0 {
		all[t.Cursor.Generation] = &ended{cursor: t.Cursor, marks: known.Marks, marked: true, leftOut: h.incomplete(), count: &h.gone}
	}
	return all
}

// incomplete says that some lines of the file may rightly not be on the server.
func (h *hindsight) incomplete() bool {
	f := &h.facts
	return f.Excluded > 0 || f.SentBefore > 0 || f.Withheld > 0 || f.Plain || len(h.v.dead[f.Stream.ID]) > 0 || h.v.d.db.Pending(h.file.File.ID) > 0
}

// compare compares one generation with what was known when it ended.
func (h *hindsight) compare(ctx context.Context, g remote.Generation, e *ended) error {
	if g.EndLine < e.cursor.Line {
		h.differs(g.Generation, "").Missing = []control.Range{{First: g.EndLine, Last: e.cursor.Line - 1}}
		return nil
	}
	switch missing := g.Missing - int64(len(g.Oversize)); {
	case missing > 0 && !e.leftOut:
		return h.nameMissing(ctx, g, missing)
	case missing > 0:
		h.unproven(g, whyLeftOut)
		return nil
	case len(g.Oversize) > 0:
		h.unproven(g, whyOversize)
		return nil
	case !e.marked:
		h.unproven(g, whyUnkept)
		return nil
	}
	number := int64(g.Generation)
	file, err := h.r.Raw(ctx, remote.Ref{Session: h.ref.Session, Machine: h.ref.Machine, Epoch: h.v.d.origin.Epoch, Generation: &number}, false)
	if err != nil {
		return err
	}
	defer file.Close()
	last, same, err := tail.HoldsIn(file, e.marks, e.cursor)
	if err != nil {
		return err
	}
	if !same {
		d := h.differs(g.Generation, "somewhere in these lines, by the hashes taken when they were read")
		d.Differ = []control.Range{{First: last.Line, Last: max(last.Line, lineBehind(e, last)-1)}}
		return nil
	}
	add(e.count, g)
	return nil
}

// lineBehind is the first line behind the stretch that begins at a mark.
func lineBehind(e *ended, last tail.Mark) int64 {
	for _, m := range e.marks {
		if m.Offset > last.Offset {
			return m.Line
		}
	}
	return e.cursor.Line
}

// nameMissing says which lines of a generation are not stored.
func (h *hindsight) nameMissing(ctx context.Context, g remote.Generation, missing int64) error {
	d := h.differs(g.Generation, "")
	number := int64(g.Generation)
	oversize := map[int64]bool{}
	for _, o := range g.Oversize {
		oversize[o.Line] = true
	}
	pages := &pages{reader: h.r, ref: remote.Ref{Session: h.ref.Session, Machine: h.ref.Machine, Epoch: h.v.d.origin.Epoch, Generation: &number}}
	for line := int64(0); line < g.EndLine && missing > 0; line++ {
		hash, err := pages.at(ctx, line, g.EndLine)
		if err != nil {
			return err
		}
		if hash == nil && !oversize[line] {
			d.Missing = widen(d.Missing, line)
			missing--
		}
	}
	return nil
}

func (h *hindsight) differs(generation uint32, detail string) *control.FileDifference {
	h.diffs = append(h.diffs, control.FileDifference{
		SessionID: h.facts.Stream.SessionID, Path: h.file.File.Path, Generation: generation, Detail: detail,
	})
	return &h.diffs[len(h.diffs)-1]
}

func (h *hindsight) unproven(g remote.Generation, why string) {
	add(&h.stored, g)
	h.why[why]++
}

func add(c *control.DeepCount, g remote.Generation) {
	c.Generations++
	c.Lines += g.Lines
	c.Bytes += g.Bytes
}

// report adds what was found to the verifier's.
func (h *hindsight) report() {
	h.v.mu.Lock()
	defer h.v.mu.Unlock()
	deep := h.v.report.Deep
	for _, c := range []struct {
		to   *control.DeepCount
		from control.DeepCount
	}{{&deep.Past, h.past}, {&deep.Gone, h.gone}, {&deep.Stored, h.stored}} {
		c.to.Generations += c.from.Generations
		c.to.Lines += c.from.Lines
		c.to.Bytes += c.from.Bytes
	}
	for _, why := range slices.Sorted(maps.Keys(h.why)) {
		deep.Why = addReason(deep.Why, why, h.why[why])
	}
	h.v.report.Differences = append(h.v.report.Differences, h.diffs...)
}

func addReason(list []control.StoredReason, why string, n int) []control.StoredReason {
	for i := range list {
		if list[i].Why == why {
			list[i].Generations += n
			return list
		}
	}
	return append(list, control.StoredReason{Why: why, Generations: n})
}

// countStrangers counts transcripts that the state does not remember.
func (v *verifier) countStrangers(ctx context.Context, dest string, refs []remote.Ref) error {
	for part := range slices.Chunk(refs, askAtOnce) {
		digests, err := askEpochs(ctx, v.d.dests.reader(dest), part)
		if err != nil {
			return err
		}
		h := &hindsight{v: v, why: map[string]int{}}
		for _, d := range digests {
			for _, e := range d.Epochs {
				for _, g := range e.Generations {
					h.unproven(g, whyUnknown)
				}
			}
		}
		h.report()
	}
	return nil
}
