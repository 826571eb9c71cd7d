package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/server/store"
)

func newMigrate() *cobra.Command {
	var url string
	var wait bool
	c := &cobra.Command{
		Use:   "migrate",
		Short: "Update the store's schema, as serve does when it starts",
		Long: "Update the store's schema, as serve does when it starts. Run this as the tables' owner where the " +
			"server's role in PostgreSQL may not change the schema. It lets others pass that use a table. While " +
			"older servers run that could not go on, it changes nothing and says so.",
		Args: wrapArgs(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) (err error) {
			say := func(text string) { term.Printf(c.ErrOrStderr(), "%s\n", text) }
			s, err := openStoreWith(c.Context(), url, store.Opening{Say: say, Wait: wait})
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, s.Close()) }()
			v, err := s.Version(c.Context())
			if err != nil {
				return err
			}
			_, err = term.Printf(c.ErrOrStderr(), "the schema is at version %d\n", v)
			return err
		},
	}
	c.Flags().BoolVar(&wait, "wait", false, "wait until servers of an older version have stopped")
	storeFlag(c, &url)
	return c
}
