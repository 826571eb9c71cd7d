package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/cmd/ccship/show"
	"github.com/ccship/ccship/daemon/config"
	"github.com/ccship/ccship/daemon/control"
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
