package web

import (
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

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

// maxFinds is how many lines of a conversation a search in it lists.
const maxFinds = 40

// finder is the search in one conversation: its form, and what was found.
type finder struct {
	Fields []field // that the form sends besides
	Text   string
	Hits   []foundLine
	Count  int64
	More   bool
	Close  string
}

// field is a field of a form that readers do not see.
type field struct{ Name, Value string }

// asForm returns an address as the action of a form, and the fields that it sends besides its own.
func asForm(address string) (action string, fields []field) {
	action, query, _ := strings.Cut(address, "?")
	values, _ := url.ParseQuery(query) // it was encoded here
	for _, name := range slices.Sorted(maps.Keys(values)) {
		fields = append(fields, field{name, values.Get(name)})
	}
	return action, fields
}

// findIn looks for the words that a request asks for in its conversation, agents apart.
func (v *Viewer) findIn(r *http.Request, who server.Login, p *conversationPage) error {
	f := &p.Find
	f.Text = strings.TrimSpace(r.URL.Query().Get("find"))
	_, f.Fields = asForm(p.Stream.Path("", "mode", p.Mode.Param()))
	if f.Text == "" {
		return nil
	}
	f.Close = v.Base + p.Stream.Path("", "mode", p.Mode.Param())
	hits, err := v.store.Search(r.Context(), server.ScopeOf(who.User), server.SearchQuery{Text: f.Text,
		Session: p.S.SessionID, User: p.S.Owner, Machine: &p.S.Machine, Limit: maxFinds})
	if err != nil {
		return err
	}
	for _, h := range hits.List {
		if h.Session.ID == p.S.ID {
			f.Hits = append(f.Hits, foundLine{h, inlineSnippet(h.Snippet),
				v.Base + thread.StreamOf(h.Session).LinePath(h.Line)})
		}
	}
	f.Count, f.More = int64(len(f.Hits)), hits.Next != ""
	return nil
}

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
