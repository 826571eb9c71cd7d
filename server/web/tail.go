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

// tail is GET /sessions/{id}/tail?after&mode: the lines after one, for a page that follows. The header Ccship-Last is
// the last of them. With inside=1 it is the beginning of an agent's transcript, for display inside its call.
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
		b.Live = v.isLive(x.Active)
		win, err := b.Fill(r.Context(), snap, view, min(after+1, view.Total), after+1+thread.PageLines)
		if err != nil {
			return err
		}
		f.Items, f.Last = b.Done(), max(after, win.To-1)
		if f.Inside {
			thread.Embed(f.Items, v.Base, s)
		}
		if win.To < view.Total {
			f.More = v.Base + s.Path("", "from", strconv.FormatInt(win.To, 10))
		}
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
