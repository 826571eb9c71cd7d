package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os/user"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/cmd/ccship/term"
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

// users are names by number.
type users map[int64]string

// count is a server.RetentionCount for programs.
type count struct {
	Rule        int64  `json:"rule"`
	Says        string `json:"says"`
	User        string `json:"user"`
	Sessions    int64  `json:"sessions"`
	Generations int64  `json:"generations"`
	Lines       int64  `json:"lines"`
	Bytes       int64  `json:"bytes"`
	Files       int64  `json:"files"`
}

// kept is a server.KeptCount for programs.
type kept struct {
	Rule     int64  `json:"rule"`
	Why      string `json:"why"`
	Sessions int64  `json:"sessions"`
}

// retentionReport is what was done, or would be.
type retentionReport struct {
	Schema  int     `json:"schema_version"`
	Applied bool    `json:"applied"`
	Rules   int     `json:"rules"`
	Counts  []count `json:"counts"`
	Kept    []kept  `json:"kept"`
}

// newRetentionReport returns a report of rules.
func newRetentionReport(rules []server.RetentionRule, done server.RetentionReport, who users,
	applied bool) *retentionReport {
	says := map[int64]string{}
	for i := range rules {
		says[rules[i].ID] = rules[i].Says()
	}
	r := &retentionReport{Schema: schemaVersion, Applied: applied, Rules: len(rules), Counts: []count{},
		Kept: []kept{}}
	for _, n := range done.Counts {
		r.Counts = append(r.Counts, count{n.Rule, says[n.Rule], who[n.User], n.Sessions, n.Generations, n.Lines, n.Bytes,
			n.Files})
	}
	for _, k := range done.Kept {
		r.Kept = append(r.Kept, kept(k))
	}
	slices.SortStableFunc(r.Counts, func(a, b count) int { return cmp.Compare(a.Rule, b.Rule) })
	return r
}

// Print writes a report for people: what counts to out, what to do next to words.
func (r *retentionReport) Print(out, words io.Writer) error {
	if len(r.Counts) > 0 {
		t := term.NewTable(out, "RULE", "USER", "SESSIONS", "GENERATIONS", "LINES", "FILES", "BYTES", "THE RULE SAYS")
		for _, n := range r.Counts {
			t.Row(n.Rule, n.User, n.Sessions, n.Generations, n.Lines, n.Files, amount.Size(n.Bytes), n.Says)
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	for _, k := range r.Kept {
		term.Printf(out, "rule %d keeps %s: %s\n", k.Rule, amount.Counted(k.Sessions, "session", "sessions"), k.Why)
	}
	next := "nothing was done; add --yes to apply the rules"
	switch {
	case r.Rules == 0:
		next = "everything is kept for ever: there are no rules; see ccship-server retention add --help"
	case r.Applied:
		next = "the rules are applied; ccship-server vacuum gives the space back to the disk"
	case len(r.Counts) == 0:
		next = "the rules take nothing now"
	}
	return term.Printf(words, "%s\n", next)
}

// log writes what was applied to which sessions.
func log(out io.Writer, list []server.RetentionEntry, who users) error {
	t := term.NewTable(out, "AT", "BY", "USER", "SESSION", "GENERATIONS", "LINES", "FILES", "BYTES", "RULE")
	for _, e := range list {
		t.Row(e.At.Format(time.RFC3339), e.By, who[e.User], e.SessionID, e.Generations, e.Lines, e.Files,
			amount.Size(e.Bytes), fmt.Sprintf("%d: %s", e.Rule, e.Says))
	}
	return t.Flush()
}

// logDocument returns what Log writes, for programs.
func logDocument(list []server.RetentionEntry, who users) any {
	type entry struct {
		At      time.Time `json:"at"`
		Run     time.Time `json:"run"`
		By      string    `json:"by"`
		Machine string    `json:"machine"`
		Session string    `json:"session_id"`
		Action  string    `json:"action"`
		count
	}
	all := []entry{}
	for _, e := range list {
		all = append(all, entry{e.At, e.Run, e.By, e.Machine, e.SessionID, e.Action,
			count{e.Rule, e.Says, who[e.User], 1, e.Generations, e.Lines, e.Bytes, e.Files}})
	}
	return struct {
		Schema int     `json:"schema_version"`
		Log    []entry `json:"log"`
	}{schemaVersion, all}
}

// rules writes the rules in force.
func rules(out io.Writer, list []server.RetentionRule, who users) error {
	t := term.NewTable(out, "RULE", "USER", "SINCE", "BY", "SAYS")
	for i := range list {
		r := &list[i]
		t.Row(r.ID, who.all(r.User), r.At.Format(time.RFC3339), r.By, r.Says())
	}
	return t.Flush()
}

// holds writes the holds in force.
func holds(out io.Writer, list []server.Hold, who users) error {
	t := term.NewTable(out, "HOLD", "SESSION", "USER", "PROJECT", "SINCE", "BY", "WHY")
	for _, h := range list {
		t.Row(h.ID, cmp.Or(h.Session, "all"), who.all(h.User), cmp.Or(h.Project, "all"),
			h.At.Format(time.RFC3339), h.By, h.Why)
	}
	return t.Flush()
}

// all returns a user's name; "all" where none is meant.
func (u users) all(id int64) string {
	if id == 0 {
		return "all"
	}
	return u[id]
}
