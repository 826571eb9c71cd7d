package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store"
)

func newKeyCreate() *cobra.Command {
	var url, name string
	c := &cobra.Command{
		Use:   "create --name NAME",
		Short: "Make a key and print it, this once",
		Args:  wrapArgs(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if name == "" {
				return usage(c, errors.New("--name is missing"))
			}
			return withStore(c, url, func(s *store.SQLite) error {
				key, hash := server.NewKey()
				err := s.AddKey(c.Context(), name, hash, time.Now())
				if errors.Is(err, server.ErrExists) {
					return hinted{err, "choose another --name; names of revoked keys stay taken"}
				}
				if err != nil {
					return err
				}
				_, err = fmt.Fprintln(c.OutOrStdout(), key)
				return err
			})
		},
	}
	c.Flags().StringVar(&name, "name", "", "what the key is for, for example the machine's name")
	storeFlag(c, &url)
	return c
}
