package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/cmd/ccship/show"
	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/daemon/config"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/internal/amount"
	"github.com/ccship/ccship/transcript/redact"
)

func (a *app) redactCommand() *cobra.Command {
	return show.Group("redact", "Try the masking of secrets on a file, apply new rules, bring its key to another machine",
		"Mask secrets in lines before they are queued; see the option redact. With the same key, two "+
			"machines make the same token of the same secret.",
		a.redactKey(), a.redactTest(), a.redactApply())
}

func (a *app) redactKey() *cobra.Command {
	var replace bool
	cmd := &cobra.Command{
		Use:   "key [FILE]",
		Short: "Print the key that makes tokens, or use the one in a file; - reads standard input",
		Long: "Print the key that makes tokens; keep it as safe as the secrets themselves. With FILE, use the key that " +
			"this command printed on another machine; - reads standard input.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.Config()
			if err != nil {
				return err
			}
			if len(args) > 0 {
				return a.importKey(cmd, &c, args[0], replace)
			}
			key, err := c.RedactKey()
			if err != nil {
				return err
			}
			return a.Print(key.Text() + "\n")
		},
	}
	cmd.Flags().BoolVar(&replace, "replace", false, "replace another key, which then proves no token any more")
	return cmd
}

func (a *app) importKey(cmd *cobra.Command, c *config.Config, file string, replace bool) error {
	text, err := readInput(cmd, file)
	if err != nil {
		return err
	}
	key, err := redact.ParseKey(string(text))
	if err != nil {
		return control.Usage(err.Error(), "`ccship redact key` on the other machine prints one")
	}
	if err := c.WriteRedactKey(key, replace); err != nil {
		return err
	}
	a.Say("the key is in %s; a running daemon uses it after `ccship service restart`", c.RedactKeyFile())
	return nil
}

// maskedSecret is one secret that `redact test` finds.
type maskedSecret struct {
	Line   int    `json:"line"`   // counted from 1
	Column int    `json:"column"` // in bytes, counted from 1
	Length int    `json:"length"` // in bytes
	Rule   string `json:"rule"`
	Token  string `json:"token"`
}

// redactReport is what `redact test --json` prints.
type redactReport struct {
	SchemaVersion int            `json:"schema_version"`
	Secrets       []maskedSecret `json:"secrets"`
}

func (a *app) redactTest() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "test FILE",
		Short: "Show what would be masked in a transcript or text, and by which rule; - reads standard input",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.Config()
			if err != nil {
				return err
			}
			text, err := readInput(cmd, args[0])
			if err != nil {
				return err
			}
			report, err := findSecrets(&c, text)
			return show.Answer(&a.App, report, err, redactReport.text)
		},
	}
	a.AddJSON(cmd)
	return cmd
}

func readInput(cmd *cobra.Command, path string) ([]byte, error) {
	if path == "-" {
		return io.ReadAll(cmd.InOrStdin())
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, control.Usage(err.Error(), "name a file that can be read")
	}
	return text, nil
}

// findSecrets masks a text: line by line if it is a transcript, otherwise as a whole, because a key spans lines.
func findSecrets(c *config.Config, text []byte) (redactReport, error) {
	report := redactReport{SchemaVersion: control.SchemaVersion, Secrets: []maskedSecret{}}
	key, err := c.RedactKey()
	if err != nil {
		return report, err
	}
	all, err := c.MaskersOf(key)
	if err != nil {
		return report, err
	}
	dir, err := os.Getwd()
	if err != nil {
		return report, fmt.Errorf("find the project: %w", err)
	}
	m := all.Of(dir)
	parts, mask := [][]byte{text}, func(text []byte) ([]byte, []redact.Range) { return m.File("", text) }
	if first := bytes.TrimSpace(text); len(first) > 0 && first[0] == '{' {
		parts, mask = bytes.Split(text, []byte("\n")), m.Line
	}
	line := 1
	for _, part := range parts {
		masked, ranges := mask(part)
		for _, r := range ranges {
			before := part[:r.Start]
			report.Secrets = append(report.Secrets, maskedSecret{
				Line:   line + bytes.Count(before, []byte("\n")),
				Column: r.Start - bytes.LastIndexByte(before, '\n'),
				Length: r.End - r.Start, Rule: r.Rule,
				Token: strings.ReplaceAll(string(masked[r.Start:r.End]), "\x00", ""), // in UTF-16
			})
		}
		line += bytes.Count(part, []byte("\n")) + 1
	}
	return report, nil
}

func (r redactReport) text() string {
	var b strings.Builder
	for _, s := range r.Secrets {
		fmt.Fprintf(&b, "%d:%d  %s  %d bytes become %s\n", s.Line, s.Column, s.Rule, s.Length, s.Token)
	}
	if len(r.Secrets) == 0 {
		b.WriteString("nothing would be masked\n")
	}
	return b.String()
}

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
