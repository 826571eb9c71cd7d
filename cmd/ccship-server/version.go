package main

import (
	"github.com/spf13/cobra"

	"github.com/ccship/ccship/cmd/ccship/term"
)

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  wrapArgs(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := term.Printf(c.OutOrStdout(), "ccship-server %s\n", version)
			return err
		},
	}
}
