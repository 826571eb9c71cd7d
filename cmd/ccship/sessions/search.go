package sessions

import (
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/cmd/ccship/cli"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/remote"
)

// hitList is what `search --json` prints.
type hitList struct {
	SchemaVersion int   `json:"schema_version"`
	Hits          []hit `json:"hits"`
	More          bool  `json:"more"`
}

// hit is a line that was found.
type hit struct {
	Session    string         `json:"session"`
	Machine    string         `json:"machine"`
	Project    string         `json:"project"`
	Title      string         `json:"title"`
	Generation int64          `json:"generation"`
	Line       int64          `json:"line"`
	At         *time.Time     `json:"at"`
	Kind       string         `json:"kind"`
	Current    bool           `json:"current"` // the newest generation shows it
	Snippet    []remote.Piece `json:"snippet"`
}

func (a verbs) searchCommand() *cobra.Command {
	var f remote.Find
	var since string
	cmd := &cobra.Command{
		Use:     "search TEXT…",
		Short:   "Search the conversations on the server",
		Long:    "Find lines that contain all of the words; words in double quotes must be adjacent.",
		Example: "  ccship search rounding cart\n  ccship search '\"off by one\"' --kind prompt,answer --since 7d",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.Limit < 1 || f.Limit > 1000 {
				return control.Usage("--limit must be 1 to 1000", "narrow the search with --session, --project or --since")
			}
			from, err := parseSince(since, time.Now())
			if err != nil {
				return err
			}
			if !from.IsZero() {
				f.Since = from.UTC().Format(time.RFC3339Nano)
			}
			f.Text = strings.Join(args, " ")
			return a.search(cmd, f)
		},
	}
	cmd.Flags().StringVar(&f.Kind, "kind", "",
		"only these, separated by commas: prompt, answer, thinking, tool, result, title, other")
	cmd.Flags().StringVar(&f.Project, "project", "", "only in this project, by its `name`")
	cmd.Flags().StringVar(&f.Session, "session", "", "only in this `session` and its agents")
	cmd.Flags().StringVar(&since, "since", "", "only lines written since then: 2026-11-01, 36h or 7d")
	cmd.Flags().BoolVar(&f.Superseded, "superseded", false, "also search lines that a rewind removed")
	cmd.Flags().IntVar(&f.Limit, "limit", 20, "how many at most")
	a.AddJSON(cmd)
	return cmd
}

func (a verbs) search(cmd *cobra.Command, f remote.Find) error {
	ctx, stop := cli.UntilSignal(cmd.Context())
	defer stop()
	l, err := a.library(ctx)
	if err != nil {
		return err
	}
	if l.Server == nil {
		return control.NewError("no_server", "no server is set", "")
	}
	if f.Session != "" {
		found, err := l.Find(ctx, f.Session)
		if err != nil {
			return err
		}
		f.Session = found.Session
	}
	hits, more, err := l.Server.Search(ctx, f)
	if err != nil {
		return err
	}
	if !a.JSON {
		return a.Print(a.View().Hits(hits, more))
	}
	doc := hitList{SchemaVersion: control.SchemaVersion, Hits: []hit{}, More: more}
	for _, h := range hits {
		doc.Hits = append(doc.Hits, hit{
			Session: h.Session.SessionID, Machine: h.Session.Machine, Project: h.Session.Project, Title: h.Title,
			Generation: h.Generation, Line: h.Line, At: h.Time, Kind: h.Kind, Current: h.Current, Snippet: h.Snippet,
		})
	}
	return a.PrintJSON(doc)
}
