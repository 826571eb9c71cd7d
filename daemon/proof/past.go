package proof

import (
	"cmp"
	"context"
	"errors"
	"io"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/project"
	"github.com/ccship/ccship/daemon/remote"
	"github.com/ccship/ccship/daemon/route"
	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/tail"
	"github.com/ccship/ccship/transcript/redact"
)

// historyCheck compares the past generations of one file.
type historyCheck struct {
	v      *verifier
	reader *remote.Client
	facts  state.Routing
	ref    remote.Ref
	file   tail.Tracked
	disk   []diskHash // of the file's lines, once they are read
	findings
}

// pastGeneration is what is known of a generation that is not on disk.
type pastGeneration struct {
	cursor  tail.Cursor // at its end
	marks   []tail.Mark
	marked  bool // the marks are kept
	leftOut bool // some of its lines may rightly be missing
	count   *control.DeepCount
}

// runUnmoved compares, and adds the findings to the report. If the file is rewound meanwhile it asks the server again.
func (h *historyCheck) runUnmoved(ctx context.Context, has protocol.Digest) error {
	const tries = 3
	for try := 1; ; try++ {
		h.findings = findings{why: map[string]int{}}
		if err := h.run(ctx, has); err != nil {
			return err
		}
		now, ok := h.v.Files.File(h.file.File.ID)
		if len(h.diffs) == 0 || try == tries || !ok || now.Cursor == h.file.Cursor {
			h.v.report.addDeep(&h.findings)
			return nil
		}
		again, err := h.reader.Digests(ctx, []remote.Ref{h.ref}, true)
		if err != nil {
			return err
		}
		h.file, h.disk, has = now, nil, *cmp.Or(again[0], new(protocol.Digest))
	}
}

func (h *historyCheck) run(ctx context.Context, has protocol.Digest) error {
	known, err := h.v.State.Files.History(ctx, h.file.File.ID)
	if errors.Is(err, state.ErrUnknownFile) {
		return nil
	}
	if err != nil {
		return err
	}
	expected := h.expected(&known)
	held := map[uint32]protocol.ViewDigest{}
	for _, e := range has.Epochs {
		for _, g := range e.Generations {
			switch {
			case e.Epoch != h.v.Origin.EpochOf(&h.facts.Stream):
				err = h.judge(ctx, e.Epoch, g, e.Generations)
			case expected[uint32(g.Generation)] != nil:
				held[uint32(g.Generation)] = g
			case uint32(g.Generation) != known.Tracked.Cursor.Generation:
				err = h.judge(ctx, "", g, e.Generations)
			}
			if err != nil {
				return err
			}
		}
	}
	for _, generation := range slices.Sorted(maps.Keys(expected)) {
		past, before := expected[generation], len(h.diffs)
		if g, ok := held[generation]; !ok {
			h.differs(generation, detailNoGeneration).Missing = []control.Range{{First: 0, Last: past.cursor.Line - 1}}
		} else if err := h.compare(ctx, g, past); err != nil {
			return err
		}
		if len(h.diffs) == before {
			continue
		}
		if g, err := h.underFormer(ctx, generation); err != nil {
			return err
		} else if g.EndLine >= past.cursor.Line {
			h.diffs = h.diffs[:before]
			h.unproven(g, whyFormer)
		}
	}
	return nil
}

// underFormer returns the most that the server has of a generation under a former name of this machine: what had ended
// before it took another name, and was not copied then.
func (h *historyCheck) underFormer(ctx context.Context, generation uint32) (found protocol.ViewDigest, err error) {
	var refs []remote.Ref
	for _, name := range h.v.Former {
		refs = append(refs, remote.Ref{Session: h.ref.Session, User: h.ref.User, Machine: &name})
	}
	digests, err := h.reader.Digests(ctx, refs, true)
	if err != nil {
		return found, err
	}
	for _, d := range digests {
		for _, e := range cmp.Or(d, new(protocol.Digest)).Epochs {
			for _, g := range e.Generations {
				if g.Generation == int64(generation) && g.EndLine > found.EndLine {
					found = g
				}
			}
		}
	}
	return found, nil
}

