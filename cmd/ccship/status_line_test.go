package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/ccship/ccship/cmd/ccship/show"
	"github.com/ccship/ccship/cmd/ccship/showtest"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/e2e/kit"
)

// asking is a daemon that notes whether who asked for the status waits for a probe.
type asking struct {
	scripted
	waits *[]bool
}

func (a asking) Probe(_ context.Context, wait bool) { *a.waits = append(*a.waits, wait) }

// A status line waits for no server; who looks at the status wants to know.
func TestStatusProbes(t *testing.T) {
	jsonHome(t)
	for _, test := range []struct {
		flags []string
		want  []bool
	}{
		{nil, []bool{true}}, {[]string{"--json"}, []bool{true}}, {[]string{"--line"}, []bool{false}},
	} {
		var waits []bool
		socket := listen(t, asking{scripted{status: showtest.Healthy()}, &waits})
		code, _, words := inProcess(t, append([]string{"status", "--socket", socket}, test.flags...)...)
		kit.Check(t, code == show.ExitOK && slices.Equal(waits, test.want),
			"%v: exit code %d, %s; waited %v, want %v", test.flags, code, words, waits, test.want)
	}
}

// Nothing that goes wrong makes a line of more than one line, or a word on stderr.
func TestStatusLine(t *testing.T) {
	jsonHome(t)
	t.Setenv("LC_ALL", "C.UTF-8")
	file := filepath.Join(t.TempDir(), "file")
	kit.Must(t, os.WriteFile(file, nil, 0o600))
	healthy, now := showtest.Healthy(), time.Now()
	healthy.Servers[0].LastContactAt = &now
	long := showtest.Healthy()
	long.State, long.Servers = "refused", []control.Server{{State: "refused", Kind: "refused_key"}}
	long.Outbox = &control.Outbox{Entries: 1 << 62, Dead: 1 << 62}
	for _, test := range []struct {
		socket string
		args   []string
		code   int
		want   string
	}{
		{listen(t, scripted{status: healthy}), nil, show.ExitOK, "● ccship: up to date\n"},
		{listen(t, scripted{status: long}), nil, show.ExitOK, ""},
		{kit.Socket(t), nil, show.ExitNotRunning, "ccship: off\n"},
		{file, nil, show.ExitUsage, "ccship: ?\n"},
		{kit.Socket(t), []string{"--log-level", "loud"}, show.ExitUsage, "ccship: off, mistake in the configuration\n"},
	} {
		code, out, words := inProcess(t, append(test.args, "status", "--line", "--socket", test.socket)...)
		kit.Check(t, code == test.code && words == "" && (test.want == "" || out == test.want),
			"%v: exit code %d, %q, stderr %q", test, code, out, words)
		kit.Check(t, strings.Count(out, "\n") == 1 && utf8.RuneCountInString(strings.TrimSuffix(out, "\n")) <= 80,
			"%v: %q is no short line", test, out)
	}
}
