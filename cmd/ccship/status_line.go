package main

import (
	"context"
	"errors"

	"github.com/ccship/ccship/cmd/ccship/show"
	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/daemon/control"
)

// statusLine prints one short line, for a status line that shows whatever it gets: it never writes to stderr.
func (a *app) statusLine(ctx context.Context) error {
	c, err := a.config()
	if err == nil {
		var status control.Status
		if _, status, err = control.Reach(ctx, sockets(c)); err == nil {
			return a.print(term.Cut(a.view().StatusLine(status), show.LineWidth) + "\n")
		}
	}
	e := describe(err)
	word := "?"
	switch {
	case errors.Is(err, control.ErrNotRunning):
		word = "off"
	case e.Code == control.CodeNoAnswer:
		word = "no answer"
	}
	if err := a.print("ccship: " + word + "\n"); err != nil {
		return err
	}
	return silent{exitCode(e)}
}
