package web

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/web/markup"
	"github.com/ccship/ccship/server/web/page"
	"github.com/ccship/ccship/server/web/thread"
)

// maxCompared is how many lines of each side are compared, after those that both have in common.
const maxCompared = 50_000

// maxChoices is how many generations and epochs a form lists, the newest.
const maxChoices = 500

// comparison is two past versions of a file: what the later one lost as a conversation, or both side by side.
type comparison struct {
	page.Layout
	header
	Stream  thread.Stream
	A, B    side
	Records bool // they are to be shown
	Modes   []page.Choice
	Lost    lost
	Rows    []comparedRow
	Same    int64
	Dropped int64 // as the list of rewinds counts them
	Added   int64
	Moved   int64 // in another place than before
	Cut     bool
	Equal   bool
	Epochs  []page.Choice
}

// side is one past version: a generation of an epoch.
type side struct {
	Epoch      server.Epoch
	Generation server.Generation
	Choices    []sideChoice
	stream     thread.Stream
}

type sideChoice struct {
	Value string
	Time  time.Time // when the generation began
	On    bool
}

// comparedRow is a line, or a run of equal ones.
type comparedRow struct {
	Class    string // "same", "del", "add"
	Run      int64  // equal lines that are not shown
	Old, New int64  // -1: not on that side
	Text     string
	Kind     string
	Link     string
}

// compare is GET /sessions/{id}/compare?a&ea&b&eb&records: generation a of epoch ea next to b of eb. By default the
// newest and the one before it.
func (v *Viewer) compare(w http.ResponseWriter, r *http.Request, who server.Login) error {
	s := requested(r)
	s.Generation = -1
	q := r.URL.Query()
	p := comparison{Records: q.Get("records") != ""}
	if err := v.head(r.Context(), who, &p.header, &s, 0); err != nil {
		return err
	}
	p.Stream, p.Modes = s, modesOf(v.Base, s, q)
	if err := v.sides(r.Context(), who, &p, q); err != nil {
		return err
	}
	p.Layout = v.Layout(r, who, p.Heading, "sessions")
	v.Render(w, http.StatusOK, "compare.html", p)
	return nil
}

// sides reads both versions, one after the other: a store limits the number of snapshots.
func (v *Viewer) sides(ctx context.Context, who server.Login, p *comparison, q url.Values) error {
	newer, older := p.Stream, p.Stream
	newer.Epoch = cmp.Or(q.Get("eb"), newer.Epoch)
	older.Epoch = cmp.Or(q.Get("ea"), newer.Epoch)
	var linesA, linesB []summed
	var viewB server.View
	var cutA, cutB bool
	from := int64(0)
	err := v.open(ctx, who, newer, func(snap server.Snapshot, newest server.View) (err error) {
		viewB, err = server.ViewOf(snap.Generations(), page.Number(q.Get("b"), newest.Generation.Number))
		if err != nil {
			return err
		}
		p.B = newSide(newer, snap, viewB)
		for _, e := range snap.Epochs()[:min(len(snap.Epochs()), maxChoices)] {
			p.Epochs = append(p.Epochs, page.Choice{Name: e.Name, On: e.ID == epochOf(snap, older).ID,
				URL: v.Base + p.Stream.Path("/compare", "ea", e.Name, "eb", newer.Epoch, "records", q.Get("records"))})
		}
		if p.A.Epoch = epochOf(snap, older); p.A.Epoch.ID == p.B.Epoch.ID {
			viewA, err := viewBefore(snap, q.Get("a"), viewB)
			if err != nil {
				return err
			}
			from = common(viewA, viewB)
		}
		linesB, cutB, err = lineSums(ctx, snap, viewB, from)
		return err
	})
	if err != nil {
		return err
	}
	err = v.open(ctx, who, older, func(snap server.Snapshot, _ server.View) error {
		viewA, err := viewBefore(snap, q.Get("a"), viewB)
		if err != nil {
			return err
		}
		p.A = newSide(older, snap, viewA)
		if linesA, cutA, err = lineSums(ctx, snap, viewA, from); err != nil || p.Records {
			return err
		}
		p.Lost, err = v.readLost(ctx, p.A.stream, snap, viewA, lostRuns(linesA, linesB))
		return err
	})
	if err != nil {
		return err
	}
	p.Cut = cutA || cutB
	v.compared(p, from, linesA, linesB)
	return nil
}

// viewBefore is the view of the generation named, else of the one before b's that is there.
func viewBefore(snap server.Snapshot, named string, b server.View) (server.View, error) {
	gens := snap.Generations()
	n := gens[len(gens)-1].Number
	for _, g := range gens {
		if g.Number < b.Generation.Number {
			n = g.Number
		}
	}
	return server.ViewOf(gens, page.Number(named, n))
}

func newSide(s thread.Stream, snap server.Snapshot, view server.View) side {
	s.Epoch = snap.Session().Epoch
	s.Generation = view.Generation.Number
	x := side{Epoch: epochOf(snap, s), Generation: view.Generation, stream: s}
	gens := snap.Generations()
	for _, g := range gens[max(0, len(gens)-maxChoices):] {
		x.Choices = append(x.Choices,
			sideChoice{strconv.FormatInt(g.Number, 10), g.First, g.Number == view.Generation.Number})
	}
	return x
}

// common returns up to which line two views of one epoch show the same stored lines.
func common(a, b server.View) int64 {
	at := int64(0)
	for i := range min(len(a.Spans), len(b.Spans)) {
		x, y := a.Spans[i], b.Spans[i]
		if x.Generation != y.Generation || x.From != y.From {
			return at
		}
		at = min(x.To, y.To)
		if x.To != y.To {
			return at
		}
	}
	return at
}

// summed is a line by the sum of its bytes, with what to show of it.
type summed struct {
	sum  uint64
	line int64
	kind string
	text string
}

