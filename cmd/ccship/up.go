package main

import (
	"github.com/spf13/cobra"

	"github.com/ccship/ccship/cmd/ccship/cli"
	"github.com/ccship/ccship/cmd/ccship/try"
)

func (a *app) upCommand() *cobra.Command {
	var listen string
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Try it now: a server on this machine, the import of everything, and the viewer's address",
		Long: "Start ccship-server on loopback and the daemon in the foreground, import every conversation, and print new lines as they are written, until Ctrl-C. " +
			"A second run goes on where the first stopped. Key, address, database and state are kept in the folder that `ccship paths` calls up.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.Config()
			if err != nil {
				return err
			}
			ctx, stop := cli.UntilSignal(cmd.Context())
			defer stop()
			return try.Up(ctx, &a.App, c, listen)
		},
	}
	cmd.Flags().StringVar(&listen, "listen", "", "loopback `address` of the server; it is remembered")
	return cmd
}
