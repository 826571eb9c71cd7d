package web

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/derive"
	"github.com/ccship/ccship/server/web/format"
	"github.com/ccship/ccship/server/web/page"
	"github.com/ccship/ccship/server/web/thread"
)

// liveFor is how long after its last line a session counts as live.
const liveFor = time.Minute

// conversationPage is the page of a conversation.
type conversationPage struct {
	page.Layout
	header
	Stream thread.Stream
	Mode   thread.Mode
	Modes  []choice
	Items  []thread.Item
	Hidden int64
	From   int64 // first line of the page
	To     int64 // line behind it
	Total  int64
	Pager  pager
	AtEnd  bool // of the newest generation: new lines come here
	Tail   string
	Older  bool // not the newest generation or epoch
}

// header is what is known about a session.
type header struct {
	S           server.Session
	Facts       server.Summary
	Usage       []server.UsageRow // by model
	Tokens      server.Tokens
	Cost        derive.Cost
	Heading     string
	Live        bool
	Parent      string // address
	Agents      []agentRow
	Drops       int64
	Generations int
	Compare     string
	Resume      string
	Links       map[string]string // to pages of this session, by name
	View        server.View       // as the request names it
	Artifacts   artifacts
	Agent       agentMeta
}

type agentRow struct {
	Title, URL string
	Facts      server.Summary
	Live       bool
}

type choice struct {
	Name, URL string
	On        bool
}

// pager leads to other windows; "" is none.
type pager struct{ First, Prev, Next, Last string }

// maxAgents is how many agents of a session are listed.
const maxAgents = 200

// conversation is GET /sessions/{id}?machine&epoch&generation&mode&from: a window of a file. from may be "end".
func (v *Viewer) conversation(w http.ResponseWriter, r *http.Request, who server.Login) error {
	s := requested(r)
	q := r.URL.Query()
	p := conversationPage{Stream: s, Mode: thread.ModeOf(q.Get("mode"))}
	if p.Mode == thread.PromptsOnly {
		return v.prompts(w, r, who)
	}
	if err := v.head(r.Context(), who, &p.header, &s); err != nil {
		return err
	}
	if err := v.artifactsOf(r.Context(), who, &p.header, s, fewCheckpoints); err != nil {
		return err
	}
	p.Stream = s
	var b *thread.Builder
	err := v.open(r.Context(), who, s, func(snap server.Snapshot, view server.View) (err error) {
		from := number(q.Get("from"), 0)
		if q.Get("from") == "end" {
			from = max(0, view.Total-thread.PageLines)
		}
		p.Total, p.Older = view.Total, s.Generation >= 0 && s.Generation < p.S.Generation
		b, err = v.read(r.Context(), &p, snap, view, min(from, max(0, view.Total-1)))
		return err
	})
	if err != nil {
		return err
	}
	if err := v.findOverflows(r.Context(), who, s, b.Overflows); err != nil {
		return err
	}
	p.Layout = v.Layout(r, who, p.Heading, "sessions")
	p.AtEnd = p.To >= p.Total && !p.Older && s.Epoch == ""
	p.Tail = v.Base + s.Path("/tail", "mode", string(p.Mode))
	p.link(v.Base)
	v.Render(w, http.StatusOK, "conversation.html", p)
	return nil
}

// read makes the items of the window that begins at from.
func (v *Viewer) read(ctx context.Context, p *conversationPage, snap server.Snapshot, view server.View,
	from int64) (*thread.Builder, error) {
	b := thread.NewBuilder(v.Base, p.Stream, p.Mode)
	b.Agents = map[string]thread.AgentLink{}
	for _, a := range p.Agents {
		b.Agents[thread.AgentKey(a.Facts.FirstPrompt)] = thread.AgentLink{URL: a.URL, Name: "agent",
			Facts: format.Count(a.Facts.Tools, "tool call")}
	}
	b.Live = p.header.Live
	w, err := b.Fill(ctx, snap, view, from, from+thread.PageLines)
	if err != nil {
		return nil, err
	}
	p.Items, p.Hidden, p.From, p.To = b.Done(), b.Hidden, w.From, w.To
	return b, nil
}

