package main

import (
	"context"
	"errors"
	"io"
	"os/user"
	"time"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/internal/amount"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store"
)

// policyRoom is what commands of the server's program share.
type policyRoom interface {
	// WithStore opens a store for one piece of work.
	WithStore(c *cobra.Command, url string, work func(store.Store) error) error
	StoreFlag(c *cobra.Command, url *string)
	JSONFlag(c *cobra.Command, asJSON *bool)
	PrintJSON(w io.Writer, v any) error
	// Usage makes err a usage error, Hinted one with what to do about it.
	Usage(c *cobra.Command, err error) error
	Hinted(err error, hint string) error
	Args(check cobra.PositionalArgs) cobra.PositionalArgs
	Group(use, short, say string, verbs ...*cobra.Command) *cobra.Command
	User(ctx context.Context, s store.Store, name string) (server.User, error)
	// RemoveCold removes from cold storage what is not used any more.
	RemoveCold(c *cobra.Command, s store.Store)
	// Progress returns what says now and then how far work is.
	Progress(w io.Writer) func(format string, args ...any)
}

type commands struct{ policyRoom }

// policyCommands are `retention` and `vacuum`.
func policyCommands(room policyRoom) []*cobra.Command {
	x := commands{room}
	return []*cobra.Command{x.newRetention(), x.newVacuum()}
}

func (x commands) newRetention() *cobra.Command {
	var url string
	var yes, asJSON bool
	c := &cobra.Command{
		Use:   "retention [--yes]",
		Short: "Count what the rules of retention take, and take it",
		Long: "Count what the rules would remove or move to cold storage, by rule and user, and what they must " +
			"keep. With --yes, do it; `serve` does it once a day. Without rules everything is kept for ever.\n\nNo " +
			"client sends again what a rule removed: the server keeps the hash of each line. Rules keep what is on " +
			"hold, in use, has a star, name, note, tag, share link, linked document or checkpoint, and sessions " +
			"that share history with one that is kept.",
		Example: `  ccship-server retention rule add generations --older-than 90d
  ccship-server retention rule add sessions --older-than 365d --user ann
  ccship-server retention hold add --project shop --why "case 17"
  ccship-server retention --yes`,
		Args: x.Args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			return x.WithStore(c, url, func(s store.Store) error { return x.applyRetention(c, s, yes, asJSON) })
		},
	}
	c.Flags().BoolVar(&yes, "yes", false, "apply the rules; without it they are only counted")
	x.JSONFlag(c, &asJSON)
	x.StoreFlag(c, &url)
	c.AddCommand(x.newRetentionLog(),
		x.Group("rule", "Say what is removed or moved, and after which time", "add, list or rm",
			x.newRuleAdd(), x.newRuleList(), x.newRuleRemove()),
		x.Group("hold", "Keep a session, a user or a project from every rule", "add, list or rm",
			x.newHoldAdd(), x.newHoldList(), x.newHoldRemove()))
	return c
}

// whoAsks is the name of who runs the command, for the log.
func whoAsks() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return ""
}

// names are users by number.
func names(ctx context.Context, s store.Store) (users, error) {
	list, err := s.Users(ctx)
	out := users{0: "-"}
	for _, u := range list {
		out[u.ID] = u.Name
	}
	return out, err
}

func (x commands) applyRetention(c *cobra.Command, s store.Store, yes, asJSON bool) error {
	ctx, p, total := c.Context(), x.Progress(c.ErrOrStderr()), server.RetentionCount{}
	rules, err := s.RetentionRules(ctx)
	if err != nil {
		return err
	}
	done, err := s.Retire(ctx, server.Retiring{Dry: !yes, By: whoAsks(), Now: time.Now(),
		Progress: func(n server.RetentionCount) {
			total.Add(n)
			p("%d sessions, %d lines, %s", total.Sessions, total.Lines, amount.Size(total.Bytes))
		}})
	if err != nil {
		return err
	}
	if done.Busy {
		return x.Hinted(errors.New("another process applies the rules"), "wait until it is done, then run this again")
	}
	who, err := names(ctx, s)
	if err == nil && yes {
		x.RemoveCold(c, s)
		err = s.Scrub(ctx, func(done, total int64) { p("overwriting what is free: %d of %d pages", done, total) })
	}
	if err != nil {
		return err
	}
	r := newRetentionReport(rules, done, who, yes)
	if asJSON {
		return x.PrintJSON(c.OutOrStdout(), r)
	}
	return r.Print(c.OutOrStdout(), c.ErrOrStderr())
}

func (x commands) newRetentionLog() *cobra.Command {
	var limit int
	var asJSON bool
	c := x.listing("List what was applied to which sessions, latest first",
		func(c *cobra.Command, s store.Store, who users) error {
			list, err := s.RetentionLog(c.Context(), limit)
			if err != nil {
				return err
			}
			if asJSON {
				return x.PrintJSON(c.OutOrStdout(), logDocument(list, who))
			}
			return log(c.OutOrStdout(), list, who)
		})
	c.Use = "log"
	c.Flags().IntVar(&limit, "limit", 100, "at most so many")
	x.JSONFlag(c, &asJSON)
	return c
}
