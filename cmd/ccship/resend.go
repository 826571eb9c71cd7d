package main

import (
	"github.com/spf13/cobra"

	"github.com/ccship/ccship/cmd/ccship/show"
	"github.com/ccship/ccship/daemon/control"
)

func (a *app) resendCommand() *cobra.Command {
	var req control.ResendRequest
	cmd := &cobra.Command{
		Use:   "resend SESSION | --all",
		Short: "Send a session again from the first line that the server lacks",
		Long: "Compare the transcripts of a session and its agents, or all, with the server, and send each again " +
			"from the first line that the server lacks or has differently, in a new generation: nothing on the " +
			"server is overwritten. Excluded and forgotten sessions are not sent. `ccship sync --wait` waits for " +
			"the delivery.",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: complete(&a.App),
		RunE: func(cmd *cobra.Command, args []string) error {
			if req.All == (len(args) > 0) {
				return control.Usage("name a session, or all of them with --all", "`ccship sessions list` lists them")
			}
			if len(args) > 0 {
				req.Session = args[0]
			}
			ctx, stop := show.UntilSignal(cmd.Context())
			defer stop()
			client, _, err := a.DaemonClient(ctx)
			if err != nil {
				return err
			}
			result, err := client.Resend(ctx, req)
			if err != nil {
				return err
			}
			if a.JSON {
				return a.PrintJSON(result)
			}
			return a.Print(show.Resend(result))
		},
	}
	cmd.Flags().BoolVar(&req.All, "all", false, "every session")
	cmd.Flags().BoolVar(&req.FromStart, "from-start", false, "send every line, even those that the server has")
	a.AddJSON(cmd)
	return cmd
}
