package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/cmd/ccship/cli"
	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/daemon/amount"
	"github.com/ccship/ccship/daemon/control"
)

func (a *app) redactApply() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "apply",
		Short: "Count the lines that were sent with secrets, or masked by other rules; with --yes, send them again",
		Long: "Compare what servers have with what they would get by the rules in force. With --yes, send each transcript " +
			"that differs again from its first such line, as a new generation, and read documents and attachments again.\n\n" +
			"Servers keep the earlier generations and versions. `ccship forget SESSION` removes a session with all of them " +
			"from the server, and it is never sent again; `ccship-server forget SESSION` does the same on the server.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := cli.UntilSignal(cmd.Context())
			defer stop()
			client, _, err := a.DaemonClient(ctx)
			if err != nil {
				return err
			}
			sum, err := a.remask(ctx, client, true)
			if err != nil {
				return err
			}
			if !a.JSON {
				a.Say("%s", counted(sum))
			}
			if applies := yes && sum.Transcripts > 0; applies {
				if sum, err = a.remask(ctx, client, false); err != nil {
					return err
				}
			}
			switch {
			case a.JSON:
				return a.PrintJSON(sum)
			case sum.Transcripts == 0:
				return nil
			case !yes:
				a.Say("add --yes to send %s again", amount.Counted(sum.Resent, "line", "lines"))
				return nil
			}
			a.Say("%s on the way; the earlier generations stay on the server: "+
				"`ccship redact apply --help` says how to remove them", amount.Counted(sum.Resent, "line is", "lines are"))
			return nil
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "send the lines again")
	a.AddJSON(cmd)
	return cmd
}

// counted says what would be sent differently now.
func counted(r control.RemaskResult) string {
	if r.Transcripts == 0 {
		return "servers have every line as the rules in force mask it"
	}
	transcripts := amount.Counted(int64(r.Transcripts), "transcript", "transcripts")
	return amount.Counted(r.Lines, "line", "lines") + " in " + transcripts + " would be masked differently now, " +
		amount.Counted(r.Clear, "line", "lines") + " of them sent with secrets in clear"
}

// remask asks the daemon for all transcripts, some at a time, and returns the sum of the answers.
func (a *app) remask(ctx context.Context, client *control.Client, dry bool) (control.RemaskResult, error) {
	doing := "sending again"
	if dry {
		doing = "comparing"
	}
	bar := term.NewBar(a.Stderr, doing)
	defer bar.Clear()
	sum := control.RemaskResult{SchemaVersion: control.SchemaVersion}
	for req := (control.RemaskRequest{DryRun: dry}); ; {
		r, err := client.Remask(ctx, req)
		if err != nil {
			return sum, err
		}
		sum.Total = r.Total
		sum.Transcripts += r.Transcripts
		sum.Lines += r.Lines
		sum.Clear += r.Clear
		sum.Resent += r.Resent
		if req.Offset = r.Next; r.Next == 0 {
			return sum, nil
		}
		bar.Set(int64(r.Next), int64(r.Total))
	}
}
