package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store"
)

func newForget() *cobra.Command {
	var url string
	var yes, asJSON bool
	c := &cobra.Command{
		Use:   "forget SESSION --yes",
		Short: "Remove a session and its agents for good; it is never stored again",
		Args:  wrapArgs(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			if !yes {
				return usageError{hinted{fmt.Errorf("this removes %s and cannot be undone", args[0]),
					"add --yes to confirm; backups still contain it"}}
			}
			return withStore(c, url, func(s store.Store) error {
				gone, err := s.Forget(c.Context(), server.Scope{All: true}, args[0], time.Now())
				if errors.Is(err, server.ErrNotFound) {
					return hinted{fmt.Errorf("there is no session %s", args[0]), "the viewer and GET /api/sessions list them"}
				}
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
	c.Flags().BoolVar(&yes, "yes", false, "confirm")
	jsonFlag(c, &asJSON)
	storeFlag(c, &url)
	return c
}
