package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/cmd/ccship/setup"
	"github.com/ccship/ccship/cmd/ccship/show"
	"github.com/ccship/ccship/daemon/config"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/library"
	"github.com/ccship/ccship/daemon/project"
	"github.com/ccship/ccship/daemon/remote"
	"github.com/ccship/ccship/internal/sys"
	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/transcript/price"
)

// userUsage describes the flag that names whose session is meant.
const whoseUsage = "only conversations of this `user` of the server; @me: your own"

const userUsage = "of this `user` of the server; needed when several have a session of that id"

func (a verbs) sessionsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sessions",
		Short: "List, show, search, export, restore and resume conversations",
		Long: "Conversations on disk and on the server, side by side. None of it needs the daemon. " +
			"Name a session by its id or a unique prefix of it (4 characters or more).",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		a.sessionsList(), a.sessionsShow(), a.sessionsTimeline(), a.searchCommand(),
		a.sessionsExport(), a.sessionsRestore(),
		a.sessionsResume(), a.sessionsLost(), a.sessionsShare(), a.sessionsMark(), a.savedViews(),
	)
	return cmd
}

// library is the user's sessions: those of the service, or of `ccship up` while only that runs.
func (a verbs) library(ctx context.Context) (*library.Library, error) {
	c, err := a.Config()
	if err != nil {
		return nil, err
	}
	client, _, err := control.Reach(ctx, show.Sockets(c))
	if err == nil && c.OriginOf("socket") == config.FromDefault && client.Path() == show.UpSocket(c) {
		home := setup.Home{Dir: show.UpDir(c)}
		address, err := os.ReadFile(home.File("listen"))
		if err != nil {
			return nil, fmt.Errorf("read address of `ccship up`: %w", err)
		}
		if c, err = home.Config(c, strings.TrimSpace(string(address))); err != nil {
			return nil, err
		}
	}
	return newLibrary(c)
}

// onServer is the library of a command that asks the server. It completes the session that the command names, if any.
func (a verbs) onServer(ctx context.Context, session *string) (*library.Library, error) {
	l, err := a.library(ctx)
	if err != nil {
		return nil, err
	}
	if l.Server == nil {
		return nil, control.NewError("no_server", "no server is set", "")
	}
	if *session == "" {
		return l, nil
	}
	found, err := l.Find(ctx, *session)
	if err != nil {
		return nil, err
	}
	*session = found.Session
	return l, nil
}

// newLibrary reads the sessions on disk and on the user's own server, as the daemon would see them; no daemon needs to
// run.
func newLibrary(c config.Config) (*library.Library, error) {
	self, err := sys.LoadIdentity(c.StateDir)
	if err != nil {
		return nil, err
	}
	prices, err := priceList(c)
	if err != nil {
		prices = &price.List{} // costs are not known; `ccship usage` says why
	}
	finder := project.NewFinder()
	l := &library.Library{Roots: c.Roots, Machine: self.Name, Prices: prices, Repository: func(cwd string) string {
		policy, _ := finder.Find(cwd) // what cannot be read has no repository
		return policy.Repository
	}}
	if c.ServerURL == "" {
		return l, nil
	}
	base, name, err := outbox.NormalizeURL(c.ServerURL)
	if err != nil {
		return nil, &config.Error{Message: err.Error(), Hint: "fix server_url"}
	}
	l.Server = remote.New(base, name, c.APIKey, "ccship/"+c.Version)
	return l, nil
}

// sessionList is what `sessions list --json` prints.
type sessionList struct {
	SchemaVersion int            `json:"schema_version"`
	Sessions      []library.Item `json:"sessions"`
	More          bool           `json:"more"`
	// Incomplete says why the server could not be asked; then only sessions on disk are listed.
	Incomplete *control.Error `json:"incomplete,omitempty"`
}

