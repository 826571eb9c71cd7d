package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/daemon/control"
)

// golden compares a text with a file below testdata/golden.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", "golden", name)
	if os.Getenv("CCSHIP_UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("not as %s:\n%s", path, diff)
	}
}

// moment is when the golden views are looked at.
func moment() time.Time { return time.Date(2026, 10, 3, 12, 0, 0, 0, time.UTC) }

func before(d time.Duration) *time.Time {
	t := moment().Add(-d)
	return &t
}

// well is a daemon with nothing to complain of.
func well() control.Status {
	return control.Status{
		SchemaVersion: 1, Running: true, Version: "1.2.3", PID: 4711, StartedAt: *before(3*time.Hour + 12*time.Minute), State: "watching",
		Servers: []control.Server{{URL: "http://127.0.0.1:5000", State: "ok", Protocol: "ccship", LastOKAt: before(2 * time.Second)}},
		Files:   &control.Files{Tracked: 132, Sessions: 120, Bytes: 61_200_000, ReadBytes: 61_200_000, Lines: 48211},
		Outbox:  &control.Outbox{Cap: 2 << 30},
		Sent:    &control.Sent{Entries: 48211, Bytes: 61_200_000, Requests: 512, LastAt: before(2 * time.Second)},
		Watch:   &control.Watch{Mode: "events", Roots: []string{"/home/me/.claude/projects"}},
		Process: &control.Process{RSS: 23_400_000, CPUSeconds: 4.14, StateFile: 1_048_576},
		TookUS:  180,
	}
}

func statuses() map[string]control.Status {
	importing := well()
	importing.State = "importing"
	importing.Files = &control.Files{Tracked: 1, Sessions: 1, Bytes: 61_200_000, ReadBytes: 30_100_000, Lines: 20000, Malformed: 2}
	importing.Outbox = &control.Outbox{Batches: 9, Entries: 1, Bytes: 1_250_000, Stored: 200 << 20, Cap: 2 << 30, OldestAt: before(90 * time.Second)}

	reading := well()
	reading.State = "reading"
	reading.Files.ReadBytes -= 4096

	trouble := well()
	trouble.State = "refused"
	trouble.Servers = []control.Server{
		{URL: "https://ccship.example.org", State: "refused", Kind: "refused_key", Protocol: "unknown", Detail: "401 Unauthorized:\n no such key", Hint: "put a valid key into /home/me/.config/ccship/api_key", RetryAt: after(42 * time.Second), LastOKAt: before(50 * time.Hour)},
		{URL: "http://localhost:5000", State: "retrying", Kind: "unreachable", Protocol: "plain", Detail: "connection refused", RetryAt: after(100 * time.Millisecond)},
	}
	trouble.Files = &control.Files{Tracked: 10, Sessions: 8, Excluded: 1, Bytes: 999, ReadBytes: 999, Lines: 5, Vanished: 2, Rewinds: 3, Oversize: 1}
	trouble.Outbox = &control.Outbox{Batches: 1, Entries: 1200, Bytes: 999_950, Cap: 0, Dead: 1, Withheld: 1500}
	trouble.Watch = &control.Watch{Mode: "poll", Reason: "too many open files", Roots: []string{"/a", "/b"}}
	trouble.Notices = []control.Notice{{Kind: "dead_letters", Text: "the server refuses some entries", Hint: "ccship verify names the lines"}, {Kind: "state", Text: "state was set aside"}}

	paused := well()
	paused.State, paused.Pause = "paused", &control.Pause{Since: *before(time.Minute), Until: after(59 * time.Minute)}
	paused.Outbox.Batches, paused.Outbox.Entries, paused.Outbox.Bytes = 1, 12, 4000

	return map[string]control.Status{
		"paused": paused, "watching": well(), "importing": importing, "reading": reading, "trouble": trouble,
		"no_server": {SchemaVersion: 1, Running: true, State: "no_server", Files: &control.Files{}, Outbox: &control.Outbox{}},
		"empty":     {SchemaVersion: 1, Running: true, State: "watching", Files: &control.Files{}, Servers: []control.Server{{URL: "http://h", State: "unknown", Protocol: "unknown"}}},
	}
}

func after(d time.Duration) *time.Time { return before(-d) }

func TestStatusView(t *testing.T) {
	for name, status := range statuses() {
		t.Run(name, func(t *testing.T) {
			golden(t, "status_"+name+".txt", statusView{now: moment()}.render(status))
		})
	}
}

// Colour changes nothing but colour.
func TestStatusColour(t *testing.T) {
	for name, status := range statuses() {
		plain := statusView{now: moment()}.render(status)
		coloured := statusView{now: moment(), colour: true}.render(status)
		if !strings.Contains(coloured, "\x1b[") {
			t.Errorf("%s: no colour", name)
		}
		for _, code := range []string{good, busy, uneasy, bad, faint, bold, "0"} {
			coloured = strings.ReplaceAll(coloured, "\x1b["+code+"m", "")
		}
		if diff := cmp.Diff(plain, coloured); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// Every line of the view fits a terminal of 120 columns, long roots aside.
func TestStatusWidth(t *testing.T) {
	for name, status := range statuses() {
		for line := range strings.Lines(statusView{now: moment()}.render(status)) {
			if term.Cut(strings.TrimSuffix(line, "\n"), 120) != strings.TrimSuffix(line, "\n") {
				t.Errorf("%s: too long: %s", name, line)
			}
		}
	}
}

func TestProgressBar(t *testing.T) {
	view := statusView{now: moment(), bar: func(done, total int64) string { return term.Progress(done, total, 20) }}
	golden(t, "status_bar.txt", view.render(statuses()["importing"]))
}

func TestSummary(t *testing.T) {
	want := "importing, 1 transcript, 30 MB of 61 MB read, 1 waiting, 48 211 sent"
	if got := summary(statuses()["importing"]); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
