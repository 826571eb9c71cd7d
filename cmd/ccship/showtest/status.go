package showtest

import (
	"time"

	"github.com/ccship/ccship/daemon/control"
)

// Moment returns when the golden views are looked at.
func Moment() time.Time { return time.Date(2026, 10, 3, 12, 0, 0, 0, time.UTC) }

// Before is d before Moment.
func Before(d time.Duration) *time.Time {
	t := Moment().Add(-d)
	return &t
}

// After is d after Moment.
func After(d time.Duration) *time.Time { return Before(-d) }

// Healthy returns a daemon with nothing to complain of.
func Healthy() control.Status {
	return control.Status{
		SchemaVersion: 1, Running: true, Version: "1.2.3", PID: 4711, StartedAt: *Before(3*time.Hour + 12*time.Minute),
		State: "watching",
		Servers: []control.Server{{URL: "http://127.0.0.1:5000", State: "ok", Protocol: "ccship",
			LastOKAt: Before(2 * time.Second), LastContactAt: Before(2 * time.Second), ContactAge: 2}},
		Files:   &control.Files{Tracked: 132, Sessions: 120, Bytes: 61_200_000, ReadBytes: 61_200_000, Lines: 48211},
		Outbox:  &control.Outbox{Cap: 2 << 30},
		Sent:    &control.Sent{Entries: 48211, Bytes: 61_200_000, Requests: 512, LastAt: Before(2 * time.Second)},
		Watch:   &control.Watch{Mode: "events", Roots: []string{"/home/me/.claude/projects"}},
		Process: &control.Process{RSS: 23_400_000, CPUSeconds: 4.14, StateFile: 1_048_576},
		TookUS:  180,
	}
}

// Statuses returns a daemon's statuses in every state, by name.
func Statuses() map[string]control.Status {
	importing := Healthy()
	importing.State = "importing"
	importing.Files = &control.Files{Tracked: 1, Sessions: 1, Bytes: 61_200_000, ReadBytes: 30_100_000, Lines: 20000,
		Malformed: 2}
	importing.Outbox = &control.Outbox{Batches: 9, Entries: 1, Bytes: 1_250_000, Stored: 200 << 20, Cap: 2 << 30,
		OldestAt: Before(90 * time.Second)}

	reading := Healthy()
	reading.State = "reading"
	reading.Files.ReadBytes -= 4096

	trouble := Healthy()
	trouble.State = "refused"
	trouble.Servers = []control.Server{
		{URL: "https://ccship.example.org", State: "refused", Kind: "refused_key", Protocol: "unknown",
			Detail: "401 Unauthorized:\n no such key", Hint: "put a valid key into /home/me/.config/ccship/api_key",
			RetryAt: After(42 * time.Second), LastOKAt: Before(50 * time.Hour)},
		{URL: "http://localhost:5000", State: "retrying", Kind: "unreachable", Protocol: "plain",
			Detail: "connection refused", RetryAt: After(100 * time.Millisecond)},
	}
	trouble.Files = &control.Files{Tracked: 10, Sessions: 8, Excluded: 1, Bytes: 999, ReadBytes: 999, Lines: 5,
		Vanished: 2, Rewinds: 3, Oversize: 1}
	trouble.Outbox = &control.Outbox{Batches: 1, Entries: 1200, Bytes: 999_950, Cap: 0, Dead: 1, Withheld: 1500}
	trouble.Watch = &control.Watch{Mode: "poll", Reason: "too many open files", Roots: []string{"/a", "/b"}}
	trouble.Advice = []control.Advice{{Kind: "dead_letters", Text: "the server refuses some entries",
		Hint: "`ccship verify` lists them"}, {Kind: "state", Text: "state was set aside"}}

	paused := Healthy()
	paused.State, paused.Pause = "paused", &control.Pause{Since: *Before(time.Minute), Until: After(59 * time.Minute)}
	paused.Outbox.Batches, paused.Outbox.Entries, paused.Outbox.Bytes = 1, 12, 4000

	silent := Healthy()
	silent.Servers = []control.Server{{URL: "http://127.0.0.1:5000", State: "retrying", Kind: "unreachable",
		Protocol: "ccship", Detail: "connection refused", LastOKAt: Before(50 * time.Hour),
		LastContactAt: Before(25 * time.Minute), ContactAge: 1500,
		Probe: &control.Probe{At: *Before(8 * time.Second), Age: 8, Kind: "unreachable", Detail: "connection refused"}}}

	rejected := Healthy()
	rejected.State = "importing"
	rejected.Servers = []control.Server{{URL: "http://127.0.0.1:5000", State: "refused", Kind: "refused_key",
		Protocol: "unknown", Detail: "answered 401 Unauthorized", Probe: &control.Probe{At: Moment(), Kind: "refused_key"}}}

	return map[string]control.Status{
		"silent": silent, "rejected": rejected,
		"paused": paused, "watching": Healthy(), "importing": importing, "reading": reading, "trouble": trouble,
		"no_server": {SchemaVersion: 1, Running: true, State: "no_server", Files: &control.Files{},
			Outbox: &control.Outbox{}},
		"empty": {SchemaVersion: 1, Running: true, State: "watching", Files: &control.Files{},
			Servers: []control.Server{{URL: "http://h", State: "unknown", Protocol: "unknown"}}},
	}
}
