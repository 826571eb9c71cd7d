package web

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/auth"
	"github.com/ccship/ccship/server/derive"
	"github.com/ccship/ccship/server/web/page"
	"github.com/ccship/ccship/server/web/thread"
	"github.com/ccship/ccship/transcript"
)

// liveFor is how long after its last line a session counts as live.
const liveFor = time.Minute

// conversationPage is the page of a conversation.
type conversationPage struct {
	page.Layout
	header
	Stream thread.Stream
	Mode   thread.Mode
	Modes  []page.Choice
	Items  []thread.Item
	Hidden int64
	From   int64 // first line of the page
	To     int64 // line behind it
	Total  int64
	Pager  pager
	Tail   string
	End    string // address of the page's end
	Older  bool   // not the newest generation or epoch
	Newest bool   // the view that grows
	Beside string
	Find   finder

	SecretLines []thread.SecretLine
	secrets     *thread.Secrets // nil for readers to whom secrets are not marked
	east        time.Duration   // of UTC, where the reader is
}

// header is what is known about a session.
type header struct {
	S           server.Session
	Facts       server.Summary
	Usage       []server.UsageRow // by model and context
	Tokens      server.Tokens
	Cost        transcript.Cost
	Heading     string
	Mark        server.Mark // the reader's own
	MarkURL     string
	Live        bool
	Stands      liveState
	Parent      string // address
	Origin      string // address of the session that it is a fork of
	Agents      []agentRow
	Commits     []commitRow
	Drops       int64
	Keeping     server.RetentionOutlook
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

// pager leads to other windows; "" is none.
type pager struct{ First, Prev, Next, Last string }

// newPager is the pager of a window of lines. at is the address of the one that begins at a line, or is the "end".
func newPager(from, to, total int64, at func(from string) string) (p pager) {
	if from > 0 {
		p.First, p.Prev = at(""), at(strconv.FormatInt(max(0, from-thread.PageLines), 10))
	}
	if to < total {
		p.Next, p.Last = at(strconv.FormatInt(to, 10)), at("end")
	}
	return p
}

// beginOf is the line at which the window begins that a request asks for, of so many lines.
func beginOf(r *http.Request, total int64) int64 {
	from := page.Number(r.URL.Query().Get("from"), 0)
	if r.URL.Query().Get("from") == "end" {
		from = max(0, total-thread.PageLines)
	}
	return min(from, max(0, total-1))
}

// maxAgents is how many agents of a session are listed.
const maxAgents = 200

// conversation is GET /sessions/{id}?machine&epoch&generation&mode&from: a window of a file. from may be "end".
func (v *Viewer) conversation(w http.ResponseWriter, r *http.Request, who server.Login) error {
	s := requested(r)
	q := r.URL.Query()
	p := conversationPage{Stream: s, Mode: thread.ModeOf(q.Get("mode")), east: page.Zone(r)}
	if p.Mode == thread.PromptsOnly {
		return v.prompts(w, r, who)
	}
	if err := v.head(r.Context(), who, &p.header, &s, fewCheckpoints); err != nil {
		return err
	}
	p.Stream = s
	var b *thread.Builder
	err := v.open(r.Context(), who, s, func(snap server.Snapshot, view server.View) (err error) {
		p.Total, p.Older = view.Total, s.Generation >= 0 && s.Generation < p.S.Generation
		p.secrets = v.secrets.For(who.User, snap.Session().Owner)
		p.From = beginOf(r, view.Total)
		p.To = p.From + thread.PageLines
		b, err = v.read(r.Context(), &p, snap, view)
		return err
	})
	if err != nil {
		return err
	}
	if err := v.findOverflows(r.Context(), who, s, b.Overflows); err != nil {
		return err
	}
	p.Layout = v.Layout(r, who, p.Heading, "sessions")
	p.Newest = !p.Older && s.Epoch == ""
	p.Beside = v.Base + page.Address("/beside", nil, "current", p.S.SessionID)
	p.Tail = v.Base + s.Full().Path("/tail", "mode", string(p.Mode))
	p.End = v.Base + p.Stream.Path("", "mode", p.Mode.Param(), "from", "end")
	p.link(v.Base)
	if err := v.findIn(r, who, &p); err != nil {
		return err
	}
	v.Render(w, http.StatusOK, "conversation.html", p)
	return nil
}

// read makes the items of the page's lines, as many as there is space for.
func (v *Viewer) read(ctx context.Context, p *conversationPage, snap server.Snapshot,
	view server.View) (*thread.Builder, error) {
	b := thread.NewBuilder(v.Base, p.Stream, p.Mode)
	b.Agents = agentLinks(p.Agents)
	b.Project = snap.Session().ProjectHash
	b.Live, b.Secrets, b.East = p.header.Live, p.secrets, p.east
	b.Budget().Cache = &v.coloured
	var err error
	if b.Story, err = thread.ReadStory(ctx, snap, view); err != nil {
		return nil, err
	}
	if !p.Older { // moments are of the newest view
		if b.Times, err = outlineTimes(ctx, v.store, snap.Session(), p.From, p.To); err != nil {
			return nil, err
		}
	}
	w, err := b.Fill(ctx, snap, view, p.From, p.To)
	if err != nil {
		return nil, err
	}
	p.Items, p.Hidden, p.From, p.To, p.SecretLines = b.Done(), b.Hidden, w.From, w.To, b.SecretLines
	if p.Mode == thread.Focused {
		p.Items = thread.FoldRuns(p.Items)
	}
	return b, nil
}

// agentLinks returns links to agents by what they were asked for.
func agentLinks(agents []agentRow) map[string]thread.AgentLink {
	out := map[string]thread.AgentLink{}
	for _, a := range agents {
		out[thread.AgentKey(a.Facts.FirstPrompt)] = thread.AgentLink{URL: a.URL, Name: "agent",
			Facts: page.Count(a.Facts.Tools, "tool call")}
	}
	return out
}

// head reads what is known about the session, and gives s its machine; with its artifacts, unless checkpoints is 0. It
// closes its snapshot, because a store has few.
func (v *Viewer) head(ctx context.Context, who server.Login, h *header, s *thread.Stream, checkpoints int) error {
	err := v.open(ctx, who, *s, func(snap server.Snapshot, view server.View) error {
		return v.stored(ctx, h, snap, view)
	})
	if err != nil {
		return err
	}
	s.Pin(h.S)
	scope := server.ScopeOf(who.User)
	known, err := derive.Known(ctx, v.store, scope, h.S)
	if err != nil {
		return err
	}
	h.Facts, h.Usage = known.Summary, known.Usage
	h.Tokens, h.Cost = sumUsage(v.Prices, h.Usage)
	if err := shorten(ctx, v.store, scope, &h.S); err != nil {
		return err
	}
	s.Short = h.S.Short
	if err := v.findAgents(ctx, scope, h); err != nil {
		return err
	}
	if h.Commits, err = v.commitsOf(ctx, scope, h.S); err != nil {
		return err
	}
	h.Live = v.isLive(h.S.Active)
	if err = v.marked(ctx, who, h, *s); err != nil {
		return err
	}
	h.Heading = cmp.Or(h.Mark.Name, h.Facts.Name())
	h.Resume = thread.Resume(h.S)
	if h.S.Parent != "" {
		h.Parent = v.Base + s.Owner().Path("")
	}
	h.Compare = v.Base + s.Path("/compare")
	h.Links = map[string]string{"prompts": v.Base + s.Path("/prompts")}
	if auth.MayShare(who.User, server.Address{Owner: h.S.Owner}) {
		h.Links["share"] = v.Base + s.Path("/share")
	}
	for format := range formats {
		h.Links[format] = v.Base + s.Path("/export", "format", format)
	}
	if checkpoints == 0 {
		return nil
	}
	return v.artifactsOf(ctx, who, h, *s, checkpoints)
}

// findAgents lists the agents of the session.
func (v *Viewer) findAgents(ctx context.Context, scope server.Scope, h *header) error {
	found, err := v.store.Find(ctx, scope, server.SessionQuery{
		Page: server.Page{Limit: maxAgents}, User: h.S.Owner, Parent: h.S.SessionID, Agents: true})
	for _, a := range found.List {
		a.Short = h.S.Short
		h.Agents = append(h.Agents, agentRow{a.Summary.Name(),
			v.Base + thread.StreamOf(a.Session).Path(""), a.Summary, v.isLive(a.Active)})
	}
	return err
}

// stored reads what the session's lines say of it.
func (v *Viewer) stored(ctx context.Context, h *header, snap server.Snapshot, view server.View) error {
	h.S, h.Generations, h.View = snap.Session(), len(snap.Generations()), view
	origin, err := derive.Origin(ctx, snap)
	if origin != "" {
		h.Origin = v.Base + thread.Stream{ID: origin, User: h.S.Owner, Generation: -1}.Path("")
	}
	if err != nil {
		return err
	}
	last, err := lastRecords(ctx, snap, view)
	h.Stands = liveStateOf(last, h.S.Active, v.Now())
	return err
}

// marked reads what the reader keeps about the session, how often lines were taken out of it, and what retention says.
func (v *Viewer) marked(ctx context.Context, who server.Login, h *header, s thread.Stream) error {
	drops, err := v.store.Drops(ctx, server.ScopeOf(who.User),
		server.DropQuery{Session: h.S.SessionID, User: h.S.Owner, Limit: 100})
	if err != nil {
		return err
	}
	h.Drops = int64(len(drops))
	if h.Keeping, err = v.store.KeptUntil(ctx, h.S.ID, v.Now()); err != nil {
		return err
	}
	marks, err := v.store.Marks(ctx, who.User.ID, []int64{h.S.ID})
	h.Mark, h.MarkURL = marks[h.S.ID], v.Base+s.Path("/mark")
	return err
}

func (v *Viewer) isLive(last time.Time) bool { return v.Now().Sub(last) < liveFor }

// sumUsage adds tokens up and says what they cost.
func sumUsage(prices *transcript.Prices, rows []server.UsageRow) (t server.Tokens, c transcript.Cost) {
	for _, r := range rows {
		t = t.Add(r.Tokens)
	}
	return t, derive.CostOfAll(prices, rows)
}

// link sets where the page leads to.
func (p *conversationPage) link(base string) {
	p.Pager = newPager(p.From, p.To, p.Total, func(from string) string {
		return base + p.Stream.Path("", "mode", p.Mode.Param(), "from", from)
	})
	p.Modes = modes(base, p.Stream, p.Mode, p.From)
}

// modes are the other ways to show a conversation, at the same position.
func modes(base string, s thread.Stream, on thread.Mode, from int64) []page.Choice {
	at := strings.TrimLeft(strconv.FormatInt(from, 10), "0") // nothing for the beginning
	var out []page.Choice
	for _, m := range []struct {
		mode thread.Mode
		name string
	}{{thread.Focused, "Focused"}, {thread.Everything, "Everything"}, {thread.PromptsOnly, "Outline"}} {
		out = append(out, page.Choice{Name: m.name, URL: base + s.Path("", "mode", m.mode.Param(), "from", at),
			On: m.mode == on})
	}
	return out
}

// permalink is GET /sessions/{id}/L/{line}: the window with the line, in a mode that shows it.
func (v *Viewer) permalink(w http.ResponseWriter, r *http.Request, who server.Login) error {
	s := requested(r)
	line, err := number(r)
	if err != nil {
		return err
	}
	show, from := "", max(0, line-thread.PageLines/10)
	if line < thread.PageLines/2 {
		from = 0
	}
	err = v.open(r.Context(), who, s, func(snap server.Snapshot, view server.View) error {
		if line >= view.Total {
			return server.ErrNotFound
		}
		b := thread.NewBuilder(v.Base, s, thread.Focused)
		w, err := b.Fill(r.Context(), snap, view, from, from+thread.PageLines)
		if err != nil {
			return err
		}
		if line >= w.To { // the page ends before it
			from = line
			return nil
		}
		if !thread.Lands(b.Done(), line) {
			show = string(thread.Everything)
		}
		return nil
	})
	if err != nil {
		return err
	}
	at := strings.TrimLeft(strconv.FormatInt(from, 10), "0") // nothing for the beginning
	http.Redirect(w, r, v.Base+s.Path("", "mode", show, "from", at)+fmt.Sprintf("#L%d", line), http.StatusSeeOther)
	return nil
}
