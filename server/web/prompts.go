package web

import (
	"net/http"
	"strconv"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/web/page"
	"github.com/ccship/ccship/server/web/thread"
)

// outline is the page of a conversation's prompts, or without a page around it its table of contents.
type outline struct {
	page.Layout
	header
	Modes   []choice
	Prompts []thread.Prompt
	Next    string
}

// prompts is GET /sessions/{id}/prompts?after&bare: what the human said, one line each.
func (v *Viewer) prompts(w http.ResponseWriter, r *http.Request, who server.Login) error {
	s := requested(r)
	q := r.URL.Query()
	p := outline{}
	err := v.open(r.Context(), who, s, func(snap server.Snapshot, view server.View) error {
		x := snap.Session()
		s.Pin(x)
		list, more, err := thread.Prompts(r.Context(), snap, view, s, number(q.Get("after"), -1)+1)
		if err != nil {
			return err
		}
		for i := range list {
			list[i].URL = v.Base + list[i].URL
		}
		p.Prompts = list
		if more {
			p.Next = v.Base + s.Path("/prompts", "after", strconv.FormatInt(list[len(list)-1].Line, 10))
		}
		return nil
	})
	if err != nil {
		return err
	}
	if q.Get("bare") != "" {
		v.Render(w, http.StatusOK, "outline.html", p)
		return nil
	}
	if err := v.head(r.Context(), who, &p.header, &s); err != nil {
		return err
	}
	if err := v.artifactsOf(r.Context(), who, &p.header, s, fewCheckpoints); err != nil {
		return err
	}
	p.Layout = v.Layout(r, who, p.Heading, "sessions")
	p.Modes = modes(v.Base, s, thread.PromptsOnly, 0)
	v.Render(w, http.StatusOK, "prompts.html", p)
	return nil
}
