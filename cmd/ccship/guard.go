package main

import (
	"github.com/spf13/cobra"

	"github.com/ccship/ccship/cmd/ccship/setup"
)

func (a *app) guardCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "guard PROGRAM ARGS…",
		Short:  "Run a program until standard input ends",
		Hidden: true,
		Args:   cobra.MinimumNArgs(1),

		DisableFlagParsing: true,
		RunE:               func(cmd *cobra.Command, args []string) error { return setup.Guard(cmd.Context(), args) },
	}
}
