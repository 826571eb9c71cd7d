package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/cmd/ccship/setup"
	"github.com/ccship/ccship/cmd/ccship/show"
	"github.com/ccship/ccship/daemon/library"
)

func (a *app) openCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "open",
		Short: "Open the viewer in a browser",
		Long: "Print a one-time link into the viewer, and open it in a browser: that of `ccship up`, of the server on this " +
			"machine, or of one elsewhere. It needs no daemon. Where the output is not a terminal, only the link is printed.",
		Args: cobra.NoArgs,
		RunE: show.Interruptible(func(ctx context.Context, _ *cobra.Command, _ []string) error {
			c, err := a.running(ctx)
			if err != nil {
				return err
			}
			if c.ServerURL == "" {
				return library.NoServer()
			}
			return setup.OpenViewer(ctx, &a.App, c)
		}),
	}
}
