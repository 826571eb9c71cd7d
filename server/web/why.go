package web

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/derive"
	"github.com/ccship/ccship/server/web/page"
	"github.com/ccship/ccship/server/web/thread"
	"github.com/ccship/ccship/transcript/provenance"
	"github.com/ccship/ccship/transcript/session"
)

// whyPage shows which sessions wrote commits.
type whyPage struct {
	page.Layout
	Commits []whyCommit // none: a page that asks for a file
	Wrong   bool        // the address is not one that was printed
	turns   int
}

// maxTurns is how many prompts a page shows.
const maxTurns = 500

type whyCommit struct {
	Commit        string
	Added, Proven int64
	Parts         []whyPart // of what is not proven
	Turns         []whyTurn
	More          int64 // turns that are not shown
}

type whyPart struct {
	Lines int64
	Words string
}

// whyTurn is a prompt, and what its turn wrote.
type whyTurn struct {
	Author provenance.Author
	Prompt provenance.Prompt
	Lines  int64
}

// fileTurnsPage shows which turns wrote to a file.
type fileTurnsPage struct {
	page.Layout
	File  string
	Turns []derive.FileTurn
	More  bool // there are older ones
}

// fileTurns is GET /why?file&project: the turns that wrote to a file, within what the reader may see.
func (v *Viewer) fileTurns(w http.ResponseWriter, r *http.Request, who server.Login, file string) error {
	p := fileTurnsPage{Layout: v.Layout(r, who, "Why", "sessions"), File: file}
	var err error
	p.Turns, p.More, err = derive.FileTurns(r.Context(), v.store, server.ScopeOf(who.User), v.userNames(r.Context()),
		derive.FileQuery{File: file, Project: r.URL.Query().Get("project"), To: v.Now(), URL: v.lineURL})
	if err != nil {
		return err
	}
	v.Render(w, http.StatusOK, "turns.html", p)
	return nil
}

// commitRow is a commit that a session made, or that a user asked about.
type commitRow struct {
	protocol.CommitShare        // Added is 0: nobody asked
	URL                  string // of the line where the session made it; "" elsewhere
}

// commitsOf lists the commits of a session, the newest first.
func (v *Viewer) commitsOf(ctx context.Context, scope server.Scope, x server.Session) (rows []commitRow, err error) {
	shares, err := v.store.Commits(ctx, scope, x.Owner, x.ID)
	if err != nil {
		return nil, err
	}
	for _, c := range shares {
		rows = append(rows, commitRow{CommitShare: c.CommitShare})
	}
	made, err := v.store.Moments(ctx, server.MomentQuery{Owner: x.Owner, Stream: x.ID, Backwards: true,
		Limit: server.MaxCommits, Kinds: []string{string(session.TimelineCommit)}})
	if err != nil {
		return nil, err
	}
	for _, stored := range made {
		var m session.Moment
		if err := json.Unmarshal(stored.Data, &m); err != nil {
			return nil, fmt.Errorf("read commits: %w", err)
		}
		at := slices.IndexFunc(rows, func(r commitRow) bool { return strings.HasPrefix(r.Commit, m.Text) })
		if at < 0 {
			at, rows = len(rows), append(rows, commitRow{CommitShare: protocol.CommitShare{Commit: m.Text, At: m.At}})
		}
		rows[at].URL = v.lineURL(x, stored.Line)
	}
	slices.SortStableFunc(rows, func(a, b commitRow) int { return b.At.Compare(a.At) })
	return rows, nil
}

// userNames tells the names of users; "" when one cannot be read.
func (v *Viewer) userNames(ctx context.Context) func(owner int64) string {
	return func(owner int64) string {
		names, err := v.store.UserNames(ctx, []int64{owner})
		if err != nil {
			return ""
		}
		return names[owner]
	}
}

// lineURL returns the address of a line's page.
func (v *Viewer) lineURL(x server.Session, line int64) string {
	return v.Base + thread.StreamOf(x).LinePath(line)
}

// why is GET /why?q: what is known of commits, which the address has as hashes of lines, within what the reader may
// see. Without either, the page asks for a file.
func (v *Viewer) why(w http.ResponseWriter, r *http.Request, who server.Login) error {
	if file := r.URL.Query().Get("file"); file != "" {
		return v.fileTurns(w, r, who, file)
	}
	p := whyPage{Layout: v.Layout(r, who, "Why", "sessions")}
	link := r.URL.Query().Get("q")
	commits, err := provenance.ParseLink(link)
	ask := derive.WhyQuery{Commits: commits, URL: v.lineURL}
	if err != nil || len(commits) == 0 || ask.Check() != nil {
		status := http.StatusOK
		if p.Wrong = link != ""; p.Wrong {
			status = http.StatusBadRequest
		}
		v.Render(w, status, "why.html", p)
		return nil
	}
	answers, _, err := derive.AnswerWhy(r.Context(), v.store, server.ScopeOf(who.User), v.userNames(r.Context()), ask)
	if err != nil {
		return err
	}
	for _, a := range answers {
		c := whyCommitOf(a)
		shown := min(len(c.Turns), maxTurns-p.turns)
		c.More, c.Turns = int64(len(c.Turns)-shown), c.Turns[:shown]
		p.turns += shown
		p.Commits = append(p.Commits, c)
	}
	v.Render(w, http.StatusOK, "why.html", p)
	return nil
}

func whyCommitOf(a provenance.Answer) whyCommit {
	c := whyCommit{Commit: a.Commit, Added: int64(a.Added)}
	for _, s := range a.Sessions {
		c.Proven += int64(s.Lines)
		for _, p := range s.Prompts {
			c.Turns = append(c.Turns, whyTurn{s, p, int64(p.Lines)})
		}
	}
	for _, reason := range slices.Sorted(maps.Keys(a.NotProven)) {
		c.Parts = append(c.Parts, whyPart{int64(a.NotProven[reason]), whyText(reason)})
	}
	return c
}

func whyText(reason string) string {
	switch reason {
	case provenance.ByHand:
		return "by hand or by a command"
	case provenance.Restored:
		return "moved or brought back"
	case provenance.Masked:
		return "with a secret"
	case provenance.Little:
		return "too little of a session"
	case provenance.OtherAuthor:
		return "a bot’s"
	case provenance.NoTranscript:
		return "no transcript of that time"
	}
	return reason
}
