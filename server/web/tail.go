package web

import (
	"net/http"
	"strconv"

	"github.com/ccship/ccship/server"
)

// fragment is items without a page around them.
type fragment struct {
	Items  []item
	Last   int64 // the last line that was read
	More   string
	Inside bool
}

// tail is GET /sessions/{id}/tail?after&mode: the lines behind one, for a page that follows. The header Ccship-Last
// says up to which line they go. With inside=1 it is an agent's beginning, to stand in its call.
func (v *Viewer) tail(w http.ResponseWriter, r *http.Request, who server.Login) error {
	s := requested(r)
	q := r.URL.Query()
	after, err := strconv.ParseInt(q.Get("after"), 10, 64)
	if err != nil || after < -1 {
		return errUsage("after is not the number of a line.")
	}
	f := fragment{Last: after, Inside: q.Get("inside") != ""}
	var b *builder
	err = v.open(r.Context(), who, s, func(snap server.Snapshot, view server.View) error {
		x := snap.Session()
		s.Machine = &x.Machine
		b = newBuilder(v.Base, s, modeOf(q.Get("mode")))
		b.live = v.isLive(x.Active)
		win, err := fill(r.Context(), b, snap, view, min(after+1, view.Total), after+1+pageLines)
		if err != nil {
			return err
		}
		f.Items, f.Last = b.done(), max(after, win.To-1)
		if f.Inside {
			v.guests(f.Items, s)
		}
		if win.To < view.Total {
			f.More = v.Base + s.path("", "from", strconv.FormatInt(win.To, 10))
		}
		w.Header().Set("Ccship-Generation", strconv.FormatInt(view.Generation.Number, 10))
		return nil
	})
	if err != nil {
		return err
	}
	if err := v.findSpilled(r.Context(), who, s, b.spills); err != nil {
		return err
	}
	w.Header().Set("Ccship-Last", strconv.FormatInt(f.Last, 10))
	v.render(w, http.StatusOK, "tail.html", f)
	return nil
}

// guests tells items of an agent's transcript apart from those of the page they will stand on.
func (v *Viewer) guests(items []item, s stream) {
	for i := range items {
		items[i].Page = v.Base + s.line(items[i].Line)
		items[i].Mark += "-of-" + fileName(s.ID)
	}
}
