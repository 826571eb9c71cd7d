package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/daemon/control"
)

// lineWidth is the most columns of `status --line`.
const lineWidth = 80

// statusLine prints one short line, for a status line that shows whatever it gets: it never writes to stderr.
func (a *app) statusLine(ctx context.Context) error {
	c, err := a.config()
	if err == nil {
		var status control.Status
		if _, status, err = control.Reach(ctx, sockets(c)); err == nil {
			return a.print(term.Cut(lineText(status, time.Now(), wantsUTF8(os.LookupEnv)), lineWidth) + "\n")
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

// lineText is a status in a few words, behind its symbol where there are symbols.
func lineText(s control.Status, now time.Time, symbols bool) string {
	symbol, words := "●", "up to date"
	waiting := int64(0)
	if s.Outbox != nil {
		waiting = s.Outbox.Entries
	}
	switch s.State {
	case "importing":
		symbol, words = "◐", "importing"
		if f := s.Files; f != nil && f.Bytes > 0 {
			words += fmt.Sprintf(" %d %%", 100*f.ReadBytes/f.Bytes)
		}
	case "reading", "sending":
		symbol, words = "↑", "sending"
	case "retrying":
		symbol, words = "!", "server away"
	case "refused":
		symbol, words = "✗", "server refuses"
		for _, srv := range s.Servers {
			if srv.State == "refused" {
				words = "server " + trouble(srv, "refuses")
				break
			}
		}
	case "paused":
		symbol, words = "‖", "paused"
		if s.Pause != nil && s.Pause.Until != nil {
			words += " " + pauseEnd(now, s.Pause)
		}
	case "full":
		symbol, words = "✗", "outbox full"
	case "no_server":
		symbol, words = "○", "no server set"
	}
	parts := []string{words}
	if waiting > 0 {
		parts = append(parts, term.Count(waiting)+" waiting")
	}
	if s.Outbox != nil && s.Outbox.Dead > 0 {
		parts = append(parts, term.Count(s.Outbox.Dead)+" refused")
	}
	line := "ccship: " + strings.Join(parts, ", ")
	if symbols {
		return symbol + " " + line
	}
	return line
}

// wantsUTF8 says whether the locale of an environment is one of UTF-8.
func wantsUTF8(env func(string) (string, bool)) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v, _ := env(name); v != "" {
			v = strings.ToLower(strings.ReplaceAll(v, "-", ""))
			return strings.Contains(v, "utf8")
		}
	}
	return false
}
