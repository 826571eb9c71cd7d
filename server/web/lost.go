package web

import (
	"context"
	"net/url"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/web/markup"
	"github.com/ccship/ccship/server/web/page"
	"github.com/ccship/ccship/server/web/thread"
)

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
