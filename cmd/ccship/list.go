package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/cmd/ccship/show"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/library"
	"github.com/ccship/ccship/daemon/remote"
	"github.com/ccship/ccship/internal/amount"
	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/transcript/session"
)

// sessionList is what `list --json` prints.
type sessionList struct {
	SchemaVersion int            `json:"schema_version"`
	Sessions      []library.Item `json:"sessions"`
	More          bool           `json:"more"`
	// Census counts what is on this disk; it is missing while no daemon runs.
	Census *control.Census `json:"census,omitempty"`
	// Incomplete says why the server could not be asked; then only sessions on disk are listed.
	Incomplete *control.Error `json:"incomplete,omitempty"`
}

func (a *app) listCommand() *cobra.Command {
	var f library.Filter
	var since string
	var lost bool
	cmd := &cobra.Command{
		Use:   "list [WORDS…]",
		Short: "List conversations, most recently active first",
		Long: "List conversations on disk and on the server, the most recently active first, and count what is on " +
			"disk. With WORDS, only those that have them in title, first prompt, project or id. A conversation was " +
			"active at the time in its newest record.\n\nWith --lost, list sessions of the prompt history " +
			"(history.jsonl) that are neither on disk nor on the server, and sessions of this machine that only the " +
			"server has.",
		RunE: show.Interruptible(func(ctx context.Context, _ *cobra.Command, args []string) (err error) {
			if f.Limit < 1 {
				return control.Usage("--limit must be 1 or more", "see `ccship list --help`")
			}
			if f.Since, err = show.Since(since, time.Now()); err != nil {
				return err
			}
			f.Text = strings.Join(args, " ")
			return a.list(ctx, f, lost)
		}),
	}
	cmd.Flags().StringVar(&f.Project, "project", "",
		"only of this project, by its `name`, or of a folder and those below it")
	cmd.Flags().StringVar(&f.Machine, "machine", "", "only of this `machine`: its host name, or the beginning of its id")
	cmd.Flags().StringVar(&since, "since", "", "only active since then: 2026-11-01, 36h or 7d")
	cmd.Flags().IntVar(&f.Limit, "limit", 20, "how many at most")
	cmd.Flags().BoolVar(&lost, "lost", false, "those that are gone from this machine")
	a.completeProjects(cmd)
	a.AddJSON(cmd)
	return cmd
}

func (a *app) list(ctx context.Context, f library.Filter, lost bool) error {
	l, err := a.library(ctx)
	if err != nil {
		return err
	}
	if lost {
		return a.lost(ctx, l)
	}
	items, more, err := l.List(ctx, f)
	if err == nil && len(items) == 0 && f.Project != "" && !filepath.IsAbs(f.Project) {
		err = a.knownProject(ctx, l, f.Project)
	}
	return a.showList(ctx, items, more, err)
}

// knownProject refuses a name that no project has, with the nearest.
func (a *app) knownProject(ctx context.Context, l *library.Library, name string) error {
	if some, _, err := l.List(ctx, library.Filter{Project: name, Limit: 1}); err != nil || len(some) > 0 {
		return err
	}
	hint := "`ccship list` shows the projects"
	if near := amount.Nearest(name, a.projectNames(ctx)); near != "" {
		hint = "did you mean " + near + "?"
	}
	return control.Usage(fmt.Sprintf("--project has no %q", name), hint)
}

func (a *app) showList(ctx context.Context, items []library.Item, more bool, trouble error) error {
	if trouble != nil && len(items) == 0 {
		return trouble
	}
	doc := sessionList{SchemaVersion: control.SchemaVersion, Sessions: slices.Concat([]library.Item{}, items), More: more,
		Census: a.census(ctx)}
	if trouble != nil {
		doc.Incomplete = show.Describe(trouble)
	}
	var err error
	if a.JSON {
		err = a.PrintJSON(doc)
	} else {
		if trouble != nil { // whether the server has those on disk is not known
			for i := range doc.Sessions {
				doc.Sessions[i].State = ""
			}
		}
		err = a.Print(a.View().Sessions(doc.Sessions, doc.More) + a.View().Census(doc.Census))
		if trouble != nil {
			show.PrintError(a.Stderr, doc.Incomplete)
		}
	}
	if err == nil && trouble != nil {
		return show.SilentError{Code: show.ExitCode(doc.Incomplete)}
	}
	return err
}

// censusTime is how long the daemon may take to count.
const censusTime = 2 * time.Second

// census returns what is on this disk, if a daemon runs and says so soon.
func (a *app) census(ctx context.Context) *control.Census {
	ctx, cancel := context.WithTimeout(ctx, censusTime)
	defer cancel()
	client, err := a.DaemonClient(ctx)
	if err != nil {
		return nil
	}
	page, err := client.Sessions(ctx, control.SessionsQuery{Page: control.Page{Limit: 1}})
	if err != nil {
		return nil
	}
	return &page.Census
}