func (x summed) blank() bool { return x.sum == markup.Sum(nil) }

var errTooMany = errors.New("too many lines to compare")

// lineSums reads a view's lines from from on; cut when there are too many.
func lineSums(ctx context.Context, snap server.Snapshot, view server.View,
	from int64) (out []summed, cut bool, err error) {
	type piece struct {
		at         int
		generation int64
	}
	var long []piece // lines of out, of which the beginning was read
	err = thread.EachHead(ctx, snap, view.Between(from, view.Total), func(l server.Line, generation int64) error {
		if len(out) == maxCompared {
			cut = true
			return errTooMany
		}
		x := summed{sum: markup.Sum(l.Raw), line: l.Index, kind: l.Kind.String()}
		if l.Cut > 0 {
			long = append(long, piece{len(out), generation})
		}
		for _, rec := range thread.Records(l) {
			x.kind, x.text = cmp.Or(rec.Type, x.kind), rec.Preview()
		}
		out = append(out, x)
		return nil
	})
	if err != nil && !cut {
		return nil, false, err
	}
	for _, x := range long {
		h := markup.NewSum()
		err := server.Pieces(ctx, snap, x.generation, out[x.at].line, func(l server.Line) error {
			_, err := h.Write(l.Raw)
			return err
		})
		if err != nil {
			return nil, false, err
		}
		out[x.at].sum = h.Sum64()
	}
	return out, cut, nil
}

// compared makes the rows.
func (v *Viewer) compared(p *comparison, from int64, a, b []summed) {
	sums := func(list []summed) []uint64 {
		out := make([]uint64, len(list))
		for i, x := range list {
			out[i] = x.sum
		}
		return out
	}
	if p.Same = from; from > 0 {
		p.Rows = append(p.Rows, comparedRow{Class: "same", Run: from})
	}
	edits := markup.Compare(sums(a), sums(b))
	p.Dropped, p.Added, p.Moved = markup.Tally(sums(a), sums(b), edits)
	p.Equal = !slices.ContainsFunc(edits, func(e markup.Edit) bool { return e.Op != markup.Same })
	for _, e := range edits {
		switch e.Op {
		case markup.Same:
			n := int64(e.AEnd - e.A)
			p.Same += n
			p.Rows = append(p.Rows, comparedRow{Class: "same", Run: n})
		case markup.Removed:
			for _, x := range a[e.A:e.AEnd] {
				p.Rows = append(p.Rows, comparedRow{"del", 0, x.line, -1, x.text, x.kind, v.entryURL(p.A.stream, x.line)})
			}
		case markup.Added:
			if p.Lost.Instead == "" {
				p.Lost.Instead = v.Base + p.B.stream.LinePath(b[e.B].line)
			}
			for _, x := range b[e.B:e.BEnd] {
				p.Rows = append(p.Rows, comparedRow{"add", 0, -1, x.line, x.text, x.kind, v.entryURL(p.B.stream, x.line)})
			}
		}
	}
	const most = 5000
	if len(p.Rows) > most {
		p.Rows, p.Cut = p.Rows[:most], true
	}
}

func (v *Viewer) entryURL(s thread.Stream, line int64) string {
	return v.Base + s.Path("/entry/"+strconv.FormatInt(line, 10))
}

// mostLostRuns is how many runs of lost lines a page shows as a conversation: each is read with what is around it.
const mostLostRuns = 20

// lost is what a later version of a file has nowhere, as a conversation.
type lost struct {
	Items   []thread.Item
	More    int64  // lost lines that are not shown
	Instead string // address of what stands there instead; "" when nothing does
}

// run is lines from From to before To, all of them lost.
type run struct{ From, To int64 }

// lostRuns returns the lines of a that b has nowhere, in runs.
func lostRuns(a, b []summed) (out []run) {
	there := make(map[uint64]bool, len(b))
	for _, x := range b {
		there[x.sum] = true
	}
	next := -1 // in a, after a lost line
	for i, x := range a {
		switch {
		case there[x.sum] || x.blank():
		case next == i:
			out[len(out)-1].To = x.line + 1
			next++
		default:
			out, next = append(out, run{x.line, x.line + 1}), i+1
		}
	}
	return out
}

// readLost makes items of lost lines, as many as a page may have.
func (v *Viewer) readLost(ctx context.Context, s thread.Stream, snap server.Snapshot, view server.View,
	runs []run) (l lost, err error) {
	story, err := thread.ReadStory(ctx, snap, view)
	if err != nil {
		return l, err
	}
	budget, left := markup.NewBudget(), int64(thread.PageLines)
	for i, r := range runs {
		to := min(r.To, r.From+left)
		if i >= mostLostRuns || to == r.From {
			l.More += r.To - r.From
			continue
		}
		b := thread.NewBuilder(v.Base, s, thread.Focused)
		b.Story = story
		*b.Budget() = *budget
		w, err := b.Fill(ctx, snap, view, r.From, to)
		if err != nil {
			return l, err
		}
		l.Items, budget = append(l.Items, b.Done()...), b.Budget()
		left -= to - r.From
		l.More += r.To - w.To
		if w.To < to { // the page is full
			left = 0
		}
	}
	return l, nil
}

// modesOf returns the ways to show a comparison.
func modesOf(base string, s thread.Stream, q url.Values) []page.Choice {
	list := []page.Choice{{Name: "Conversation", On: q.Get("records") == ""}, {Name: "Records",
		On: q.Get("records") != ""}}
	for i, records := range []string{"", "1"} {
		list[i].URL = base + s.Path("/compare", "a", q.Get("a"), "b", q.Get("b"), "ea", q.Get("ea"), "eb", q.Get("eb"),
			"records", records)
	}
	return list
}
