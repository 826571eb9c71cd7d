package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/cmd/ccship/show"
	"github.com/ccship/ccship/daemon/control"
)

func (a *app) pauseCommand() *cobra.Command {
	var length time.Duration
	cmd := &cobra.Command{
		Use:   "pause",
		Short: "Stop sending for a while; reading continues, so nothing is lost",
		Long: "Stop sending, for a while or until `ccship unpause`. New lines are still read into the outbox, " +
			"up to its cap. A restart does not end the pause; `ccship sync` does.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			req := control.PauseRequest{}
			if cmd.Flags().Changed("for") {
				if err := positive("for", length); err != nil {
					return err
				}
				req.For = length.String()
			}
			return show.Ask(cmd.Context(), &a.App, (*control.Client).Pause, req, func(s control.PauseState) string {
				return "paused " + show.PauseEnd(time.Now(), s.Pause) + ": nothing is sent, reading goes on\n"
			})
		},
	}
	cmd.Flags().DurationVar(&length, "for", 0, "how long, such as 30m or 2h; without it, until `ccship unpause`")
	a.AddJSON(cmd)
	return cmd
}

func (a *app) unpauseCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "unpause",
		Short: "End a pause",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := a.DaemonClient(cmd.Context())
			if err != nil {
				return err
			}
			state, err := client.Resume(cmd.Context())
			return show.Answer(&a.App, state, err, func(s control.PauseState) string {
				if !s.Was {
					return "there was no pause\n"
				}
				return "resumed: what waits is sent now\n"
			})
		},
	}
	a.AddJSON(cmd)
	return cmd
}
