package main

import (
	"strings"
	"testing"

	"github.com/ccship/ccship/daemon/control"
)

// A person and a program learn the same word for a state: "paused" is what the user did, "refused" what a server does.
func TestStatusWords(t *testing.T) {
	for state, want := range map[string]struct{ says, not string }{
		"paused":  {"paused", "refuse"},
		"refused": {"refuse", "paused"},
	} {
		s := well()
		s.State = state
		if state == "paused" {
			s.Pause = &control.Pause{Since: moment()}
		} else {
			s.Servers[0].State = state
		}
		for view, text := range map[string]string{
			"status":        statusView{now: moment()}.render(s),
			"status --line": lineText(s, moment(), false),
		} {
			if !strings.Contains(text, want.says) || strings.Contains(text, want.not) {
				t.Errorf("state %q as %s:\n%s", state, view, text)
			}
		}
	}
}
