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
)

// hitList is what `search --json` prints.
type hitList struct {
	SchemaVersion int   `json:"schema_version"`
	Hits          []hit `json:"hits"`
	More          bool  `json:"more"`
}

// maxHits is how many lines a server answers at most.
const maxHits = 1000

// hit is a line that was found.
type hit struct {
	Session    string         `json:"session"`
	User       string         `json:"user"` // whose session it is
	Machine    string         `json:"machine"`
	Project    string         `json:"project"`
	Title      string         `json:"title"`
	Generation int64          `json:"generation"`
	Line       int64          `json:"line"`
	At         *time.Time     `json:"at"`
	Kind       string         `json:"kind"`
	Current    bool           `json:"current"` // the newest generation shows it
	Snippet    []remote.Piece `json:"snippet"`
	URL        string         `json:"url"`
}

func (a verbs) searchCommand() *cobra.Command {
	var f remote.Find
	var since, command string
	cmd := &cobra.Command{
		Use:   "search [TEXT…]",
		Short: "Search the conversations on the server",
		Long: "Find lines that contain all of the words; words in double quotes must be adjacent. With --tool, --file or " +
			"--command it finds tool calls by their tool, the file they touched or the command they ran. TEXT is not needed " +
			"then; with it, calls and results of the tool or file that contain the words are found. Lines are " +
			"grouped by session, newest first; of each session the best are shown, prompts and answers before tool calls. " +
			"With --session all of one session are shown, as many as --limit says.",
		Example: "  ccship search rounding cart\n  ccship search '\"off by one\"' --kind prompt,answer --since 7d\n" +
			"  ccship search --tool 'mcp__github__*'\n  ccship search --tool Bash --kind error",
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.Limit < 1 || f.Limit > maxHits {
				return control.Usage("--limit must be 1 to 1000", "narrow the search with --session, --project or --since")
			}
			from, err := show.Since(since, time.Now())
			if err != nil {
				return err
			}
			if !from.IsZero() {
				f.Since = from.UTC().Format(time.RFC3339Nano)
			}
			f.Text = strings.Join(args, " ")
			if err := placed(&f, command); err != nil {
				return err
			}
			return a.search(cmd, f)
		},
	}
	cmd.Flags().StringVar(&f.Kind, "kind", "",
		"only these, separated by commas: prompt, message, answer, thinking, tool, result, title, other, "+
			"history, edit, read, command, "+
			"error")
	cmd.Flags().StringVar(&f.File, "file", "",
		"only tool calls that read or changed this `file`: its path, or the end of it")
	cmd.Flags().StringVar(&f.Tool, "tool", "",
		"only calls of this tool, by its `name`, and their results; * at its end: of tools whose names begin so")
	cmd.Flags().StringVar(&command, "command", "", "only `commands` that Claude ran and that contain these words")
	cmd.Flags().StringVar(&f.Project, "project", "", "only in this project, by its `name`")
	cmd.Flags().StringVar(&f.Session, "session", "", "only in this `session` and its agents")
	cmd.Flags().StringVar(&f.User, "user", "", whoseUsage)
	cmd.Flags().StringVar(&since, "since", "", "only lines written since then: 2026-11-01, 36h or 7d")
	cmd.Flags().BoolVar(&f.Superseded, "superseded", false, "also search lines that a rewind removed")
	cmd.Flags().IntVar(&f.Limit, "limit", 20, "how many at most")
	a.AddJSON(cmd)
	return cmd
}

// placed makes a search for a command one for its words, and refuses a search for nothing.
func placed(f *remote.Find, command string) error {
	switch {
	case command != "" && (f.Text != "" || f.File != "" || f.Tool != "" || f.Kind != ""):
		return control.Usage("--command cannot be combined with TEXT, --file, --tool or --kind",
			"`ccship search --kind command WORDS` is the same search")
	case command != "":
		f.Text, f.Kind = command, "command"
	case f.Text == "" && f.File == "" && f.Tool == "":
		return control.Usage("nothing to search for", "give words, --tool, --file or --command")
	}
	return nil
}

func (a verbs) search(cmd *cobra.Command, f remote.Find) error {
	ctx, stop := show.UntilSignal(cmd.Context())
	defer stop()
	l, err := a.onServer(ctx, &f.Session)
	if err != nil {
		return err
	}
	return a.found(ctx, l, f)
}

// found prints what a search finds.
func (a verbs) found(ctx context.Context, l *library.Library, f remote.Find) error {
	shown := f.Limit
	if !a.JSON { // of many lines of one session only the best are shown
		f.Limit = min(maxHits, f.Limit*10)
	}
	hits, more, err := l.Server.Search(ctx, f)
	if err != nil {
		return err
	}
	if !a.JSON {
		return a.Print(a.View().Hits(hits, shown, more))
	}
	doc := hitList{SchemaVersion: control.SchemaVersion, Hits: []hit{}, More: more}
	for _, h := range hits {
		doc.Hits = append(doc.Hits, hit{
			Session: h.Session.SessionID, User: h.Session.User, Machine: h.Session.Machine, Project: h.Session.Project,
			Title: h.Title, Generation: h.Generation, Line: h.Line, At: h.Time, Kind: h.Kind, Current: h.Current,
			Snippet: h.Snippet, URL: h.URL,
		})
	}
	return a.PrintJSON(doc)
}
