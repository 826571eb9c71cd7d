package main

import (
	"context"
	"errors"
	"time"

	"github.com/ccship/ccship/cmd/ccship/show"
	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/daemon/control"
)

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
