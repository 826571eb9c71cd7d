package web

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/ccship/ccship/server"

	"github.com/ccship/ccship/server/web/page"
	"github.com/ccship/ccship/server/web/thread"
)

// sharedPage is a conversation.
type sharedPage struct {
	page.Layout
	Link     server.ShareLink
	S        server.Session
	Facts    server.Summary
	Heading  string
	Root     string // of an agent's transcript: the session that it belongs to
	Items    []thread.Item
	From, To int64
	Total    int64
	Pager    pager
	Tail     string
	Prompts  string
	Agents   []agentRow
}

// first is GET /s/{secret}.
func (p *sharePages) first(w http.ResponseWriter, r *http.Request, v visit) error {
	snap, err := p.store.View(r.Context(), v.scope, server.Ref{Stream: v.Stream})
	if err != nil {
		return err
	}
	http.Redirect(w, r, v.base+thread.StreamOf(snap.Session()).Path(""), http.StatusSeeOther)
	return snap.Close()
}

// conversation is GET /s/{secret}/sessions/{id}?from: a window of a file. from may be "end".
func (p *sharePages) conversation(w http.ResponseWriter, r *http.Request, v visit) error {
	x := sharedPage{Link: v.ShareLink}
	err := p.pin(r, v, func(s sharedView) (err error) {
		if x.S, x.Total = s.Session(), s.Total; x.S.Parent != "" {
			x.Root = v.base
		}
		return p.head(r.Context(), v, &x)
	})
	if err != nil {
		return err
	}
	err = p.pin(r, v, func(s sharedView) error { return x.window(r, v, s) })
	if err != nil {
		return err
	}
	x.Layout = p.site.Layout(r, server.Login{}, x.Heading, "")
	x.Unlisted, x.Follow = true, false
	p.site.Render(w, http.StatusOK, "shared.html", x)
	return nil
}

// head reads what is known of the session, and its agents.
func (p *sharePages) head(ctx context.Context, v visit, x *sharedPage) error {
	var err error
	if x.Facts, err = p.store.SummaryOf(ctx, x.S.ID); err != nil {
		return err
	}
	x.Heading = p.masker.String(x.Facts.Name())
	found, err := p.store.Find(ctx, v.scope, server.SessionQuery{Page: server.Page{Limit: maxAgents}, User: x.S.Owner,
		Parent: x.S.SessionID, Agents: true})
	for _, a := range found.List {
		a.Summary.FirstPrompt = p.masker.String(a.Summary.FirstPrompt)
		x.Agents = append(x.Agents, agentRow{p.masker.String(cmp.Or(a.Summary.Title, "Agent")),
			v.base + thread.StreamOf(a.Session).Path(""), a.Summary, false})
	}
	return err
}

// window makes the items that the address asks for.
func (x *sharedPage) window(r *http.Request, v visit, s sharedView) error {
	from := beginOf(r, s.Total)
	b, err := s.builder(r, v)
	if err != nil {
		return err
	}
	b.Agents = agentLinks(x.Agents)
	w, err := b.Fill(r.Context(), s, s.View, from, from+thread.PageLines)
	if err != nil {
		return err
	}
	x.Items, x.From, x.To = thread.FoldRuns(b.Done()), w.From, w.To
	x.Tail = v.base + s.stream.Path("/tail", "mode", string(thread.Focused))
	x.Prompts = v.base + s.stream.Path("/prompts", "bare", "1")
	x.Pager = newPager(x.From, x.To, x.Total, func(from string) string {
		return v.base + s.stream.Path("", "from", from)
	})
	return nil
}

// tail is GET /s/{secret}/sessions/{id}/tail?after&to&inside: the lines after one and before another, as the viewer's.
func (p *sharePages) tail(w http.ResponseWriter, r *http.Request, v visit) error {
	f, err := readFragment(r)
	if err != nil {
		return err
	}
	err = p.pin(r, v, func(s sharedView) error {
		b, err := s.builder(r, v)
		if err != nil {
			return err
		}
		from, to := f.window(s.Total)
		win, err := b.Fill(r.Context(), s, s.View, from, to)
		f.Items = thread.FoldRuns(b.Done())
		f.fill(w.Header(), win.To, s.Total, v.base, s.stream)
		return err
	})
	if err != nil {
		return err
	}
	p.site.Render(w, http.StatusOK, "tail.html", f)
	return nil
}

type shareOutline struct {
	page.Layout
	Heading, Root string
	Prompts       []thread.Prompt
	Next          string
}

// prompts is GET /s/{secret}/sessions/{id}/prompts?after&bare: what the human said, one line each.
func (p *sharePages) prompts(w http.ResponseWriter, r *http.Request, v visit) error {
	x := shareOutline{Layout: p.site.Layout(r, server.Login{}, "Outline", ""), Heading: "Outline", Root: v.base}
	err := p.pin(r, v, func(s sharedView) (err error) {
		x.Prompts, x.Next, err = promptsOf(r, s, s.View, s.stream, v.base)
		return err
	})
	if err != nil {
		return err
	}
	name := "shared_outline.html"
	if r.URL.Query().Get("bare") != "" {
		name = "outline.html"
	}
	x.Unlisted = true
	p.site.Render(w, http.StatusOK, name, x)
	return nil
}

// permalink is GET /s/{secret}/sessions/{id}/L/{line}: the window with the line.
func (p *sharePages) permalink(w http.ResponseWriter, r *http.Request, v visit) error {
	line, err := number(r)
	if err != nil {
		return err
	}
	return p.pin(r, v, func(s sharedView) error {
		if line >= s.Total {
			return server.ErrNotFound
		}
		at := strings.TrimLeft(strconv.FormatInt(max(0, line-thread.PageLines/10), 10), "0")
		http.Redirect(w, r, v.base+s.stream.Path("", "from", at)+fmt.Sprintf("#L%d", line), http.StatusSeeOther)
		return nil
	})
}

type shareEntryPage struct {
	page.Layout
	Items []thread.Item
	Line  int64
	Back  string
}

// entry is GET /s/{secret}/sessions/{id}/entry/{line}: all of a line that is said or done in it.
func (p *sharePages) entry(w http.ResponseWriter, r *http.Request, v visit) error {
	line, err := number(r)
	if err != nil {
		return err
	}
	x := shareEntryPage{Layout: p.site.Layout(r, server.Login{}, fmt.Sprintf("Line %d", line+1), ""), Line: line}
	err = p.pin(r, v, func(s sharedView) error {
		b, err := s.builder(r, v)
		if err != nil {
			return err
		}
		b.Full, x.Back = true, v.base+s.stream.LinePath(line)
		win, err := b.Fill(r.Context(), s, s.View, line, line+1)
		if x.Items = b.Done(); err == nil && len(win.Lines) == 0 {
			return server.ErrNotFound
		}
		return err
	})
	if err != nil {
		return err
	}
	x.Unlisted = true
	p.site.Render(w, http.StatusOK, "shared_entry.html", x)
	return nil
}

// image is GET /s/{secret}/sessions/{id}/image/{line}/{n}.
func (p *sharePages) image(w http.ResponseWriter, r *http.Request, v visit) error {
	return answerImage(w, r, func(fn func(server.Snapshot, server.View) error) error {
		return p.pin(r, v, func(s sharedView) error { return fn(s, s.View) })
	})
}
