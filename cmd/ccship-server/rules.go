package main

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/internal/amount"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store"
)

func (p *cli) newRetentionAdd() *cobra.Command {
	var age, over, user string
	var cold bool
	r := server.RetentionRule{Action: server.ActionDrop}
	c := &cobra.Command{
		Use:   "add generations|sessions (--older-than AGE | --over SIZE)",
		Short: "Add a rule: drop what rewinds left, or whole sessions, or move them to cold storage",
		Args:  wrapArgs(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) (err error) {
			if r.What = args[0]; r.What != server.RetireGenerations && r.What != server.RetireSessions {
				return usage(c, fmt.Errorf("%q is neither generations nor sessions", r.What))
			}
			if age == "" && over == "" {
				return usage(c, errors.New("give --older-than, --over or both"))
			}
			if age != "" {
				if r.Age, err = amount.ParseAge(age); err != nil || r.Age <= 0 {
					return usage(c, fmt.Errorf("bad --older-than %q: want an age such as 90d", age))
				}
			}
			if over != "" {
				if r.Over, err = amount.ParseSize(over); err != nil || r.Over <= 0 {
					return usage(c, fmt.Errorf("bad --over %q: want a size such as 50GiB", over))
				}
			}
			if cold {
				r.Action = server.ActionCold
			}
			return p.withStore(c, func(s store.Store) error { return addRule(c, s, &r, user) })
		},
	}
	c.Flags().StringVar(&age, "older-than", "", "`AGE` since the session was active, or since the rewind")
	c.Flags().StringVar(&over, "over", "", "`SIZE` that a user may have; what is above it goes, oldest first")
	c.Flags().StringVar(&user, "user", "", "only this user's")
	c.Flags().StringVar(&r.Project, "project", "", "only of this project, by name or hash")
	c.Flags().BoolVar(&cold, "cold", false, "move to cold storage, whatever --cold-after of serve says; remove nothing")
	c.Flags().BoolVar(&r.Checkpoints, "with-checkpoints", false, "drop sessions that have checkpoints too; those stay")
	c.Flags().BoolVar(&r.Usage, "with-usage", false, "take what dropped sessions used out of the sums too")
	return c
}

func addRule(c *cobra.Command, s store.Store, r *server.RetentionRule, name string) (err error) {
	if r.User, err = userID(c.Context(), s, name); err != nil {
		return err
	}
	r.By, r.At = whoAsks(), time.Now()
	id, err := s.AddRetentionRule(c.Context(), *r)
	if err != nil {
		return err
	}
	return term.Printf(c.ErrOrStderr(), "rule %d: %s\n"+
		"ccship-server retention counts what it takes; serve applies it within a day\n", id, r.Says())
}

func (p *cli) newRetentionRemove() *cobra.Command {
	return &cobra.Command{
		Use:   "rm rule|hold NUMBER",
		Short: "End a rule or a hold",
		Args:  wrapArgs(cobra.ExactArgs(2)),
		RunE: func(c *cobra.Command, args []string) error {
			id, err := strconv.ParseInt(args[1], 10, 64)
			if err != nil || args[0] != "rule" && args[0] != "hold" {
				return usage(c, fmt.Errorf("%q is no rule NUMBER or hold NUMBER", args[0]+" "+args[1]))
			}
			return p.withStore(c, func(s store.Store) error {
				remove := s.RemoveRetentionRule
				if args[0] == "hold" {
					remove = s.RemoveHold
				}
				err := remove(c.Context(), id)
				if errors.Is(err, server.ErrNotFound) {
					return hinted{fmt.Errorf("there is no %s %d", args[0], id), "ccship-server retention shows them"}
				}
				return err
			})
		},
	}
}

func (p *cli) newRetentionHold() *cobra.Command {
	var user string
	var h server.Hold
	c := &cobra.Command{
		Use:   "hold (--session ID | --user NAME | --project PROJECT) --why TEXT",
		Short: "Keep a session, a user or a project from every rule until the hold is removed",
		Args:  wrapArgs(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if h.Session == "" && user == "" && h.Project == "" || h.Why == "" {
				return usage(c, errors.New("give --why, and --session, --user or --project"))
			}
			return p.withStore(c, func(s store.Store) (err error) {
				if h.User, err = userID(c.Context(), s, user); err != nil {
					return err
				}
				h.By, h.At = whoAsks(), time.Now()
				id, err := s.AddHold(c.Context(), h)
				if err != nil {
					return err
				}
				return term.Printf(c.ErrOrStderr(), "hold %d is in force\n", id)
			})
		},
	}
	c.Flags().StringVar(&h.Session, "session", "", "`ID` of a session; its agents are kept too")
	c.Flags().StringVar(&user, "user", "", "everything of this user, or with --project of that project")
	c.Flags().StringVar(&h.Project, "project", "", "a project, by name or hash")
	c.Flags().StringVar(&h.Why, "why", "", "the `reason`, for those who look later")
	return c
}

func (p *cli) newVacuum() *cobra.Command {
	var full bool
	c := &cobra.Command{
		Use:   "vacuum",
		Short: "Give space that is free in the database back to the disk",
		Long: "Give free space in the database back to the disk. SQLite writes the file anew, which needs as much" +
			" free disk; lines wait meanwhile. PostgreSQL's VACUUM makes the space usable again; with --full it " +
			"writes each table anew and locks it meanwhile.",
		Args: wrapArgs(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			return p.withStore(c, func(s store.Store) error {
				before, err := sizeOf(c, s)
				if err != nil {
					return err
				}
				if err := s.Vacuum(c.Context(), full); err != nil {
					return err
				}
				after, err := sizeOf(c, s)
				if err != nil {
					return err
				}
				return term.Printf(c.ErrOrStderr(), "the database had %s, and has %s\n", amount.Size(before), amount.Size(after))
			})
		},
	}
	c.Flags().BoolVar(&full, "full", false, "PostgreSQL: VACUUM FULL")
	return c
}

func sizeOf(c *cobra.Command, s store.Store) (int64, error) {
	n, err := s.(server.Sizer).Sizes(c.Context())
	return n.Bytes, err
}