// expected returns the generations that this server should hold, except for the one on disk.
func (h *historyCheck) expected(known *state.History) map[uint32]*pastGeneration {
	all := map[uint32]*pastGeneration{}
	for _, p := range known.Past {
		if p.Dest != h.facts.Dest {
			continue // it went to another server
		}
		e := &pastGeneration{cursor: p.Cursor, leftOut: p.LeftOut || h.incomplete(), count: &h.past}
		e.marks, e.marked = known.MarksOf(p.Generation)
		all[p.Generation] = e
	}
	if t := known.Tracked; t.Gone != 0 && t.Cursor.Line > 0 {
		all[t.Cursor.Generation] = &pastGeneration{
			cursor: t.Cursor, marks: known.Marks, marked: true, leftOut: h.incomplete(), count: &h.vanished,
		}
	}
	return all
}

// incomplete reports whether some lines of the file may rightly be missing on the server.
func (h *historyCheck) incomplete() bool {
	f := &h.facts
	return f.Excluded > 0 || f.SentBefore > 0 || f.Withheld > 0 || f.Plain ||
		len(h.v.deadLines[f.Stream.ID]) > 0 || h.v.State.Outbox.QueuedEntries(h.file.File.ID) > 0
}

// compare compares one generation with what was known when it ended.
func (h *historyCheck) compare(ctx context.Context, g protocol.ViewDigest, past *pastGeneration) error {
	if g.EndLine < past.cursor.Line {
		h.differs(uint32(g.Generation), "").Missing = []control.Range{{First: g.EndLine, Last: past.cursor.Line - 1}}
		return nil
	}
	if g.CountRetired() > 0 && (g.Missing <= int64(len(g.Oversize)) || past.leftOut) {
		add(&h.retired, g) // the hashes taken when the lines were read cannot prove what only hashes are left of
		return nil
	}
	switch missing := g.Missing - int64(len(g.Oversize)); {
	case missing > 0 && !past.leftOut:
		return h.nameMissing(ctx, g, missing)
	case missing > 0:
		h.unproven(g, whyLeftOut)
		return nil
	case len(g.Oversize) > 0:
		h.unproven(g, whyOversize)
		return nil
	case !past.marked:
		h.unproven(g, whyNotKept)
		return nil
	}
	file, err := h.reader.Raw(ctx, h.refOf(g), false)
	if err != nil {
		return err
	}
	defer file.Close()
	last, same, err := tail.VerifyPrefix(file, past.marks, past.cursor)
	if err != nil {
		return err
	}
	if !same {
		if masked, err := h.masked(ctx, g, h.refOf(g)); masked || err != nil {
			h.unproven(g, whyMasked)
			return err
		}
		d := h.differs(uint32(g.Generation), "somewhere in these lines, by the hashes taken when they were read")
		d.Differ = []control.Range{{First: last.Line, Last: max(last.Line, past.lineAfter(last)-1)}}
		return nil
	}
	add(past.count, g)
	return nil
}

// masked reports whether the server's copy of a generation has tokens instead of secrets. The hashes taken when the
// lines were read cannot prove such a copy.
func (h *historyCheck) masked(ctx context.Context, g protocol.ViewDigest, ref remote.Ref) (bool, error) {
	if len(g.Masked) > 0 {
		return true, nil
	}
	if g.CountRetired() > 0 {
		return false, nil
	}
	if h.v.Masking.For(h.facts.Dest, h.facts.Stream.Cwd) == nil && h.v.Masking.Proof() == nil {
		return false, nil
	}
	file, err := h.reader.Raw(ctx, ref, true)
	if err != nil {
		return false, err
	}
	defer file.Close()
	for lines := tail.NewLineReader(file, math.MaxInt64, 64<<10); ; {
		line, err := lines.Next()
		if errors.Is(err, io.EOF) {
			return false, nil
		}
		if err != nil || redact.HasTokens(line.Raw) {
			return err == nil, err
		}
	}
}

// refOf names a generation of the file at its server.
func (h *historyCheck) refOf(g protocol.ViewDigest) remote.Ref {
	number := g.Generation
	return remote.Ref{
		Session: h.ref.Session, User: remote.Me, Machine: h.ref.Machine,
		Epoch: h.v.Origin.EpochOf(&h.facts.Stream), Generation: &number,
	}
}

// lineAfter returns the first line after the segment that begins at a mark.
func (p *pastGeneration) lineAfter(last tail.Mark) int64 {
	for _, m := range p.marks {
		if m.Offset > last.Offset {
			return m.Line
		}
	}
	return p.cursor.Line
}

