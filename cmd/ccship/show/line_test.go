package show

import (
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/ccship/ccship/cmd/ccship/showtest"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/e2e/kit"
)

func TestLineText(t *testing.T) {
	paused := showtest.Healthy()
	paused.State, paused.Pause = "paused", &control.Pause{Since: *showtest.Before(time.Hour), Until: showtest.After(59 * time.Minute)}
	paused.Outbox.Entries = 1200
	forever := paused
	forever.Pause = &control.Pause{Since: *showtest.Before(time.Hour)}
	retrying := showtest.Healthy()
	retrying.State, retrying.Outbox = "retrying", &control.Outbox{Entries: 3, Dead: 2}
	full := showtest.Healthy()
	full.State = "full"
	quiet := showtest.Healthy()
	quiet.Servers[0].LastContactAt = showtest.Before(3 * time.Minute)
	fresh := showtest.Healthy()
	fresh.Servers[0] = control.Server{URL: "http://h", State: "unknown"}
	for want, s := range map[string]control.Status{
		"! ccship: up to date, server has not answered since 11:35, asked 8 s ago": showtest.Statuses()["silent"],
		"● ccship: up to date, server answered 3 min ago":                          quiet,
		"● ccship: up to date, server not asked yet":                               fresh,
		"● ccship: up to date":                                                     showtest.Healthy(),
		"◐ ccship: importing 49 %, 1 waiting":                                      showtest.Statuses()["importing"],
		"↑ ccship: sending":                                                        showtest.Statuses()["reading"],
		"✗ ccship: server rejects the API key, 1 200 waiting, 1 refused":           showtest.Statuses()["trouble"],
		"○ ccship: no server set":                                                  showtest.Statuses()["no_server"],
		"‖ ccship: paused for 59 min, 1 200 waiting":                               paused,
		"‖ ccship: paused, 1 200 waiting":                                          forever,
		"! ccship: retrying, 3 waiting, 2 refused":                                 retrying,
		"✗ ccship: outbox full":                                                    full,
		"● ccship: up to date ":                                                    {},
	} {
		want = strings.TrimSpace(want)
		got := (View{Now: showtest.Moment(), Symbols: true}).StatusLine(s)
		kit.Check(t, got == want && utf8.RuneCountInString(got) <= LineWidth, "%q, want %q", got, want)
		_, words, _ := strings.Cut(want, " ")
		kit.Equal(t, "without symbols", (View{Now: showtest.Moment()}).StatusLine(s), words)
	}
}

// TestUsageError: it names the command, counts arguments in words, and leads to the help of that command.
func TestUsageError(t *testing.T) {
	for _, x := range []struct{ command, says, message, hint string }{
		{"ccship show", "accepts 1 arg(s), received 2", "ccship show accepts 1 argument, received 2", "`ccship show --help` lists what it takes"},
		{"ccship link add", "requires at least 2 arg(s), only received 11", "ccship link add requires at least 2 arguments, only received 11",
			"`ccship link add --help` lists what it takes"},
		{"ccship search", "unknown flag: --kind", "unknown flag: --kind", "`ccship search --help` lists what it takes"},
		{"ccship", "unknown command \"serch\"\n\nDid you mean this?\n\tsearch\n", `unknown command "serch"`, "did you mean search?"},
		{"ccship", "unknown flag: --x", "unknown flag: --x", "`ccship help all` lists all commands and flags"},
	} {
		e := Describe(UsageError(x.command, errors.New(x.says)))
		kit.Check(t, e.Message == x.message && e.Hint == x.hint, "%s: %q, %q", x.says, e.Message, e.Hint)
	}
}
