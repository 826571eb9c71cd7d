package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/server/store"
)

func newMigrate() *cobra.Command {
	var url string
	c := &cobra.Command{
		Use:   "migrate",
		Short: "Update the store's schema, as serve does when it starts",
		Args:  wrapArgs(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			return withStore(c, url, func(s store.Store) error {
				v, err := s.Version(c.Context())
				if err != nil {
					return err
				}
				_, err = fmt.Fprintf(c.ErrOrStderr(), "the schema is at version %d\n", v)
				return err
			})
		},
	}
	storeFlag(c, &url)
	return c
}
