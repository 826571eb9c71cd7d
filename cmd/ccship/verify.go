package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/cmd/ccship/cli"
	"github.com/ccship/ccship/cmd/ccship/sessions"
	"github.com/ccship/ccship/cmd/ccship/show"
	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/daemon/control"
)

func (a *app) verifyCommand() *cobra.Command {
	var timeout time.Duration
	var deep bool
	cmd := &cobra.Command{
		Use:   "verify [SESSION]",
		Short: "Prove that the server has every line that is on disk",
		Long: "Sync, read every transcript again from its first byte, and compare it with what the server has. " +
			"With --deep also every generation that a rewind ended, and transcripts that are no longer on disk: their bytes are read " +
			"back from the server and held against the hashes taken when they were read. Lines count from 0. Exit 0 when equal, 1 when not, 4 when the server cannot be reached, 5 when it rejects the API key.",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: sessions.Complete(&a.App),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := positive("timeout", timeout); err != nil {
				return err
			}
			req := control.VerifyRequest{Timeout: timeout.String(), Deep: deep}
			if len(args) > 0 {
				req.Session = args[0]
			}
			ctx, stop := cli.UntilSignal(cmd.Context())
			defer stop()
			client, _, err := a.DaemonClient(ctx)
			if err != nil {
				return err
			}
			bar := term.NewBar(a.Stderr, "comparing")
			report, err := client.Verify(ctx, req, func(p control.VerifyProgress) { bar.Set(p.Bytes, p.BytesTotal) })
			bar.Clear()
			if err != nil {
				return err
			}
			return a.showReport(report, req.Session)
		},
	}
	cmd.Flags().DurationVar(&timeout, "timeout", 20*time.Second, "how long the sync before it may take")
	cmd.Flags().BoolVar(&deep, "deep", false, "the whole history: every generation, and transcripts that are gone")
	a.AddJSON(cmd)
	return cmd
}

func (a *app) showReport(r control.VerifyReport, session string) error {
	if session != "" && r.Files == 0 && r.Vanished == 0 && len(r.Transcripts) == 0 {
		return control.NewError("no_session", "no transcript of a session that begins with "+session,
			"`ccship verify` without a session compares all and, with --json, names them")
	}
	var err error
	if a.JSON {
		err = a.PrintJSON(r)
	} else {
		a.sayResumed(r.Resumed)
		err = a.Print(show.Verify(r))
	}
	if err == nil && !r.Equal {
		return cli.Silent{Code: cli.ExitFailed}
	}
	return err
}
