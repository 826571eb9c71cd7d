package web

import (
	"net/http"
	"strconv"

	"github.com/ccship/ccship/server"

	"github.com/ccship/ccship/server/web/page"
	"github.com/ccship/ccship/server/web/thread"
)

// fragment is items without a page around them.
type fragment struct {
	Items  []thread.Item
	Last   int64 // the last line that was read
	More   string
	Inside bool
}

// tail is GET /sessions/{id}/tail?after&to&mode: the lines after one and before another, for a page that follows or is
// scrolled. The header Ccship-Last is the last of them, Ccship-Total how many lines there are. With inside=1 it is the
// beginning of an agent's transcript, for display inside its call.
func (v *Viewer) tail(w http.ResponseWriter, r *http.Request, who server.Login) error {
	s := requested(r)
	q := r.URL.Query()
	after, err := strconv.ParseInt(q.Get("after"), 10, 64)
	if err != nil || after < -1 {
		return page.BadRequestError("after must be a line number.")
	}
	f := fragment{Last: after, Inside: q.Get("inside") != ""}
	var b *thread.Builder
	err = v.open(r.Context(), who, s, func(snap server.Snapshot, view server.View) error {
		x := snap.Session()
		s.Pin(x)
		b = thread.NewBuilder(v.Base, s, thread.ModeOf(q.Get("mode")))
		b.Live, b.Secrets, b.East = v.isLive(x.Active), v.secrets.For(who.User, x.Owner), page.Zone(r)
		b.Budget().Cache = &v.coloured
		if b.Story, err = thread.ReadStory(r.Context(), snap, view); err != nil {
			return err
		}
		to := min(after+1+thread.PageLines, page.Number(q.Get("to"), view.Total))
		if b.Times, err = outlineTimes(r.Context(), v.store, x, after+1, to); err != nil {
			return err
		}
		win, err := b.Fill(r.Context(), snap, view, min(after+1, view.Total), max(to, after+1))
		if err != nil {
			return err
		}
		f.Items, f.Last = b.Done(), max(after, win.To-1)
		if f.Inside {
			thread.Embed(f.Items, v.Base, s)
		}
		if thread.ModeOf(q.Get("mode")) == thread.Focused {
			f.Items = thread.FoldRuns(f.Items)
		}
		if win.To < view.Total {
			f.More = v.Base + s.Path("", "from", strconv.FormatInt(win.To, 10))
		}
		w.Header().Set("Ccship-Total", strconv.FormatInt(view.Total, 10))
		w.Header().Set("Ccship-Generation", strconv.FormatInt(view.Generation.Number, 10))
		return nil
	})
	if err != nil {
		return err
	}
	if err := v.findOverflows(r.Context(), who, s, b.Overflows); err != nil {
		return err
	}
	w.Header().Set("Ccship-Last", strconv.FormatInt(f.Last, 10))
	v.Render(w, http.StatusOK, "tail.html", f)
	return nil
}
