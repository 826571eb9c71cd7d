package web

import (
	"context"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"strings"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/web/chart"

	"github.com/ccship/ccship/server/web/page"
	"github.com/ccship/ccship/server/web/thread"
)

const (
	// wideSamples and narrowSamples are how many values a drawing has at most, whatever the session's length.
	wideSamples, narrowSamples = 480, 240
	narrowPlot                 = 262.0
	// tableRows is how many values the table has.
	tableRows = 24
)

// contextPage shows how full the context was over a session's life.
type contextPage struct {
	page.Layout
	header
	Chart contextChart
}

// contextChart is the drawing, with its content in words.
type contextChart struct {
	Wide, Narrow template.HTML
	Budget       int64
	Now          int64
	Most         int64
	Answers      int64
	Words        string
	Rows         []sampleRow
	Events       []eventRow
	Forgot       int64 // older events, not marked
	Legend       []legendRow
	Full         string
}

type sampleRow struct {
	sample
	Percent int64
	URL     string
}

type eventRow struct {
	Kind, Words, URL string
	Line             int64
}

// legendRow explains a kind of mark.
type legendRow struct{ Class, Glyph, Name string }

// contextOf is GET /sessions/{id}/context?bare: the context over the session's life. With bare it is only the chart,
// without a page.
func (v *Viewer) contextOf(w http.ResponseWriter, r *http.Request, who server.Login) error {
	s := requested(r)
	p := contextPage{}
	if err := v.head(r.Context(), who, &p.header, &s, maxMarks); err != nil {
		return err
	}
	err := v.open(r.Context(), who, s, func(snap server.Snapshot, view server.View) error {
		c, err := readSeries(r.Context(), snap, view)
		p.Chart = v.chartOf(c, s, &p.header)
		return err
	})
	if err != nil {
		return err
	}
	if r.URL.Query().Get("bare") != "" {
		p.Chart.Full = p.Artifacts.Context
		v.Render(w, http.StatusOK, "context_chart.html", p)
		return nil
	}
	p.Layout = v.Layout(r, who, "Context of "+p.Heading, "sessions")
	v.Render(w, http.StatusOK, "context.html", p)
	return nil
}

// chartOf makes the chart of a series.
func (v *Viewer) chartOf(c *contextSeries, s thread.Stream, h *header) contextChart {
	sum := c.fold.Summary()
	g := contextChart{Budget: budget(sum.Budget.Limit, h.Artifacts.Checkpoints), Answers: c.answers, Forgot: c.forgot}
	if sum.Context.Known {
		g.Now = sum.Context.Tokens
	}
	list := c.samples(wideSamples)
	for _, x := range list {
		g.Most = max(g.Most, x.Tokens)
	}
	if len(list) == 0 {
		return g
	}
	g.Events = v.eventRows(c, s)
	g.Words = g.words(len(h.Artifacts.Checkpoints))
	for _, x := range c.samples(tableRows) {
		g.Rows = append(g.Rows, sampleRow{x, page.Percent(x.Tokens, g.Budget), v.Base + s.LinePath(x.Line)})
	}
	marks := v.marks(c, list, g.Events, h)
	g.Legend = legend(h.Artifacts.Checkpoints, g.Events)
	g.Wide = g.draw("context-wide", 0, list, c.answers, marks)
	g.Narrow = g.draw("context-narrow", narrowPlot, c.samples(narrowSamples), c.answers, marks)
	return g
}

// budget is the number of tokens at which the session compacts. The newest checkpoint has it from the daemon, which
// knows the user's settings and other sessions; without one, or when that fits another window, it is inferred.
func budget(inferred int64, list []checkpointRow) int64 {
	if len(list) == 0 {
		return inferred
	}
	reported := list[0].TokenBudget
	if reported <= 0 || inferred > 0 && (reported > 2*inferred || 3*reported < inferred) {
		return inferred
	}
	return reported
}

