package main

import (
	"context"
	"errors"
	"os/user"
	"time"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/internal/amount"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store"
)

func (p *cli) newRetention() *cobra.Command {
	var yes bool
	var log int
	c := &cobra.Command{
		Use:   "retention [--yes]",
		Short: "Show the rules of retention and count what they take, or take it",
		Long: "Show the rules and holds in force, and count what the rules would remove or move to cold storage, " +
			"by rule and user, and what they must keep. With --yes, do it; `serve` does it once a day. With --log, " +
			"list what was applied to which sessions, latest first.\n\nWithout rules everything is kept for ever. " +
			"No client sends again what a rule removed. Rules keep what is on hold, in use, marked, shared, has a " +
			"linked document or a checkpoint, and sessions that share history with one that is kept.",
		Example: `  ccship-server retention add generations --older-than 90d
  ccship-server retention add sessions --older-than 365d --user ann
  ccship-server retention add sessions --over 50GiB --cold
  ccship-server retention hold --project shop --why "case 17"
  ccship-server retention rm hold 3
  ccship-server retention
  ccship-server retention --yes`,
		Args: wrapArgs(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			return p.withStore(c, func(s store.Store) error {
				if c.Flags().Changed("log") {
					return p.retentionLog(c, s, log)
				}
				return p.applyRetention(c, s, yes)
			})
		},
	}
	c.Flags().BoolVar(&yes, "yes", false, "apply the rules; without it they are only counted")
	c.Flags().IntVar(&log, "log", 0, "list the last `number` of sessions to which rules were applied")
	printsJSON(c)
	c.AddCommand(p.newRetentionAdd(), p.newRetentionHold(), p.newRetentionRemove())
	return c
}

// whoAsks returns the name of who runs the command, for the log.
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

func (p *cli) applyRetention(c *cobra.Command, s store.Store, yes bool) error {
	ctx, say, total := c.Context(), newProgress(c.ErrOrStderr()).say, server.RetentionCount{}
	list, err := s.RetentionRules(ctx)
	if err != nil {
		return err
	}
	done, err := s.Retire(ctx, server.RetireOptions{Dry: !yes, By: whoAsks(), Now: time.Now(),
		Progress: func(n server.RetentionCount) {
			total.Add(n)
			say("%d sessions, %d lines, %s", total.Sessions, total.Lines, amount.Size(total.Bytes))
		}})
	if err != nil {
		return err
	}
	if done.Busy {
		return hinted{errors.New("another process applies the rules"), "wait until it is done, then run this again"}
	}
	who, err := names(ctx, s)
	if err == nil && yes {
		removeCold(c, s)
		err = s.Scrub(ctx, func(done, total int64) { say("overwriting what is free: %d of %d pages", done, total) })
	}
	if err != nil {
		return err
	}
	r := newRetentionReport(list, done, who, yes)
	if p.json {
		return printJSON(c.OutOrStdout(), r)
	}
	if !yes {
		if err := printRules(c, s, list, who); err != nil {
			return err
		}
	}
	return r.Print(c.OutOrStdout(), c.ErrOrStderr())
}

func (p *cli) retentionLog(c *cobra.Command, s store.Store, limit int) error {
	list, err := s.RetentionLog(c.Context(), limit)
	if err != nil {
		return err
	}
	who, err := names(c.Context(), s)
	if err != nil {
		return err
	}
	if p.json {
		return printJSON(c.OutOrStdout(), logDocument(list, who))
	}
	return log(c.OutOrStdout(), list, who)
}

// printRules lists the rules and the holds in force, where there are some.
func printRules(c *cobra.Command, s store.Store, list []server.RetentionRule, who users) error {
	if len(list) > 0 {
		if err := rules(c.OutOrStdout(), list, who); err != nil {
			return err
		}
	}
	held, err := s.Holds(c.Context())
	if err != nil || len(held) == 0 {
		return err
	}
	return holds(c.OutOrStdout(), held, who)
}