// nameMissing finds the lines of a generation that are not stored.
func (h *historyCheck) nameMissing(ctx context.Context, g protocol.ViewDigest, missing int64) error {
	d := h.differs(uint32(g.Generation), "")
	oversize := map[int64]bool{}
	for _, o := range g.Oversize {
		oversize[o.Line] = true
	}
	has := NewHashes(h.reader, h.refOf(g))
	for line := int64(0); line < g.EndLine && missing > 0; line++ {
		hash, err := has.At(ctx, line, g.EndLine)
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

// differs adds a difference, for the caller to complete.
func (h *historyCheck) differs(generation uint32, detail string) *control.FileDifference {
	h.diffs = append(h.diffs, control.FileDifference{
		SessionID: h.facts.Stream.SessionID, Path: h.file.File.Path, Generation: generation, Past: true, Detail: detail,
	})
	return &h.diffs[len(h.diffs)-1]
}

// forgetAnswers sums up what servers answer when they are asked to forget a session.
type forgetAnswers struct {
	lines  int64    // removed
	found  bool     // a server had the session
	kept   []string // addresses of the servers that will never remove it
	failed []string // destinations to ask again
}

// askServers asks servers to forget a session, all at once. A server that answered is no longer pending, even if it
// refuses permanently. What gives nothing back where a server with the extension was is a proxy without it: it is asked
// again. The error is the first one.
func (f *Forgetter) askServers(ctx context.Context, session string, dests []string) (a forgetAnswers, first error) {
	gone, errs := make([]remote.Forgotten, len(dests)), make([]error, len(dests))
	var asked sync.WaitGroup
	for i, dest := range dests {
		asked.Go(func() { gone[i], errs[i] = f.Servers.Reader(dest).Forget(ctx, session) })
	}
	asked.Wait()
	var done []string
	for i, dest := range dests {
		err := errs[i]
		final := remote.Is(err, remote.CodeNotAllowed) ||
			remote.Is(err, remote.CodeNoReading) && !f.Servers.SpeaksExtension(dest)
		switch {
		case err == nil:
			a.lines, a.found = a.lines+gone[i].Lines, true
		case remote.Is(err, control.CodeNoSession):
		default:
			first = cmp.Or(first, err)
		}
		if final {
			a.kept = append(a.kept, project.ServerURL(dest))
		}
		if final || err == nil || remote.Is(err, control.CodeNoSession) {
			done = append(done, dest)
		} else {
			a.failed = append(a.failed, dest)
		}
	}
	if len(done) == 0 {
		return a, first
	}
	return a, errors.Join(first, f.Router.Tombstones.Asked(context.WithoutCancel(ctx), session, done))
}

// Settle asks the pending servers, and asks once more those that may have received a request since. A server that fails
// is not asked for further sessions: others are. The errors are joined.
func (f *Forgetter) Settle(ctx context.Context, now time.Time) error {
	var errs []error
	failed := map[string]bool{}
	for _, x := range f.Router.Tombstones.Due(now) {
		dests := x.Pending
		if x.AgainDue(now) {
			dests = x.Dests
			if err := f.Router.Tombstones.AskAgain(ctx, x.Session); err != nil {
				return err
			}
		}
		dests = slices.DeleteFunc(slices.Clone(dests), func(dest string) bool { return failed[dest] })
		answers, err := f.askServers(ctx, x.Session, dests)
		if err != nil {
			f.Log.Debug("cannot ask a server yet to forget a session", "session", x.Session, "err", err)
			errs = append(errs, err)
		}
		for _, dest := range answers.failed {
			failed[dest] = true
		}
	}
	return errors.Join(errs...)
}

// AtServer leaves a tombstone for a stream that a server refuses as forgotten: it was forgotten there, or here before
// the state was lost.
func (f *Forgetter) AtServer(stream uint64) {
	ctx := context.Background()
	facts, known, err := f.State.Files.Routing(ctx, tail.FileID(stream))
	if err == nil && known && facts.Decided && !f.Router.Forgotten(facts.Stream.SessionID) {
		err = f.Router.Tombstones.Put(ctx, route.Tombstone{Session: facts.Stream.SessionID, At: time.Now().UTC().Round(0)})
		f.Rewrites.Forget(facts.Stream.SessionID)
		f.Log.Info("the server has forgotten a session: it is not sent any more", "session", facts.Stream.SessionID)
	}
	if err == nil && known && facts.Decided && facts.Stream.Parent == "" {
		f.Inbox.Forget(facts.Stream.SessionID)
		err = f.Documents.Forget(ctx, facts.Stream.SessionID)
	}
	if t, ok := f.Files.File(tail.FileID(stream)); ok && err == nil {
		_, err = f.dropFiles(ctx, []tail.Tracked{t})
	}
	if err != nil {
		f.Log.Warn("cannot store that a session was forgotten", "err", err)
	}
}
