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
}

// tail is GET /sessions/{id}/tail?after&to&mode: the lines after one and before another, for a page that follows or is
// scrolled. The header Ccship-Last is the last of them, Ccship-Total how many lines there are. With inside=1 it is the
// beginning of an agent's transcript, for display inside its call.
func (v *Viewer) tail(w http.ResponseWriter, r *http.Request, who server.Login) error {
	q := r.URL.Query()
	after, err := strconv.ParseInt(q.Get("after"), 10, 64)
	if err != nil || after < -1 {
		return page.BadRequestError("after must be a line number.")
	}
	p := conversationPage{Stream: requested(r), Mode: thread.ModeOf(q.Get("mode")), east: page.Zone(r)}
	f, s, scope := fragment{Inside: q.Get("inside") != ""}, &p.Stream, server.ScopeOf(who.User)
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
		p.From = min(after+1, view.Total)
		p.To = max(after+1, min(after+1+thread.PageLines, page.Number(q.Get("to"), view.Total)))
		if b, err = v.read(r.Context(), &p, snap, view); err != nil {
			return err
		}
		if f.Items = p.Items; f.Inside {
			thread.Embed(f.Items, v.Base, *s)
		}
		if p.To < view.Total {
			f.More = v.Base + s.Path("", "from", strconv.FormatInt(p.To, 10))
		}
		w.Header().Set("Ccship-Total", strconv.FormatInt(view.Total, 10))
		w.Header().Set("Ccship-Last", strconv.FormatInt(max(after, p.To-1), 10))
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
