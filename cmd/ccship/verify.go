package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/cmd/ccship/show"
	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/daemon/control"
)

func (a *app) verifyCommand() *cobra.Command {
	var timeout time.Duration
	var deep, repair, fromStart bool
	cmd := &cobra.Command{
		Use:   "verify [SESSION]",
		Short: "Prove that the server has every line that is on disk",
		Long: "Sync, read every transcript again from its first byte, and compare it with what the server shows. " +
			"Lines count from 1, in JSON from 0.\n\nExit 0: the server shows every line on disk; what the " +
			"configuration excludes is named. 1: lines are missing, different, not delivered, withheld or refused; " +
			"each is counted, with the command that fixes it. 4: the server cannot be reached. 5: it rejects the " +
			"API key.\n\nWith --repair, send transcripts again from the first difference, in a new generation, and " +
			"compare once more; nothing stored is overwritten. With --from-start too, send every line, for a server that " +
			"cannot be compared, and do not compare. With --deep, compare the past too: generations that " +
			"a rewind ended, and transcripts that are no longer on disk.",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: a.completeSession,
		RunE: show.Interruptible(func(ctx context.Context, _ *cobra.Command, args []string) error {
			if err := positive("timeout", timeout); err != nil {
				return err
			}
			req := control.VerifyRequest{Timeout: timeout.String(), Deep: deep, Repair: repair}
			if len(args) > 0 {
				req.Session = args[0]
			}
			if fromStart && (!repair || deep) {
				return control.Usage("--from-start goes with --repair, without --deep", "see `ccship verify --help`")
			}
			client, err := a.DaemonClient(ctx)
			if err != nil {
				return err
			}
			if fromStart {
				again := control.ResendRequest{Session: req.Session, All: req.Session == "", FromStart: true}
				result, err := client.Resend(ctx, again)
				return show.Answer(&a.App, result, err, show.Resend)
			}
			report, err := a.watchVerify(ctx, client, req)
			if err != nil {
				return err
			}
			return a.showReport(report, req.Session)
		}),
	}
	cmd.Flags().DurationVar(&timeout, "timeout", 20*time.Second, "how long the sync at the start may take")
	cmd.Flags().BoolVar(&deep, "deep", false, "the whole history: every generation, and transcripts that are gone")
	cmd.Flags().BoolVar(&repair, "repair", false, "send what is missing or different again, and compare once more")
	cmd.Flags().BoolVar(&fromStart, "from-start", false, "with --repair: send every line, even those that the server has")
	a.AddJSON(cmd)
	return cmd
}

// watchVerify has the daemon compare, and shows how far it is.
func (a *app) watchVerify(ctx context.Context, client *control.Client,
	req control.VerifyRequest) (control.VerifyReport, error) {
	comparing, sending := term.NewBar(a.Stderr, "comparing"), term.NewBar(a.Stderr, "sending")
	report, err := client.Verify(ctx, req, func(p control.VerifyProgress) {
		bar := comparing
		if p.Sending {
			bar = sending
		}
		bar.Set(p.Bytes, p.BytesTotal)
	})
	comparing.Clear()
	sending.Clear()
	return report, err
}

func (a *app) showReport(r control.VerifyReport, session string) error {
	if session != "" && r.Files == 0 && r.Vanished == 0 && len(r.Transcripts) == 0 {
		return control.NewError("no_session", "there is no session "+session+" on this machine",
			"`ccship list` lists them; `ccship verify` without a session compares all on disk")
	}
	if !a.JSON {
		a.sayResumed(r.Resumed)
	}
	err := show.Answer(&a.App, r, nil, show.Verify)
	if err == nil && !r.Equal {
		return show.SilentError{Code: show.ExitFailed}
	}
	return err
}
