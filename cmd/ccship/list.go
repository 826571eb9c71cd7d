package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/cmd/ccship/show"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/library"
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
	return a.showList(ctx, items, more, err)
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
