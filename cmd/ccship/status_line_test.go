package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/ccship/ccship/daemon/control"
)

func TestLineText(t *testing.T) {
	paused := well()
	paused.State, paused.Pause = "paused", &control.Pause{Since: *before(time.Hour), Until: after(59 * time.Minute)}
	paused.Outbox.Entries = 1200
	forever := paused
	forever.Pause = &control.Pause{Since: *before(time.Hour)}
	retrying := well()
	retrying.State, retrying.Outbox = "retrying", &control.Outbox{Entries: 3, Dead: 2}
	full := well()
	full.State = "full"
	for want, s := range map[string]control.Status{
		"● ccship: up to date":                                       well(),
		"◐ ccship: importing 49 %, 1 waiting":                        statuses()["importing"],
		"↑ ccship: sending":                                          statuses()["reading"],
		"✗ ccship: server refuses the key, 1 200 waiting, 1 refused": statuses()["trouble"],
		"○ ccship: no server set":                                    statuses()["no_server"],
		"‖ ccship: paused for 59 min, 1 200 waiting":                 paused,
		"‖ ccship: paused, 1 200 waiting":                            forever,
		"! ccship: server away, 3 waiting, 2 refused":                retrying,
		"✗ ccship: outbox full":                                      full,
		"● ccship: up to date ":                                      {},
	} {
		want = strings.TrimSpace(want)
		if got := lineText(s, moment(), true); got != want || utf8.RuneCountInString(got) > lineWidth {
			t.Errorf("%q, want %q", got, want)
		}
		_, words, _ := strings.Cut(want, " ")
		if got := lineText(s, moment(), false); got != words {
			t.Errorf("without symbols %q, want %q", got, words)
		}
	}
}

func TestWantsUTF8(t *testing.T) {
	for locale, want := range map[string]bool{"LANG=C.UTF-8": true, "LANG=en_GB.utf8": true, "LANG=C": false, "": false, "LC_ALL=C LANG=C.UTF-8": false, "LC_CTYPE=UTF-8 LANG=C": true} {
		env := map[string]string{}
		for _, v := range strings.Fields(locale) {
			name, value, _ := strings.Cut(v, "=")
			env[name] = value
		}
		if got := wantsUTF8(func(name string) (string, bool) { v, ok := env[name]; return v, ok }); got != want {
			t.Errorf("%s: %t", locale, got)
		}
	}
}

// Nothing that goes wrong makes a line of more than one line, or a word on stderr.
func TestStatusLine(t *testing.T) {
	jsonHome(t)
	t.Setenv("LC_ALL", "C.UTF-8")
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	long := well()
	long.State, long.Servers = "refused", []control.Server{{State: "refused", Kind: "refused_key"}}
	long.Outbox = &control.Outbox{Entries: 1 << 62, Dead: 1 << 62}
	for _, test := range []struct {
		socket string
		args   []string
		code   int
		want   string
	}{
		{listen(t, scripted{status: well()}), nil, exitOK, "● ccship: up to date\n"},
		{listen(t, scripted{status: long}), nil, exitOK, ""},
		{socketPath(t), nil, exitNotRunning, "ccship: off\n"},
		{file, nil, exitUsage, "ccship: ?\n"},
		{socketPath(t), []string{"--log-level", "loud"}, exitUsage, "ccship: ?\n"},
	} {
		code, out, words := inProcess(t, append(test.args, "status", "--line", "--socket", test.socket)...)
		if code != test.code || words != "" || test.want != "" && out != test.want {
			t.Errorf("%v: exit code %d, %q, stderr %q", test, code, out, words)
		}
		if strings.Count(out, "\n") != 1 || utf8.RuneCountInString(strings.TrimSuffix(out, "\n")) > 80 {
			t.Errorf("%v: %q is no short line", test, out)
		}
	}
}