func (a verbs) sessionsList() *cobra.Command {
	var f library.Filter
	var since string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List conversations, most recently active first",
		Long: "List conversations on disk and on the server, the most recently active first. A conversation was active " +
			"when its newest record was written, by the time in the record; --since goes by that too. \"–\" stands for a " +
			"number that is not known.\n\n" +
			"--most, --failed, --starred and --tag ask the server only. --most counts agents for their session, at list " +
			"prices, in the last 90 days unless --since says; time is between the first and the last record.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if f.Limit < 1 {
				return control.Usage("--limit must be 1 or more", "see `ccship sessions list --help`")
			}
			if !slices.Contains([]string{"", "cost", "tokens", "time"}, f.Most) {
				return control.Usage("--most must be cost, tokens or time", "see `ccship sessions list --help`")
			}
			if f.Since, err = show.Since(since, time.Now()); err != nil {
				return err
			}
			ctx, stop := show.UntilSignal(cmd.Context())
			defer stop()
			l, err := a.library(ctx)
			if err == nil && l.Server == nil && f.Served() {
				err = control.NewError("no_server", "no server is set", "")
			}
			if err != nil {
				return err
			}
			items, more, err := l.List(ctx, f)
			return a.showList(items, more, err)
		},
	}
	cmd.Flags().StringVar(&f.Project, "project", "",
		"only of this project, by its `name`, or of a folder and those below it")
	cmd.Flags().StringVar(&f.Machine, "machine", "", "only of this `machine`: its host name, or the beginning of its id")
	cmd.Flags().StringVar(&since, "since", "", "only active since then: 2026-11-01, 36h or 7d")
	cmd.Flags().StringVar(&f.Text, "text", "", "only with this `text` in title, first prompt, project or id")
	cmd.Flags().IntVar(&f.Limit, "limit", 20, "how many at most")
	servedFlags(cmd, &f)
	a.AddJSON(cmd)
	return cmd
}

// servedFlags are the flags that only a server can answer.
func servedFlags(cmd *cobra.Command, f *library.Filter) {
	cmd.Flags().StringVar(&f.Most, "most", "", "list first those with the most of `what`: cost, tokens or time")
	cmd.Flags().BoolVar(&f.Failed, "failed", false, "only those with errors")
	cmd.Flags().BoolVar(&f.Starred, "starred", false, "only those that you have starred")
	cmd.Flags().StringVar(&f.Tag, "tag", "", "only those that you have given this `tag`")
}

func (a verbs) showList(items []library.Item, more bool, trouble error) error {
	if trouble != nil && len(items) == 0 {
		return trouble
	}
	doc := sessionList{SchemaVersion: control.SchemaVersion, Sessions: items, More: more}
	if items == nil {
		doc.Sessions = []library.Item{}
	}
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
		err = a.Print(a.View().Sessions(doc.Sessions, doc.More))
		if trouble != nil {
			show.PrintError(a.Stderr, doc.Incomplete)
		}
	}
	if err == nil && trouble != nil {
		return show.SilentError{Code: show.ExitCode(doc.Incomplete)}
	}
	return err
}

func (a verbs) sessionsShow() *cobra.Command {
	var v library.View
	var generation int64
	cmd := &cobra.Command{
		Use:               "show SESSION",
		Short:             "Show what a conversation is about, and how it ended",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeSession,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := chosenGeneration(cmd, generation, &v.Generation); err != nil {
				return err
			}
			if v.Messages < 0 || v.Messages > 200 {
				return control.Usage("--messages must be 0 to 200", "")
			}
			ctx, stop := show.UntilSignal(cmd.Context())
			defer stop()
			l, err := a.library(ctx)
			if err != nil {
				return err
			}
			shown, err := l.Show(ctx, args[0], v)
			if err != nil {
				return err
			}
			if a.JSON {
				return a.PrintJSON(struct {
					SchemaVersion int `json:"schema_version"`
					library.Shown
				}{control.SchemaVersion, shown})
			}
			return a.Print(a.View().Session(shown))
		},
	}
	cmd.Flags().StringVar(&v.User, "user", "", userUsage)
	cmd.Flags().StringVar(&v.Machine, "machine", "", "of this `machine`: its host name, or the beginning of its id")
	cmd.Flags().Int64Var(&generation, "generation", 0, "an older `generation`, from before a rewind")
	cmd.Flags().IntVar(&v.Messages, "messages", 12, "how many of the last messages")
	a.AddJSON(cmd)
	return cmd
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
