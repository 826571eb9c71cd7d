package show

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ccship/ccship/cmd/ccship/showtest"
	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/e2e/kit"
)

func TestStatusView(t *testing.T) {
	for name, status := range showtest.Statuses() {
		t.Run(name, func(t *testing.T) {
			showtest.Golden(t, "status_"+name+".txt", View{Now: showtest.Moment()}.Status(status))
		})
	}
}

// Colour changes nothing but colour.
func TestStatusColour(t *testing.T) {
	for name, status := range showtest.Statuses() {
		plain := View{Now: showtest.Moment()}.Status(status)
		coloured := View{Now: showtest.Moment(), Colours: true}.Status(status)
		kit.Check(t, strings.Contains(coloured, "\x1b["), "%s: no colour", name)
		for _, code := range []string{"32", "36", "33", "31", "2", "1", "0"} {
			coloured = strings.ReplaceAll(coloured, "\x1b["+code+"m", "")
		}
		kit.Equal(t, name, cmp.Diff(plain, coloured), "")
	}
}

// Every line of the view fits a terminal of 120 columns, long roots aside.
func TestStatusWidth(t *testing.T) {
	for name, status := range showtest.Statuses() {
		for line := range strings.Lines(View{Now: showtest.Moment()}.Status(status)) {
			kit.Check(t, term.Cut(strings.TrimSuffix(line, "\n"), 120) == strings.TrimSuffix(line, "\n"),
				"%s: too long: %s", name, line)
		}
	}
}

func TestProgressBar(t *testing.T) {
	view := View{Now: showtest.Moment(), Bar: func(done, total int64) string { return term.Progress(done, total, 20) }}
	showtest.Golden(t, "status_bar.txt", view.Status(showtest.Statuses()["importing"]))
}

func TestSummary(t *testing.T) {
	want := "importing, 1 transcript, 30 MB of 61 MB read, 1 waiting, 48 211 sent"
	kit.Equal(t, "StatusSummary", StatusSummary(showtest.Statuses()["importing"]), want)
}

// A server in trouble shows what to do, whether the daemon said so or not.
func TestServerHints(t *testing.T) {
	var b strings.Builder
	add := func(s control.Server) {
		s.URL = "http://h"
		b.WriteString(strings.Join(View{Now: showtest.Moment()}.Server(s), "\n") + "\n\n")
	}
	for _, kind := range []string{"unreachable", "server_error", "busy", "over_quota", "refused_key", "refused", "not_found", "redirect", "protocol", "something new", ""} {
		state := "retrying"
		if strings.HasPrefix(kind, "re") || kind == "not_found" {
			state = "refused"
		}
		add(control.Server{State: state, Kind: kind, Detail: "kind " + kind})
	}
	add(control.Server{State: "retrying", Kind: "unreachable", Hint: "its own hint"})
	add(control.Server{State: "ok", Kind: "unreachable", Hint: "not shown"})
	add(control.Server{State: "unknown"})
	showtest.Golden(t, "server_trouble.txt", b.String())
}

// A person and a program learn the same word for a state: "paused" is what the user did, "refused" what a server does.
func TestStatusWords(t *testing.T) {
	for state, want := range map[string]struct{ says, not string }{
		"paused":  {"paused", "refuse"},
		"refused": {"refuse", "paused"},
	} {
		s := showtest.Healthy()
		s.State = state
		if state == "paused" {
			s.Pause = &control.Pause{Since: showtest.Moment()}
		} else {
			s.Servers[0].State = state
		}
		for view, text := range map[string]string{
			"status":        View{Now: showtest.Moment()}.Status(s),
			"status --line": View{Now: showtest.Moment()}.StatusLine(s),
		} {
			kit.Check(t, strings.Contains(text, want.says) && !strings.Contains(text, want.not),
				"state %q as %s:\n%s", state, view, text)
		}
	}
}

// TestUneasy: beside files that can't be read, or without its state folder, status does not say that all is well.
func TestUneasy(t *testing.T) {
	for kind, words := range map[string]string{"unreadable": "some files can't be", "state_gone": "state folder is gone"} {
		s := showtest.Healthy()
		s.Advice = []control.Advice{{Kind: kind}}
		view := View{Now: showtest.Moment(), Symbols: true}
		for _, said := range []string{view.Status(s), view.StatusLine(s)} {
			first, _, _ := strings.Cut(said, "\n")
			kit.Check(t, strings.HasPrefix(first, "!") && strings.Contains(first, words), "%s: %v", kind, first)
		}
	}
}

// TestUnlisted: while a folder can't be listed, status does not say that everything is on the server.
func TestUnlisted(t *testing.T) {
	s := showtest.Healthy()
	s.Watch.Unread = []string{"/home/kim/.claude/projects/-shop: permission denied"}
	view := View{Now: showtest.Moment()}
	for _, said := range []string{view.Status(s), view.StatusLine(s)} {
		first, _, _ := strings.Cut(said, "\n")
		kit.Check(t, !strings.Contains(first, "everything") && !strings.Contains(first, "up to date") && strings.Contains(first, "can't be listed"),
			"%v", first)
	}
}
