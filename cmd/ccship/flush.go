package main

import (
	"github.com/spf13/cobra"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/internal/amount"
)

func (a *app) flushCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "flush",
		Short: "Retry every server now",
		Long: "End every wait and try every server now: back-off, servers that refused, and a server's Retry-After. " +
			"A pause you set yourself stays in force; `ccship sync` also checks every transcript.",
		Args: cobra.NoArgs,
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
		return a.Print("paused: " + amount.Counted(r.Waiting, "entry waits", "entries wait") + " for `ccship resume`\n")
	}
	if r.Waiting == 0 {
		return a.Print("nothing is queued\n")
	}
	return a.Print("retrying now: " + amount.Counted(r.Waiting, "entry", "entries") + "\n")
}
