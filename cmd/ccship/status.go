package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/cmd/ccship/show"
	"github.com/ccship/ccship/cmd/ccship/term"
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

// statusLine prints one short line, for a status line that shows whatever it gets: it never writes to stderr, and it
// waits for no server.
func (a *app) statusLine(ctx context.Context) error {
	c, mistake := a.SalvagedConfig()
	line, code := "ccship: ?", show.ExitUsage
	if c.Path != "" {
		line, code = a.lineOf(ctx, show.Sockets(c))
	}
	after := ""
	if mistake != nil {
		after, code = ", mistake in the configuration", show.ExitUsage
	}
	if err := a.Print(term.Cut(line, show.LineWidth-len(after)) + after + "\n"); err != nil {
		return err
	}
	if code != show.ExitOK {
		return show.SilentError{Code: code}
	}
	return nil
}

// lineOf returns the line about the daemon on one of some sockets, and the exit code.
func (a *app) lineOf(ctx context.Context, sockets []string) (line string, code int) {
	_, status, err := control.ReachFor(ctx, sockets, control.StatusQuery{Probe: control.ProbeBehind})
	e := control.Error{}
	if err != nil {
		e = *show.Describe(err)
	}
	switch {
	case err == nil:
		return a.View().StatusLine(status), show.ExitOK
	case errors.Is(err, control.ErrNotRunning):
		return "ccship: off", show.ExitNotRunning
	case e.Code == control.CodeNoAnswer:
		return "ccship: no answer", show.ExitCode(&e)
	}
	return "ccship: ?", show.ExitCode(&e)
}

// watchStatus shows the status again each second until Ctrl-C: on a terminal in place, elsewhere as a line whenever
// something changed, with --json as a document a second.
func (a *app) watchStatus(ctx context.Context, paths []string, mistake error) (err error) {
	ctx, stop := show.UntilSignal(ctx)
	defer stop()
	display := a.watchLines()
	switch _, live := term.Columns(a.Stdout); {
	case a.JSON:
		display = func(s control.Status, _ error) error { return a.PrintJSON(s) }
	case live:
		s := term.NewScreen(a.Stdout)
		defer func() { err = errors.Join(err, s.Close()) }()
		display = a.watchScreen(s)
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for first := true; ; first = false {
		_, status, err := control.ReachFor(ctx, paths, control.StatusQuery{Probe: control.ProbeBehind})
		if ctx.Err() != nil {
			return nil
		}
		if err != nil && (first || !show.Temporary(err)) {
			return a.noStatus(ctx, err, mistake)
		}
		if err != nil {
			status = control.Status{SchemaVersion: control.SchemaVersion}
		}
		if err := display(withMistake(status, mistake), err); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// watchLines prints a line for every change of what matters.
func (a *app) watchLines() func(control.Status, error) error {
	last := ""
	return func(s control.Status, err error) error {
		line := show.StatusSummary(s)
		if err != nil {
			line = term.Printable(err.Error())
		}
		if line == last {
			return nil
		}
		last = line
		return a.Print(time.Now().Format(time.RFC3339) + " " + line + "\n")
	}
}

// watchScreen draws the view in place.
func (a *app) watchScreen(s *term.Screen) func(control.Status, error) error {
	colour := term.Colours(a.Stdout)
	return func(status control.Status, err error) error {
		if err != nil {
			return s.Draw(term.Printable(err.Error()) + "; waiting for it to come back\n")
		}
		view := show.View{Now: time.Now(), Colours: colour, Bar: func(done, total int64) string {
			return term.Progress(done, total, min(40, max(10, s.Columns()-50)))
		}}
		return s.Draw(view.Status(status))
	}
}
