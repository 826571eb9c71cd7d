package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/cmd/ccship/show"
	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/internal/amount"
)

func (a *app) redactApply() *cobra.Command {
	var yes, forgetOld bool
	cmd := &cobra.Command{
		Use:   "apply",
		Short: "Count the lines that were sent with secrets, or masked by other rules; with --yes, send them again",
		Long: "Compare what servers have with what they would get by the rules in force. With --yes, send each " +
			"transcript that differs again from its first such line, as a new generation, and read documents and " +
			"attachments again.\n\nWith --forget-old, count what servers have stored in the clear, in every " +
			"generation, checkpoint, attachment and document. With --yes too, have a ccship-server mask it in place " +
			"first, for your transcripts of this machine. Backups still contain the secrets.",
		Args: cobra.NoArgs,
		RunE: show.Interruptible(func(ctx context.Context, _ *cobra.Command, _ []string) error {
			client, err := a.DaemonClient(ctx)
			if err != nil {
				return err
			}
			var old *control.OldBytes
			if forgetOld {
				if old, err = a.forgetOld(ctx, client, yes); err != nil {
					return err
				}
			}
			return a.applyRules(ctx, client, yes, old)
		}),
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "send the lines again; with --forget-old, mask what servers have")
	cmd.Flags().BoolVar(&forgetOld, "forget-old", false, "what servers have stored in the clear too, in place")
	a.AddJSON(cmd)
	return cmd
}

// applyRules counts, or sends again, what differs. old is what was done with what servers have; nil: nothing.
func (a *app) applyRules(ctx context.Context, client *control.Client, yes bool, old *control.OldBytes) error {
	sum, err := a.remask(ctx, client, false, true)
	if err != nil {
		return err
	}
	if !a.JSON {
		a.Say("%s", counted(sum))
	}
	if applies := yes && sum.Transcripts > 0; applies {
		if sum, err = a.remask(ctx, client, false, false); err != nil {
			return err
		}
	}
	sum.Old = old
	switch {
	case a.JSON:
		return a.PrintJSON(sum)
	case sum.Transcripts == 0:
		return nil
	case !yes && old != nil:
		return nil // masked in place they do not differ any more
	case !yes:
		a.Say("add --yes to send %s again", amount.Counted(sum.Resent, "line", "lines"))
		return nil
	}
	a.Say("%s on the way", amount.Counted(sum.Resent, "line is", "lines are"))
	if old == nil {
		a.Say("the earlier generations stay on the server: `ccship redact apply --forget-old` masks them there")
	}
	return nil
}

// forgetOld counts what servers have stored in the clear, and with yes has it masked there.
func (a *app) forgetOld(ctx context.Context, client *control.Client, yes bool) (*control.OldBytes, error) {
	found, err := a.remask(ctx, client, true, true)
	if err != nil {
		return nil, err
	}
	sum := found.Old
	if !a.JSON {
		for _, server := range sum.Plain {
			a.Say("%s speaks only the base protocol and cannot mask: remove there what it has, "+
				"or change to a ccship-server", term.OneLine(server))
		}
		a.Say("%s", storedInClear(sum))
	}
	switch {
	case sum.Transcripts == 0:
		return sum, nil
	case !yes:
		if !a.JSON {
			a.Say("add --yes to have that masked in place")
		}
		return sum, nil
	}
	if found, err = a.remask(ctx, client, true, false); err != nil {
		return nil, err
	}
	if !a.JSON {
		a.Say("masked there; revoke the secrets where they were issued, backups of the server still contain them")
	}
	return found.Old, nil
}

// storedInClear says what servers have stored in the clear.
func storedInClear(sum *control.OldBytes) string {
	if sum.Transcripts == 0 {
		return "servers have stored nothing in the clear that the rules in force mask"
	}
	return "servers have stored in the clear: " + amount.Counted(sum.Lines, "line", "lines") + " of every generation, " +
		amount.Counted(sum.Checkpoints, "checkpoint", "checkpoints") + " and " +
		amount.Counted(sum.Files, "file", "files") + " with secrets, of " +
		amount.Counted(int64(sum.Transcripts), "transcript", "transcripts")
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

// remask asks the daemon for all transcripts, some at a time, and returns the sum of the answers; of what servers have,
// in Old.
func (a *app) remask(ctx context.Context, client *control.Client, old, dry bool) (control.RemaskResult, error) {
	doing := map[[2]bool]string{{false, true}: "comparing", {false, false}: "sending again",
		{true, true}: "reading what servers have", {true, false}: "masking on the server"}[[2]bool{old, dry}]
	bar := term.NewBar(a.Stderr, doing)
	defer bar.Clear()
	sum := control.RemaskResult{SchemaVersion: control.SchemaVersion, Old: &control.OldBytes{}}
	for req := (control.RemaskRequest{DryRun: dry, Old: old}); ; {
		r, err := client.Remask(ctx, req)
		switch {
		case err != nil:
			return sum, err
		case old && r.Old == nil:
			return sum, control.Failed("the daemon is older than this command", "`ccship service restart` starts the new one")
		case old:
			r.Total, r.Next = r.Old.Total, r.Old.Next
			sum.Old.Total, sum.Old.Plain = r.Old.Total, r.Old.Plain
			sum.Old.Transcripts += r.Old.Transcripts
			sum.Old.Lines += r.Old.Lines
			sum.Old.Checkpoints += r.Old.Checkpoints
			sum.Old.Files += r.Old.Files
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
