package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/server/store"
)

func newKey() *cobra.Command {
	c := &cobra.Command{
		Use:   "key",
		Short: "Make, list and revoke API keys",
		Args:  wrapArgs(cobra.NoArgs),
		RunE:  func(c *cobra.Command, _ []string) error { return usage(c, errors.New("say create, list or revoke")) },
	}
	c.AddCommand(newKeyCreate(), newKeyList(), newKeyRevoke())
	return c
}

// withStore opens a store for one piece of work.
func withStore(c *cobra.Command, url string, work func(*store.SQLite) error) (err error) {
	s, err := openStore(c.Context(), url)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return work(s)
}
