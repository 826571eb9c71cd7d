package web

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/web/page"
	"github.com/ccship/ccship/server/web/thread"
	"github.com/ccship/ccship/transcript"
)

const (
	// recent is how far back a session may have been active to stand on the wall, and mostCards how many stand there.
	recent    = 12 * time.Hour
	mostCards = 12
	// ended is how long a session stays there after Claude Code has finished.
	ended = 30 * time.Minute
	// tailLines are how many of a session's last lines say how it stands, and tailBytes how much of them is read.
	tailLines = 24
	tailBytes = 256 << 10
)

// card is a session on the wall.
type card struct {
	row
	liveState
}

// wall is the sessions that run now, on all machines.
type wall struct {
	page.Layout
	Now []card
}

// running is GET /now: the wall.
func (p *homePages) running(w http.ResponseWriter, r *http.Request, who server.Login) error {
	x := wall{Layout: p.site.Layout(r, who, "Running now", "sessions")}
	var err error
	if x.Now, err = p.cards(r.Context(), server.ScopeOf(who.User)); err != nil {
		return err
	}
	p.site.Render(w, http.StatusOK, "now.html", x)
	return nil
}

// cards returns the sessions that run, wait or have just ended. Those that need a person come first.
func (p *homePages) cards(ctx context.Context, scope server.Scope) ([]card, error) {
	found, err := p.findShort(ctx, scope, server.SessionQuery{Since: p.now().Add(-recent),
		Page: server.Page{Limit: mostCards, Recent: true}})
	if err != nil {
		return nil, err
	}
	var out []card
	for _, s := range p.rows(found.List, nil, nil, nil) {
		records, err := p.tail(ctx, scope, s.Session)
		if errors.Is(err, server.ErrNotFound) {
			continue // forgotten meanwhile
		}
		if err != nil {
			return nil, err
		}
		c := card{s, liveStateOf(records, s.Active, p.now())}
		if quiet := p.now().Sub(s.Active); !c.Needs && quiet > ended || c.State == "" {
			continue
		}
		out = append(out, c)
	}
	slices.SortStableFunc(out, func(a, b card) int { return cmp.Compare(rank(a), rank(b)) })
	return out, nil
}

func rank(c card) int {
	if c.Needs {
		return 0
	}
	return 1
}

// came says of the sessions of a list what came of them.
func (p *homePages) came(ctx context.Context, scope server.Scope, groups []group) error {
	for _, g := range groups {
		for i := range g.Sessions {
			s := &g.Sessions[i]
			key := ending{s.ID, s.Lines, s.Active}
			if s.Came = p.endings.of(key); s.Came != "" {
				continue
			}
			records, err := p.tail(ctx, scope, s.Session)
			if errors.Is(err, server.ErrNotFound) {
				continue // forgotten meanwhile
			}
			if err != nil {
				return err
			}
			s.Came, _, _ = strings.Cut(liveStateOf(records, s.Active, p.now()).Words, ";")
			if p.now().Sub(s.Active) > recent {
				p.endings.add(key, s.Came)
			}
		}
	}
	return nil
}

// ending names the end of a session that is over.
type ending struct {
	stream, lines int64
	active        time.Time
}

// endings remembers how sessions ended: to look costs as much as all else of a list. Safe for concurrent use.
type endings struct {
	mu    sync.Mutex
	words map[ending]string
}

// maxEndings is how many are remembered.
const maxEndings = 10_000

func (e *endings) of(key ending) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.words[key]
}

func (e *endings) add(key ending, words string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.words == nil || len(e.words) >= maxEndings {
		e.words = map[ending]string{}
	}
	e.words[key] = words
}

// tail returns the last records of a session, in order.
func (p *homePages) tail(ctx context.Context, scope server.Scope, x server.Session) (out []transcript.Record,
	err error) {
	open := func(ctx context.Context, scope server.Scope, _ server.Ref) (server.Snapshot, error) {
		return p.store.View(ctx, scope, server.Ref{Stream: x.ID}) // its number is known: nothing has to be looked up
	}
	err = openView(ctx, open, scope, thread.StreamOf(x), func(snap server.Snapshot, view server.View) (err error) {
		out, err = lastRecords(ctx, snap, view)
		return err
	})
	return out, err
}

