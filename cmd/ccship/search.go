package main

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/cmd/ccship/show"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/library"
	"github.com/ccship/ccship/daemon/remote"
	"github.com/ccship/ccship/protocol"
)

// foundList is what `search --json` prints.
type foundList struct {
	SchemaVersion int              `json:"schema_version"`
	Sessions      []foundSession   `json:"sessions"`
	Total         int64            `json:"total"` // at least so many if incomplete
	Missing       []string         `json:"missing"`
	Notes         []string         `json:"notes"`
	Facets        *protocol.Facets `json:"facets"`
	More          bool             `json:"more"`
	Incomplete    bool             `json:"incomplete"`
}

// maxFound is how many sessions a server answers at most.
const maxFound = 100

// foundSession is a session that was found, with the best of its lines.
type foundSession struct {
	Session string   `json:"session"`
	User    string   `json:"user"` // whose session it is
	Machine string   `json:"machine"`
	Project string   `json:"project"`
	Title   string   `json:"title"`
	Branch  string   `json:"branch"`
	Gone    *string  `json:"gone_session"` // not stored; a folder where the prompt history names no session
	Missing []string `json:"missing"`      // words that it lacks
	Hits    []hit    `json:"hits"`
}

// hit is a line that was found.
type hit struct {
	Session    string           `json:"session"` // an agent's, perhaps
	Generation int64            `json:"generation"`
	Line       int64            `json:"line"`
	At         *time.Time       `json:"at"`
	Kind       string           `json:"kind"`
	Current    bool             `json:"current"` // the newest generation shows it
	Snippet    []protocol.Piece `json:"snippet"`
	URL        string           `json:"url"`
}

func (a *app) searchCommand() *cobra.Command {
	var f remote.Find
	cmd := &cobra.Command{
		Use:   "search TEXT…",
		Short: "Search the conversations on the server",
		Long: "Find sessions, the best first, by words that you remember, in any of their forms. \"A quoted phrase\" is " +
			"found exactly, /retr(y|ies)/ is a regular expression, a OR b is either, -word (after --) leaves " +
			"sessions out. Filters: project: machine: user: session: file: tool: kind: branch: model: before: " +
			"after: is:error is:starred is:lost is:running. What is not understood is searched as words.",
		Example: "  ccship search rounding cart\n  ccship search '\"off by one\"' kind:prompt,answer after:7d\n" +
			"  ccship search 'tool:mcp__github__*'\n  ccship search tool:Bash kind:error\n  ccship search -- timeout -test",
		RunE: show.Interruptible(func(ctx context.Context, _ *cobra.Command, args []string) error {
			if f.Limit < 1 || f.Limit > maxFound {
				return control.Usage("--limit must be 1 to 100", "narrow the search with project: or after:")
			}
			f.Text = strings.Join(args, " ")
			if strings.TrimSpace(f.Text) == "" {
				return control.Usage("nothing to search for", "give words, or a filter such as tool:Bash")
			}
			l, err := a.onServer(ctx, new(string))
			if err != nil {
				return err
			}
			return a.found(ctx, l, f)
		}),
	}
	cmd.Flags().IntVar(&f.Limit, "limit", 20, "how many sessions at most")
	a.AddJSON(cmd)
	return cmd
}

// found prints what a search finds.
func (a *app) found(ctx context.Context, l *library.Library, f remote.Find) error {
	f.Facets = a.JSON
	found, err := l.Server.Search(ctx, f)
	if err != nil {
		return err
	}
	if !a.JSON {
		return a.Print(a.View().Found(found))
	}
	doc := foundList{SchemaVersion: control.SchemaVersion, Sessions: []foundSession{}, Total: found.Total,
		Missing: found.Missing, Notes: found.Notes, Facets: found.Facets, More: found.Next != nil, Incomplete: found.More}
	for _, x := range found.Sessions {
		s := foundSession{x.Session.SessionID, x.Session.User, x.Session.Machine, x.Session.Project, x.Title, x.Branch,
			x.Gone, x.Missing, []hit{}}
		for _, h := range x.Hits {
			s.Hits = append(s.Hits, hit{h.SessionID, h.Generation, h.Line, h.Time, h.Kind, h.Current, h.Snippet, h.URL})
		}
		doc.Sessions = append(doc.Sessions, s)
	}
	return a.PrintJSON(doc)
}
