package main

import (
	"context"
	"errors"

	"github.com/ccship/ccship/cmd/ccship/cli"
	"github.com/ccship/ccship/cmd/ccship/show"
	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/daemon/control"
)

// statusLine prints one short line, for a status line that shows whatever it gets: it never writes to stderr, and it
// waits for no server.
func (a *app) statusLine(ctx context.Context) error {
	c, mistake := a.SalvagedConfig()
	line, code := "ccship: ?", cli.ExitUsage
	if c.Path != "" {
		line, code = a.lineOf(ctx, cli.Sockets(c))
	}
	after := ""
	if mistake != nil {
		after, code = ", mistake in the configuration", cli.ExitUsage
	}
	if err := a.Print(term.Cut(line, show.LineWidth-len(after)) + after + "\n"); err != nil {
		return err
	}
	if code != cli.ExitOK {
		return cli.SilentError{Code: code}
	}
	return nil
}

// lineOf is the line about the daemon on one of some sockets, and the exit code.
func (a *app) lineOf(ctx context.Context, sockets []string) (line string, code int) {
	_, status, err := control.ReachFor(ctx, sockets, control.StatusQuery{Probe: control.ProbeBehind})
	e := control.Error{}
	if err != nil {
		e = *cli.Describe(err)
	}
	switch {
	case err == nil:
		return a.View().StatusLine(status), cli.ExitOK
	case errors.Is(err, control.ErrNotRunning):
		return "ccship: off", cli.ExitNotRunning
	case e.Code == control.CodeNoAnswer:
		return "ccship: no answer", cli.ExitCode(&e)
	}
	return "ccship: ?", cli.ExitCode(&e)
}