// lastRecords returns the last records of a view, in order.
func lastRecords(ctx context.Context, snap server.Snapshot, view server.View) (out []transcript.Record, err error) {
	left := tailBytes
	for to := view.Total; to > max(0, view.Total-tailLines) && left > 0; to-- {
		err := thread.EachHead(ctx, snap, view.Between(to-1, to), func(l server.Line, _ int64) error {
			if left -= len(l.Raw); left < 0 {
				return nil // too long to be looked into for a few words
			}
			l.Raw = slices.Clone(l.Raw)
			out = append(thread.Records(l), out...)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// liveState says what a session does now, by its last records. Claude Code writes nothing while it waits for a
// permission, so a call without a result is either running or waiting.
type liveState struct {
	State string // "working", "waits", "maybe", "failed", "done"; "" when the records do not tell
	Words string
	Last  string // the last thing said or done
	Needs bool   // a person has to look
}

const (
	// homePatience is how long a call may be without a result before it may be waiting for permission.
	homePatience = 20 * time.Second
	// silence is how long Claude Code may write nothing before it counts as gone.
	silence = 10 * time.Minute
	// abandoned is how long a call may be without a result before it counts as stopped: no command runs that long, and a
	// question for permission that nobody answered has gone with its terminal.
	abandoned = time.Hour
)

// liveStateOf reads records from the last one back. active is when the last one was written.
func liveStateOf(records []transcript.Record, active, now time.Time) (s liveState) {
	answered := map[string]bool{}
	quiet := now.Sub(active)
	mode := ""
	for i := len(records) - 1; i >= 0; i-- {
		if mode == "" {
			mode = records[i].PermissionMode
		}
	}
	for i := len(records) - 1; i >= 0; i-- {
		r := &records[i]
		if r.Message == nil || r.Sidechain || r.Meta {
			continue
		}
		if s.Last == "" {
			s.Last = r.Preview()
		}
		if s.State == "" {
			s.decide(r, answered, quiet, mode)
		}
		if s.State != "" && s.Last != "" {
			return s
		}
	}
	return s
}

// decide reads one record. answered are the calls that later records have results of.
func (s *liveState) decide(r *transcript.Record, answered map[string]bool, quiet time.Duration, mode string) {
	switch {
	case r.APIError:
		s.State, s.Words, s.Needs = "failed", "Failed: the model could not be reached", true
	case r.Interrupted():
		s.State, s.Words = "done", "Interrupted by the user"
	case r.Type == "user":
		results := false
		for _, b := range r.Message.Blocks() {
			if b.Kind == transcript.ToolResultBlock {
				answered[b.ToolID], results = true, true
			}
		}
		if results || r.Speech().Speaker != transcript.NoSpeaker {
			s.works(quiet)
		}
	case r.Type == "assistant" && !r.Message.Synthetic():
		s.answer(r, answered, quiet, mode)
	}
}

func (s *liveState) works(quiet time.Duration) {
	s.State, s.Words = "working", "Working"
	if quiet > silence {
		s.State, s.Words = "done", "Stopped before an answer"
	}
}

// answer decides by a record of an answer: a call that nothing answered, or the end of a turn.
func (s *liveState) answer(r *transcript.Record, answered map[string]bool, quiet time.Duration, mode string) {
	calls, text := false, false
	for _, b := range r.Message.Blocks() {
		if b.Kind != transcript.ToolUseBlock {
			text = text || b.Kind == transcript.TextBlock
			continue
		}
		calls = true
		if answered[b.ToolID] {
			continue
		}
		took := page.Duration(quiet.Truncate(time.Second))
		switch {
		case quiet > recent && (b.ToolName == "AskUserQuestion" || b.ToolName == "ExitPlanMode"):
			s.State, s.Words = "done", "Stopped at a question"
		case b.ToolName == "AskUserQuestion":
			s.State, s.Words, s.Needs = "waits", "Waiting: Claude asks a question", true
		case b.ToolName == "ExitPlanMode":
			s.State, s.Words, s.Needs = "waits", "Waiting: a plan needs approval", true
		case quiet <= homePatience || mode == "bypassPermissions":
			s.works(quiet)
			if s.State == "done" {
				s.Words = "Stopped during " + b.ToolName
			}
		case quiet > abandoned:
			s.State, s.Words = "done", "Stopped during "+page.OneLine(b.ToolName, 60)
		default:
			s.State, s.Needs = "maybe", true
			s.Words = b.ToolName + " for " + took + ": running, or waiting for permission"
		}
		return
	}
	reason := r.Message.StopReason
	if reason == "" && text && quiet > silence {
		reason = "end_turn" // old versions of Claude Code never write one: the answer stands last
	}
	switch {
	case calls, reason == "" || reason == "tool_use":
		s.works(quiet)
	default:
		s.State, s.Words = "done", "Finished; your turn"
	}
}

// besidePage is how many sessions stand next to a conversation at first.
const besidePage = 40

// beside is sessions in few words.
type beside struct {
	Current string // session that is open
	Groups  []group
	Next    string
}

// beside is GET /beside?current&after, with what the list is narrowed to: sessions next to a conversation.
func (p *homePages) beside(w http.ResponseWriter, r *http.Request, who server.Login) error {
	q := r.URL.Query()
	users, err := userChips(r.Context(), p.store, who, q, anyUsers)
	if err != nil {
		return err
	}
	find, projects, err := p.narrowed(r, who, users)
	if err != nil {
		return err
	}
	find.Page.Limit = besidePage
	found, err := p.findShort(r.Context(), server.ScopeOf(who.User), find)
	if errors.Is(err, server.ErrBadPage) {
		return page.BadRequestError("after must come from a link of this list.")
	}
	if err != nil {
		return err
	}
	b := beside{Current: q.Get("current"), Groups: byDay(p.rows(found.List, projects, nil, nil), p.now(), page.Zone(r))}
	if err := p.mark(r.Context(), who.User.ID, b.Groups); err != nil {
		return err
	}
	if found.Next != "" {
		b.Next = p.site.Base + page.Address("/beside", q, "after", found.Next)
	}
	p.site.Render(w, http.StatusOK, "beside.html", b)
	return nil
}