func (g contextChart) words(checkpoints int) string {
	var compactions, rewinds int64
	for _, b := range g.Events {
		if b.Kind == "compaction" {
			compactions++
		} else {
			rewinds++
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Tokens used over %s: at most %s of %s (%d %%)",
		page.Count(g.Answers, "response"), page.Tokens(g.Most), page.Tokens(g.Budget), page.Percent(g.Most, g.Budget))
	if g.Now > 0 {
		fmt.Fprintf(&b, ", now %s (%d %%)", page.Tokens(g.Now), page.Percent(g.Now, g.Budget))
	}
	for _, x := range []struct {
		n    int64
		noun string
	}{{int64(checkpoints), "checkpoint"}, {compactions, "compaction"}, {rewinds, "rewind"}} {
		if x.n > 0 {
			b.WriteString(", " + page.Count(x.n, x.noun))
		}
	}
	return b.String() + "."
}

// eventRows are the compactions and rewinds with where they are.
func (v *Viewer) eventRows(c *contextSeries, s thread.Stream) []eventRow {
	var out []eventRow
	for _, b := range c.events {
		row := eventRow{Line: b.Line, URL: v.Base + s.LinePath(b.Line)}
		if b.Compact != nil {
			row.Kind, row.Words = "compaction", thread.CompactionText(b.Compact)
		} else {
			row.Kind, row.Words = "rewind", "Rewound to the beginning"
			if b.Rewind.ToLine >= 0 {
				row.Words = fmt.Sprintf("Rewound to line %d", b.Rewind.ToLine+1)
			}
		}
		out = append(out, row)
	}
	return out
}

// marks are the events and the checkpoints of this view. Checkpoints of rewritten generations are only listed.
func (v *Viewer) marks(c *contextSeries, list []sample, events []eventRow, h *header) []chart.Mark {
	var out []chart.Mark
	for i, b := range events {
		out = append(out, chart.Mark{X: float64(c.events[i].Answer), Class: b.Kind, URL: b.URL,
			Label: fmt.Sprintf("%s, line %d", b.Words, b.Line+1)})
	}
	for i := len(h.Artifacts.Checkpoints) - 1; i >= 0; i-- {
		p := h.Artifacts.Checkpoints[i]
		if p.Line < 0 || p.Past {
			continue
		}
		pin := triggerOf(p.Trigger)
		out = append(out, chart.Mark{X: along(list, p.Line), Y: float64(p.TokensUsed), Class: "pin " + pin.class,
			Glyph: pin.glyph, URL: p.URL,
			Label: fmt.Sprintf("Checkpoint %s: %s at %d %%, line %d", p.ID, p.Name, p.Percent, p.Line+1)})
	}
	return out
}

// legend has each kind of mark once.
func legend(checkpoints []checkpointRow, events []eventRow) []legendRow {
	var out []legendRow
	add := func(row legendRow) {
		if !slices.Contains(out, row) {
			out = append(out, row)
		}
	}
	for i := len(checkpoints) - 1; i >= 0; i-- {
		pin := triggerOf(checkpoints[i].Trigger)
		add(legendRow{"pin " + pin.class, pin.glyph, "checkpoint: " + pin.name})
	}
	for _, b := range events {
		add(legendRow{b.Kind, "", b.Kind})
	}
	return out
}

// draw makes a drawing with a plot of this width; 0 is the widest.
func (g contextChart) draw(id string, wide float64, list []sample, answers int64, marks []chart.Mark) template.HTML {
	c := chart.Area{ID: id, Title: "Context over the session’s life", Desc: g.Words, Wide: wide, End: float64(answers),
		Marks: marks, Format: func(f float64) string { return page.Tokens(int64(f)) }}
	for _, x := range list {
		c.Points = append(c.Points, chart.Point{X: float64(x.Answer), Y: float64(x.Tokens)})
	}
	if g.Budget > 0 {
		for i, p := range []float64{80, 90, 100} {
			c.Limits = append(c.Limits, chart.Limit{Y: float64(g.Budget) * p / 100,
				Label: fmt.Sprintf("%.0f %%", p), Class: fmt.Sprintf("l%d", i)})
		}
	}
	ticks := 6
	if wide > 0 {
		ticks = 2
	}
	for i := range ticks + 1 {
		x := list[i*(len(list)-1)/ticks]
		if n := len(c.Ticks); n > 0 && (float64(x.Answer)-c.Ticks[n-1].X)*float64(ticks) < .7*c.End {
			continue
		}
		c.Ticks = append(c.Ticks, chart.Tick{X: float64(x.Answer), Label: fmt.Sprintf("line %s", page.Digits(x.Line+1))})
	}
	return c.SVG()
}

// mostCheckpoints reads a session's checkpoints, the latest first, up to n, or until their texts fill two pages. more
// says that there are others.
func (v *Viewer) mostCheckpoints(ctx context.Context, scope server.Scope, stream int64,
	n int) (out []server.Checkpoint, more bool, err error) {
	q := server.CheckpointQuery{Stream: stream}
	for bytes := 0; len(out) < n && bytes <= server.CheckpointBytes; {
		q.Limit = min(n-len(out), checkpointPage)
		page, err := v.store.Checkpoints(ctx, scope, q)
		if err != nil {
			return nil, false, err
		}
		for i := range page.List {
			bytes += page.List[i].Bytes()
		}
		out = append(out, page.List...)
		if q.After = page.Next; q.After == "" {
			return out, false, nil
		}
	}
	return out, true, nil
}
