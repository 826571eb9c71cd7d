package main

import (
	"context"
	"errors"

	"github.com/ccship/ccship/cmd/ccship/show"
	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/daemon/control"
)

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
