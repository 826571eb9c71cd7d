package main

import (
	"context"

	"github.com/ccship/ccship/cmd/ccship/setup"
	"github.com/ccship/ccship/cmd/ccship/show"
	"github.com/spf13/cobra"
)

func (a *app) upCommand() *cobra.Command {
	var o setup.Options
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Try it now: a server on this machine, the import of everything, and the viewer's address",
		Long: "Start ccship-server on loopback and the daemon in the foreground, import every conversation, and " +
			"run until Ctrl-C. A browser opens with a one-time link; nobody else on this machine sees the pages. " +
			"The next run continues. Everything is in the folder that `ccship config` lists as up.",
		Args: cobra.NoArgs,
		RunE: show.Interruptible(func(ctx context.Context, _ *cobra.Command, _ []string) error {
			c, err := a.Config()
			if err != nil {
				return err
			}
			return setup.Up(ctx, &a.App, c, o)
		}),
	}
	cmd.Flags().StringVar(&o.Listen, "listen", "", "loopback `address` of the server; it is remembered")
	cmd.Flags().BoolVar(&o.NoBrowser, "no-browser", false, "print the one-time link into the viewer without opening it")
	return cmd
}