// head reads what is known about the session, and gives s its machine. It closes its snapshot, because a store has few.
func (v *Viewer) head(ctx context.Context, who server.Login, h *header, s *thread.Stream) error {
	err := v.open(ctx, who, *s, func(snap server.Snapshot, view server.View) error {
		h.S, h.Generations, h.View = snap.Session(), len(snap.Generations()), view
		return nil
	})
	if err != nil {
		return err
	}
	s.Pin(h.S)
	scope := server.ScopeOf(who.User)
	if h.Facts, err = v.store.SummaryOf(ctx, h.S.ID); err != nil {
		return err
	}
	h.Usage, err = v.store.Usage(ctx, scope,
		server.UsageQuery{By: []string{"model"}, Session: h.S.SessionID, User: h.S.Owner, Agents: true})
	if err != nil {
		return err
	}
	h.Tokens, h.Cost = v.sum(h.Usage)
	found, err := v.store.Find(ctx, scope, server.SessionQuery{
		Page: server.Page{Limit: maxAgents}, User: h.S.Owner, Parent: h.S.SessionID, Agents: true})
	if err != nil {
		return err
	}
	for _, a := range found.List {
		h.Agents = append(h.Agents, agentRow{cmp.Or(a.Summary.Title, a.Summary.FirstPrompt, a.SessionID),
			v.Base + thread.StreamOf(a.Session).Path(""), a.Summary, v.isLive(a.Active)})
	}
	drops, err := v.store.Drops(ctx, scope, server.DropQuery{Session: h.S.SessionID, User: h.S.Owner, Limit: 100})
	if err != nil {
		return err
	}
	h.Drops = int64(len(drops))
	h.Live = v.isLive(h.S.Active)
	h.Heading = cmp.Or(h.Facts.Title, h.Facts.FirstPrompt, h.S.SessionID)
	h.Resume = thread.Resume(h.S)
	if h.S.Parent != "" {
		h.Parent = v.Base + thread.Stream{ID: h.S.Parent, User: h.S.Owner, Machine: &h.S.Machine, Generation: -1}.Path("")
	}
	h.Compare = v.Base + s.Path("/compare")
	h.Links = map[string]string{"prompts": v.Base + s.Path("/prompts")}
	for _, format := range formats {
		h.Links[format] = v.Base + s.Path("/export", "format", format)
	}
	return nil
}

func (v *Viewer) isLive(last time.Time) bool { return v.now().Sub(last) < liveFor }

// sum adds tokens up and says what they cost.
func (v *Viewer) sum(rows []server.UsageRow) (t server.Tokens, c derive.Cost) {
	for _, r := range rows {
		t = t.Add(r.Tokens)
	}
	return t, v.Prices.Sum(rows)
}

// link sets where the page leads to.
func (p *conversationPage) link(base string) {
	at := func(from string) string { return base + p.Stream.Path("", "mode", p.modeParam(), "from", from) }
	if p.From > 0 {
		p.Pager.First = at("")
		p.Pager.Prev = at(strconv.FormatInt(max(0, p.From-thread.PageLines), 10))
	}
	if p.To < p.Total {
		p.Pager.Next = at(strconv.FormatInt(p.To, 10))
		p.Pager.Last = at("end")
	}
	p.Modes = modes(base, p.Stream, p.Mode, p.From)
}

func (p *conversationPage) modeParam() string {
	if p.Mode == thread.Focused {
		return ""
	}
	return string(p.Mode)
}

// modes are the other ways to show a conversation, at the same position.
func modes(base string, s thread.Stream, on thread.Mode, from int64) []choice {
	at := ""
	if from > 0 {
		at = strconv.FormatInt(from, 10)
	}
	var out []choice
	for _, m := range []thread.Mode{thread.Focused, thread.Everything, thread.PromptsOnly} {
		param := string(m)
		if m == thread.Focused {
			param = ""
		}
		out = append(out, choice{string(m), base + s.Path("", "mode", param, "from", at), m == on})
	}
	out[0].Name, out[1].Name, out[2].Name = "Focused", "Everything", "Prompts"
	return out
}

// permalink is GET /sessions/{id}/L/{line}: the window with the line, in a mode that shows it.
func (v *Viewer) permalink(w http.ResponseWriter, r *http.Request, who server.Login) error {
	s := requested(r)
	line, err := strconv.ParseInt(r.PathValue("line"), 10, 64)
	if err != nil || line < 0 {
		return server.ErrNotFound
	}
	show := ""
	err = v.open(r.Context(), who, s, func(snap server.Snapshot, view server.View) error {
		if line >= view.Total {
			return server.ErrNotFound
		}
		b := thread.NewBuilder(v.Base, s, thread.Focused)
		if _, err := b.Fill(r.Context(), snap, view, line, line+1); err != nil {
			return err
		}
		if len(b.Done()) == 0 {
			show = string(thread.Everything)
		}
		return nil
	})
	if err != nil {
		return err
	}
	from := ""
	if line >= thread.PageLines/2 {
		from = strconv.FormatInt(line-thread.PageLines/10, 10)
	}
	http.Redirect(w, r, v.Base+s.Path("", "mode", show, "from", from)+fmt.Sprintf("#L%d", line), http.StatusSeeOther)
	return nil
}
