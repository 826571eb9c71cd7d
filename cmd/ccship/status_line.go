package main

import (
	"context"
	"errors"

	"github.com/ccship/ccship/cmd/ccship/cli"
	"github.com/ccship/ccship/cmd/ccship/show"
	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/daemon/control"
)

// statusLine prints one short line, for a status line that shows whatever it gets: it never writes to stderr.
func (a *app) statusLine(ctx context.Context) error {
	c, err := a.Config()
	if err == nil {
		var status control.Status
		behind := control.StatusQuery{Probe: control.ProbeBehind}
		if _, status, err = control.ReachFor(ctx, cli.Sockets(c), behind); err == nil {
			return a.Print(term.Cut(a.View().StatusLine(status), show.LineWidth) + "\n")
		}
	}
	e := cli.Describe(err)
	word := "?"
	switch {
	case errors.Is(err, control.ErrNotRunning):
		word = "off"
	case e.Code == control.CodeNoAnswer:
		word = "no answer"
	}
	if err := a.Print("ccship: " + word + "\n"); err != nil {
		return err
	}
	return cli.Silent{Code: cli.ExitCode(e)}
}
