package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store"
)

func newForget() *cobra.Command {
	var url, user string
	var yes, asJSON bool
	c := &cobra.Command{
		Use:   "forget SESSION --yes",
		Short: "Remove a user's session and its agents for good; it is never stored again",
		Args:  wrapArgs(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			if !yes {
				return usageError{hinted{fmt.Errorf("this removes %s and cannot be undone", args[0]),
					"add --yes to confirm; backups still contain it"}}
			}
			return withStore(c, url, func(s store.Store) error {
				gone, err := forget(c.Context(), s, args[0], user)
				if err != nil {
					return err
				}
				if asJSON {
					return printJSON(c.OutOrStdout(), struct {
						Schema    int    `json:"schema_version"`
						SessionID string `json:"session_id"`
						Lines     int64  `json:"lines_removed"`
					}{schemaVersion, gone.SessionID, gone.Lines})
				}
				_, err = fmt.Fprintf(c.ErrOrStderr(), "%s is forgotten: %d lines removed\n", gone.SessionID, gone.Lines)
				return err
			})
		},
	}
	c.Flags().StringVar(&user, "user", "", "user whose session is meant; needed when several users have one of that id")
	c.Flags().BoolVar(&yes, "yes", false, "confirm")
	jsonFlag(c, &asJSON)
	storeFlag(c, &url)
	return c
}

// forget removes one user's session; "" is the only user who has it.
func forget(ctx context.Context, s store.Store, session, user string) (server.Forgotten, error) {
	var owner int64
	if user != "" {
		u, err := findUser(ctx, s, user)
		if err != nil {
			return server.Forgotten{}, err
		}
		owner = u.ID
	}
	gone, err := s.Forget(ctx, server.Scope{All: true}, session, owner, time.Now())
	if errors.Is(err, server.ErrNotFound) {
		return gone, hinted{fmt.Errorf("there is no session %s", session), "the viewer and GET /api/sessions list them"}
	}
	no, several := errors.AsType[*server.AmbiguousError](err)
	if !several {
		return gone, err
	}
	users, err := s.Users(ctx)
	if err != nil {
		return gone, err
	}
	var names []string
	for _, x := range no.Choices {
		for _, u := range users {
			if u.ID == x.Owner {
				names = append(names, u.Name)
			}
		}
	}
	return gone, hinted{no, "add --user with one of: " + strings.Join(names, ", ")}
}
