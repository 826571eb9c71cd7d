package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store"
)

// forgetOptions are the flags of forget.
type forgetOptions struct {
	p          *cli
	user       string
	lines, yes bool
}

func (p *cli) newForget() *cobra.Command {
	o := forgetOptions{p: p}
	c := &cobra.Command{
		Use:   "forget SESSION --yes | forget --lines [SESSION]",
		Short: "Remove a user's session and its agents for good, or mask the secrets in stored lines",
		Long: "Remove a user's session and its agents. They are never stored again.\n\nWith --lines, count the " +
			"secrets in stored lines by the built-in rules, of all sessions or of one and its agents. With --yes " +
			"too, replace each by a token of the same length, in every generation and in what is derived from it. " +
			"When a daemon sends such a line again, it is stored with the same tokens; `ccship verify` counts it " +
			"apart.",
		Args: wrapArgs(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			session := ""
			if len(args) > 0 {
				session = args[0]
			}
			switch {
			case o.lines:
				return o.maskLines(c, session)
			case session == "":
				return usageError{hinted{errors.New("SESSION is missing"), "with --lines, secrets in all sessions are masked"}}
			case !o.yes:
				return usageError{hinted{fmt.Errorf("this removes %s and cannot be undone", session),
					"add --yes to confirm; backups still contain it"}}
			}
			return o.forgetSession(c, session)
		},
	}
	c.Flags().StringVar(&o.user, "user", "", "user whose session is meant; needed when several users have one of that id")
	c.Flags().BoolVar(&o.lines, "lines", false, "mask secrets in lines; remove nothing")
	c.Flags().BoolVar(&o.yes, "yes", false, "confirm")
	printsJSON(c)
	return c
}

// forgetSession removes a session and says so.
func (o *forgetOptions) forgetSession(c *cobra.Command, session string) error {
	return o.p.withStore(c, func(s store.Store) error {
		gone, err := forget(c.Context(), s, session, o.user)
		if err != nil {
			return err
		}
		removeCold(c, s)
		if o.p.json {
			return printJSON(c.OutOrStdout(), struct {
				Schema    int    `json:"schema_version"`
				SessionID string `json:"session_id"`
				Lines     int64  `json:"lines_removed"`
			}{schemaVersion, gone.SessionID, gone.Lines})
		}
		return term.Printf(c.ErrOrStderr(), "%s is forgotten: %d lines removed\n", gone.SessionID, gone.Lines)
	})
}

// forget removes one user's session; "" is the only user who has it.
func forget(ctx context.Context, s store.Store, session, user string) (server.Forgotten, error) {
	owner, err := userID(ctx, s, user)
	if err != nil {
		return server.Forgotten{}, err
	}
	gone, err := s.Forget(ctx, server.Scope{All: true}, session, owner, time.Now())
	if errors.Is(err, server.ErrNotFound) {
		return gone, hinted{fmt.Errorf("there is no session %s", session), "the viewer and GET /api/sessions list them"}
	}
	if no, several := errors.AsType[*server.AmbiguousError](err); several {
		return gone, namingUser(ctx, s, no)
	}
	return gone, err
}

// namingUser names the users between whom a person has to choose.
func namingUser(ctx context.Context, s store.Store, no *server.AmbiguousError) error {
	users, err := s.Users(ctx)
	if err != nil {
		return err
	}
	var names []string
	for _, x := range no.Choices {
		for _, u := range users {
			if u.ID == x.Owner {
				names = append(names, u.Name)
			}
		}
	}
	return hinted{no, "add --user with one of: " + strings.Join(names, ", ")}
}
