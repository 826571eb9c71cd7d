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
	More   string
	Inside bool

	after, to int64 // the lines behind the one and before the other are asked for; to -1: all
}

// readFragment reads what a request for a fragment asks for.
func readFragment(r *http.Request) (f fragment, err error) {
	q := r.URL.Query()
	f.Inside, f.to = q.Get("inside") != "", page.Number(q.Get("to"), -1)
	if f.after, err = strconv.ParseInt(q.Get("after"), 10, 64); err != nil || f.after < -1 {
		return f, page.BadRequestError("after must be a line number.")
	}
	return f, nil
}

// window returns the lines to read, of so many.
func (f *fragment) window(total int64) (from, to int64) {
	if to = f.to; to < 0 {
		to = total
	}
	return min(f.after+1, total), max(f.after+1, min(f.after+1+thread.PageLines, to))
}

// fill makes the items, which are of the lines before to of so many of a stream, ready to stand on a page.
func (f *fragment) fill(h http.Header, to, total int64, base string, s thread.Stream) {
	if f.Inside {
		thread.Embed(f.Items, base, s)
	}
	if to < total {
		f.More = base + s.Path("", "from", strconv.FormatInt(to, 10))
	}
	h.Set("Ccship-Total", strconv.FormatInt(total, 10))
	h.Set("Ccship-Last", strconv.FormatInt(max(f.after, to-1), 10))
}

// tail is GET /sessions/{id}/tail?after&to&mode: the lines after one and before another, for a page that follows or is
// scrolled. The header Ccship-Last is the last of them, Ccship-Total how many lines there are. With inside=1 it is the
// beginning of an agent's transcript, for display inside its call.
func (v *Viewer) tail(w http.ResponseWriter, r *http.Request, who server.Login) error {
	f, err := readFragment(r)
	if err != nil {
		return err
	}
	p := conversationPage{Stream: requested(r), Mode: thread.ModeOf(r.URL.Query().Get("mode")), east: page.Zone(r)}
	s, scope := &p.Stream, server.ScopeOf(who.User)
	if p.S, err = v.session(r.Context(), who, *s); err != nil {
		return err
	}
	if err := shorten(r.Context(), v.store, scope, &p.S); err != nil {
		return err
	}
	s.Pin(p.S)
	s.Short = p.S.Short
	if err := v.findAgents(r.Context(), scope, &p.header); err != nil {
		return err
	}
	p.Live, p.secrets = v.isLive(p.S.Active), v.secrets.For(who.User, p.S.Owner)
	p.Older = s.Generation >= 0 && s.Generation < p.S.Generation
	var b *thread.Builder
	err = v.open(r.Context(), who, *s, func(snap server.Snapshot, view server.View) error {
		p.From, p.To = f.window(view.Total)
		if b, err = v.read(r.Context(), &p, snap, view); err != nil {
			return err
		}
		f.Items = p.Items
		f.fill(w.Header(), p.To, view.Total, v.Base, *s)
		w.Header().Set("Ccship-Generation", strconv.FormatInt(view.Generation.Number, 10))
		return nil
	})
	if err != nil {
		return err
	}
	if err := v.findOverflows(r.Context(), who, *s, b.Overflows); err != nil {
		return err
	}
	v.Render(w, http.StatusOK, "tail.html", f)
	return nil
}
