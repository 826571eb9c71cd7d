package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ccship/ccship/daemon/control"
)

// watchStatus shows the status again each second until Ctrl-C: on a terminal in place, elsewhere as a line whenever
// something changed, with --json as a document a second.
func (a *app) watchStatus(ctx context.Context, paths []string) error {
	ctx, stop := untilSignal(ctx)
	defer stop()
	show := a.watchLines()
	columns, screen := terminal(a.stdout)
	switch {
	case a.json:
		show = func(s control.Status, _ error) error { return a.printJSON(s) }
	case screen:
		show = a.watchScreen(columns)
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for first := true; ; first = false {
		_, status, err := reach(ctx, paths)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil && (first || !passing(err)) {
			return a.noStatus(err)
		}
		if err != nil {
			status = control.Status{SchemaVersion: control.SchemaVersion}
		}
		if err := show(status, err); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// passing says that a daemon seen before may come back: it is being restarted, or is too busy to answer.
func passing(err error) bool {
	var known *control.Error
	return errors.As(err, &known) && known.Retryable
}

// watchLines prints a line for every change of what matters.
func (a *app) watchLines() func(control.Status, error) error {
	last := ""
	return func(s control.Status, err error) error {
		line := "not running"
		if err != nil {
			line = oneLine(err.Error())
		} else {
			line = summary(s)
		}
		if line == last {
			return nil
		}
		last = line
		return a.print(time.Now().Format(time.RFC3339) + " " + line + "\n")
	}
}

// summary is a status in one line.
func summary(s control.Status) string {
	parts := []string{s.State}
	if s.Files != nil {
		parts = append(parts, counted(int64(s.Files.Tracked), "transcript", "transcripts"))
		if s.State == "importing" {
			parts = append(parts, humanSize(s.Files.ReadBytes)+" of "+humanSize(s.Files.Bytes)+" read")
		}
	}
	if s.Outbox != nil {
		parts = append(parts, humanCount(s.Outbox.Entries)+" waiting")
	}
	if s.Sent != nil {
		parts = append(parts, humanCount(s.Sent.Entries)+" sent")
	}
	for _, n := range s.Notices {
		parts = append(parts, oneLine(n.Text))
	}
	return strings.Join(parts, ", ")
}

// watchScreen draws the view in place: up over the lines of the last one, each line cut so that none wraps.
func (a *app) watchScreen(columns int) func(control.Status, error) error {
	drawn := 0
	colour := colours(a.stdout)
	return func(s control.Status, err error) error {
		if now, ok := terminal(a.stdout); ok {
			columns = now // the window may have been resized
		}
		text := "not running; waiting for it to come back\n"
		if err == nil {
			view := statusView{now: time.Now(), colour: colour, bar: func(done, total int64) string {
				return bytesBar(done, total, min(40, max(10, columns-50)))
			}}
			text = view.render(s)
		}
		lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
		var b strings.Builder
		if drawn > 0 {
			fmt.Fprintf(&b, "\x1b[%dA", drawn)
		}
		b.WriteString("\r\x1b[J")
		for _, line := range lines {
			if !colour { // escapes have no width, so a coloured line is left to the terminal's own cutting
				line = cut(line, columns)
			}
			b.WriteString("\x1b[?7l" + line + "\x1b[?7h\n")
		}
		drawn = len(lines)
		return a.print(b.String())
	}
}
