package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store"
)

func newKeyRevoke() *cobra.Command {
	var url, name string
	c := &cobra.Command{
		Use:   "revoke --name NAME",
		Short: "Make a key invalid, at once and for good",
		Args:  wrapArgs(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if name == "" {
				return usage(c, errors.New("--name is missing"))
			}
			return withStore(c, url, func(s *store.SQLite) error {
				err := s.RevokeKey(c.Context(), name, time.Now())
				if errors.Is(err, server.ErrNotFound) {
					return hinted{err, "ccship-server key list shows the names"}
				}
				if err != nil {
					return err
				}
				_, err = fmt.Fprintf(c.ErrOrStderr(), "key %q is revoked\n", name)
				return err
			})
		},
	}
	c.Flags().StringVar(&name, "name", "", "the key's name")
	storeFlag(c, &url)
	return c
}