func (a *app) lost(ctx context.Context, l *library.Library) error {
	lost, err := l.Lost(ctx)
	return show.Answer(&a.App, lost, err, a.View().Lost)
}

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

// allKinds is the --timeline without a value.
const allKinds = "all"

// showOptions are the flags of `ccship show`.
type showOptions struct {
	library.View
	generation int64
	limit      int
	timeline   string // kinds, with commas; "": no timeline
}

func (a *app) showCommand() *cobra.Command {
	var o showOptions
	cmd := &cobra.Command{
		Use:   "show SESSION",
		Short: "Show what a conversation is about, how it ended, and what happened in it",
		Long: "Show what a conversation is about, and its last messages.\n\nWith --timeline, list prompts, " +
			"commands, compactions, cleared contexts, rewinds, interruptions, checkpoints, documents, agents, " +
			"errors and tool calls of 10 seconds or more, with time and duration. Durations leave out the time in " +
			"which Claude Code waited for you; with a ≤ they may contain it.",
		Example:           "  ccship show 3f6b2c1d\n  ccship show 3f6b2c1d --timeline=prompt,error",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeSession,
		RunE: show.Interruptible(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			if o.timeline != "" {
				return a.timeline(ctx, args[0], o)
			}
			if err := chosenGeneration(cmd, o.generation, &o.View.Generation); err != nil {
				return err
			}
			if o.Messages = o.limit; !cmd.Flags().Changed("limit") {
				o.Messages = 12
			}
			return a.showSession(ctx, args[0], o)
		}),
	}
	cmd.Flags().StringVar(&o.User, "user", "", userUsage)
	cmd.Flags().StringVar(&o.Machine, "machine", "", "of this `machine`: its host name, or the beginning of its id")
	cmd.Flags().Int64Var(&o.generation, "generation", 0, "an older `generation`, from before a rewind")
	cmd.Flags().IntVar(&o.limit, "limit", 0, "how many of the last messages or events; without it 12 messages, all events")
	cmd.Flags().StringVar(&o.timeline, "timeline", "", "what happened, and how long it took; or only these `kinds`")
	cmd.Flags().Lookup("timeline").NoOptDefVal = allKinds
	a.completeFlag(cmd, "timeline", library.TimelineKinds())
	a.AddJSON(cmd)
	return cmd
}

func (a *app) showSession(ctx context.Context, session string, o showOptions) error {
	if o.limit < 0 || o.limit > 200 {
		return control.Usage("--limit must be 0 to 200", "`ccship export` has the whole conversation")
	}
	l, err := a.library(ctx)
	if err != nil {
		return err
	}
	shown, err := l.Show(ctx, session, o.View)
	return show.Answer(&a.App, shown, err, a.View().Session)
}

// chosenGeneration sets into to the generation that was asked for, if one was.
func chosenGeneration(cmd *cobra.Command, generation int64, into **int64) error {
	if !cmd.Flags().Changed("generation") {
		return nil
	}
	if generation < 0 {
		return control.Usage("--generation must be 0 or more", "")
	}
	*into = &generation
	return nil
}

func (a *app) timeline(ctx context.Context, session string, o showOptions) error {
	if o.limit < 0 {
		return control.Usage("--limit must be 0 or more", "see `ccship show --help`")
	}
	var kinds []string
	if o.timeline != allKinds {
		var err error
		if kinds, err = listed("--timeline", o.timeline, library.TimelineKinds()); err != nil {
			return err
		}
	}
	l, err := a.library(ctx)
	if err != nil {
		return err
	}
	which := library.Copy{Machine: o.Machine, User: o.User}
	t, err := l.Timeline(ctx, session, which, kinds, func(session string) []library.Moment {
		return a.checkpointMoments(ctx, session)
	})
	if o.limit > 0 {
		t.Moments = t.Moments[max(0, len(t.Moments)-o.limit):]
	}
	return show.Answer(&a.App, t, err, a.View().Timeline)
}

// checkpointMoments returns a session's checkpoints, as far as a daemon runs and tells within a moment.
func (a *app) checkpointMoments(ctx context.Context, id string) (out []library.Moment) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	client, err := a.DaemonClient(ctx)
	if err != nil {
		return nil
	}
	found, err := client.Checkpoints(ctx, control.CheckpointsQuery{Session: id, Page: control.Page{Limit: 1000}})
	if err != nil {
		return nil
	}
	for _, c := range found.Checkpoints {
		out = append(out, library.Moment{Moment: session.Moment{Kind: session.TimelineCheckpoint, At: c.CreatedAt,
			Text: c.TriggerType, Before: c.TokensUsed}})
	}
	slices.Reverse(out)
	return out
}
