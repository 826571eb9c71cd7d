package main

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/cmd/ccship/show"
	"github.com/ccship/ccship/daemon/control"
)

func (a *app) statusCommand() *cobra.Command {
	var watch, line bool
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show what the daemon is doing",
		Long: "Show what the daemon is doing. A server that has not answered for 10 seconds is tried first, for " +
			"at most one second; --line and --watch do not wait for it. Exit 0: the daemon answers, whatever it " +
			"says of the servers; 1: it does not answer; 2: the configuration has a mistake, which is shown with " +
			"the status; 3: it is not running.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case line && (watch || a.JSON):
				return control.Usage("--line cannot be combined with --watch or --json", "choose one of them")
			case line:
				return a.statusLine(cmd.Context())
			}
			c, mistake := a.SalvagedConfig()
			if c.Path == "" {
				return mistake
			}
			paths := show.Sockets(c)
			if watch {
				return a.watchStatus(cmd.Context(), paths, mistake)
			}
			_, status, err := control.ReachFor(cmd.Context(), paths, control.StatusQuery{Probe: control.ProbeWait})
			if err != nil {
				return a.noStatus(cmd.Context(), err, mistake)
			}
			return a.showStatus(withMistake(status, mistake), mistake)
		},
	}
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "show it again every second, until Ctrl-C")
	cmd.Flags().BoolVar(&line, "line", false, "print one short line, and nothing on stderr, for a status line")
	a.AddJSON(cmd)
	return cmd
}

// showStatus prints a status. A mistake in the configuration, which the status names, decides the exit code.
func (a *app) showStatus(s control.Status, mistake error) error {
	err := show.Answer(&a.App, s, nil, a.View().Status)
	if err == nil && mistake != nil {
		return show.SilentError{Code: show.ExitUsage}
	}
	return err
}

// noStatus ends a command that found no daemon; --json has a document for that. A mistake in the configuration is
// reported too, and decides the exit code: it may be why no daemon runs.
func (a *app) noStatus(ctx context.Context, err, mistake error) error {
	switch {
	case !a.JSON && mistake != nil:
		show.PrintError(a.Stderr, show.Describe(a.withStart(ctx, err)))
		return mistake
	case !a.JSON || !errors.Is(err, control.ErrNotRunning):
		return err
	}
	code := show.ExitNotRunning
	if mistake != nil {
		code = show.ExitUsage
	}
	if err := a.PrintJSON(withMistake(control.Status{SchemaVersion: control.SchemaVersion}, mistake)); err != nil {
		return err
	}
	return show.SilentError{Code: code}
}

// withMistake returns a status that names a mistake in the configuration, which may be nil, unless the daemon has said
// so.
func withMistake(s control.Status, mistake error) control.Status {
	if mistake == nil {
		return s
	}
	e := show.Describe(mistake)
	said := func(n control.Advice) bool { return strings.Contains(n.Text, e.Message) }
	if !slices.ContainsFunc(s.Advice, said) {
		s.Advice = append([]control.Advice{{Kind: control.CodeConfig, Text: e.Message, Hint: e.Hint}}, s.Advice...)
	}
	return s
}
