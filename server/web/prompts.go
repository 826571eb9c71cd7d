package web

import (
	"errors"
	"net/http"
	"strconv"

	"github.com/ccship/ccship/server"

	"github.com/ccship/ccship/server/web/page"
	"github.com/ccship/ccship/server/web/thread"
)

// outlinePage is the page of a conversation's prompts, or without a page around it its table of contents.
type outlinePage struct {
	page.Layout
	header
	Modes   []page.Choice
	Prompts []thread.Prompt
	Next    string
}

// prompts is GET /sessions/{id}/prompts?after&bare: what the human said and what else happened, one line each. Of older
// generations, of which nothing is kept, it lists the prompts.
func (v *Viewer) prompts(w http.ResponseWriter, r *http.Request, who server.Login) error {
	s := requested(r)
	q := r.URL.Query()
	p := outlinePage{}
	bare := q.Get("bare") != ""
	err := v.outlined(r, who, &s, &p)
	if err != nil {
		return err
	}
	if bare {
		v.Render(w, http.StatusOK, "outline.html", p)
		return nil
	}
	if err := v.head(r.Context(), who, &p.header, &s, fewCheckpoints); err != nil {
		return err
	}
	p.Layout = v.Layout(r, who, p.Heading, "sessions")
	p.Modes = modes(v.Base, s, thread.PromptsOnly, 0)
	v.Render(w, http.StatusOK, "prompts.html", p)
	return nil
}

// outlined fills in the page that a request asks for.
func (v *Viewer) outlined(r *http.Request, who server.Login, s *thread.Stream, p *outlinePage) error {
	ctx, after, bare := r.Context(), r.URL.Query().Get("after"), r.URL.Query().Get("bare") != ""
	if s.Generation < 0 && s.Epoch == "" {
		rows, next, read, err := v.moments(ctx, server.ScopeOf(who.User), s, after, bare)
		if errors.Is(err, server.ErrBadPage) {
			return page.BadRequestError("after must come from a link of this page.")
		}
		if err != nil {
			return err
		}
		if read > 0 {
			if p.Prompts = rows; next != "" {
				p.Next = v.Base + s.Path("/prompts", "after", next)
			}
			return nil
		}
	}
	return v.open(ctx, who, *s, func(snap server.Snapshot, view server.View) (err error) {
		s.Pin(snap.Session())
		p.Prompts, p.Next, err = promptsOf(r, snap, view, *s, v.Base)
		return err
	})
}

// promptsOf lists the prompts of a view behind the line that a request names, and where the list goes on.
func promptsOf(r *http.Request, snap server.Snapshot, view server.View, s thread.Stream,
	base string) (list []thread.Prompt, next string, err error) {
	after := page.Number(r.URL.Query().Get("after"), -1)
	list, more, err := thread.Prompts(r.Context(), snap, view, s, after+1)
	for i := range list {
		list[i].URL = base + list[i].URL
	}
	if more {
		next = base + s.Path("/prompts", "after", strconv.FormatInt(list[len(list)-1].Line, 10))
	}
	return list, next, err
}
