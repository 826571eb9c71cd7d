package main

import (
	"github.com/spf13/cobra"

	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/daemon/control"
)

func (a *app) flushCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "flush",
		Short: "Try every server now, whatever it waits for",
		Long:  "End back-off and the pauses of servers that refused, and try all of them now. A pause of your own goes on; `ccship sync` also looks at every transcript.",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, _, err := a.DaemonClient(cmd.Context())
			if err != nil {
				return err
			}
			result, err := client.Flush(cmd.Context())
			if err != nil {
				return err
			}
			return a.showFlush(result)
		},
	}
	a.AddJSON(cmd)
	return cmd
}

func (a *app) showFlush(r control.FlushResult) error {
	switch {
	case a.JSON:
		return a.PrintJSON(r)
	case r.Paused:
		return a.Print("paused: " + term.Counted(r.Waiting, "entry waits", "entries wait") + " for `ccship resume`\n")
	}
	return a.Print(term.Counted(r.Waiting, "entry is", "entries are") + " tried now\n")
}
