// Package showtest has what tests of the command line share: answers of the daemon with every member set, and golden
// files.
package showtest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/doctor"
)

// Golden compares a text with a file below testdata/golden.
func Golden(t *testing.T, name, got string) {
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

// Uncoloured takes the escapes out of a text.
func Uncoloured(text string) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, "\x1b[")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		_, text, _ = strings.Cut(rest, "m")
	}
}

// FlagWords fails for a flag whose placeholder is not one word, is the flag's own name, or a type of Go.
func FlagWords(t *testing.T, root *cobra.Command) {
	t.Helper()
	check := func(f *pflag.Flag) {
		word, _ := pflag.UnquoteUsage(f)
		types := []string{"string", "int", "int64", "strings"}
		if word == f.Name || strings.Contains(word, " ") || slices.Contains(types, word) {
			t.Errorf("--%s takes %q", f.Name, word)
		}
	}
	var each func(*cobra.Command)
	each = func(c *cobra.Command) {
		c.Flags().VisitAll(check)
		c.PersistentFlags().VisitAll(check)
		for _, below := range c.Commands() {
			each(below)
		}
	}
	each(root)
}

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

// DoctorReports returns what a doctor may say: no problems, a warning, failures, and after fixing.
func DoctorReports() map[string]doctor.Report {
	well := []doctor.Finding{
		{ID: "daemon", Level: doctor.OK, Text: "running for 3 d 2 h (pid 4711)"},
		{ID: "version", Level: doctor.OK, Text: "daemon and command line are 1.2.3"},
		{ID: "service", Level: doctor.OK, Text: "installed (systemd-user), starts automatically"},
		{ID: "dead_letters", Level: doctor.OK, Text: "none"},
	}
	note := doctor.Finding{ID: "excluded", Level: doctor.Note,
		Text: "2 transcripts are left out: excluded, forgotten, or opted out by their projects",
		Fix:  "`ccship exclude` shows why"}
	warn := doctor.Finding{
		ID: "outbox", Level: doctor.Warn, Text: "1 204 entries wait, the oldest for 3 h 12 min",
		Fix: "`ccship sync --wait`", Safe: true,
	}
	fails := []doctor.Finding{
		{ID: "key", Level: doctor.Fail, Text: "API key file /home/kim/.config/ccship/api_key is readable or writable by " +
			"others (mode 0644)", Detail: "the key is not used until this is fixed",
			Fix: "`chmod 600 /home/kim/.config/ccship/api_key`", Safe: true},
		{ID: "retention", Level: doctor.Fail,
			Text:   "3 sessions will be deleted by Claude Code within 7 days and are not yet on the server",
			Detail: "first any time now: /home/kim/.claude/projects/-home-kim-web/1c0e.jsonl\nand more",
			Fix:    "`ccship sync --wait`"},
	}
	fixes := []doctor.Fix{
		{ID: "key", Command: "chmod 600 /home/kim/.config/ccship/api_key", Done: true},
		{ID: "outbox", Command: "ccship sync --wait", Error: "not everything could be delivered: connection refused",
			Hint: "`ccship status` shows why; the daemon keeps trying"},
	}
	all := func(parts ...[]doctor.Finding) (out []doctor.Finding) {
		for _, p := range parts {
			out = append(out, p...)
		}
		return out
	}
	report := func(failed, warned int, findings []doctor.Finding) doctor.Report {
		return doctor.Report{SchemaVersion: 1, Version: "1.2.3", OK: failed == 0, Failed: failed, Warned: warned,
			Findings: findings}
	}
	fixed := report(1, 1, all(fails[1:], []doctor.Finding{warn, note}, well))
	fixed.Fixes = fixes
	return map[string]doctor.Report{
		"well":   report(0, 0, all([]doctor.Finding{note}, well)),
		"warned": report(0, 1, all([]doctor.Finding{warn}, well)),
		"broken": report(2, 1, all(fails, []doctor.Finding{warn, note}, well)),
		"fixed":  fixed,
	}
}

// NotRead names one of everything that is not read.
func NotRead() control.NotReadFiles {
	return control.NotReadFiles{
		Stray: []string{"/r/p/x/notes.jsonl"}, NotFollowed: []string{"/r/p/a.jsonl: the target of this link does not exist"},
		Elsewhere: []control.Home{{Path: "/home/me/.claude-work/projects", Transcripts: 3}},
	}
}

// VerifyReport has every member set, as a verify that found everything there can be.
func VerifyReport() control.VerifyReport {
	return control.VerifyReport{
		SchemaVersion: 1, Incomplete: "the time limit has passed", Files: 2, Lines: 48211, Bytes: 61_200_000, Excluded: 3,
		ExcludedFiles: 2,
		Dead:          1, Withheld: 4, Oversize: 1, Masked: 6, ByServer: 7, ByPolicy: 8, ByPolicyOnly: 2, Unproven: 1,
		Clear: 2, Waiting: 5, Vanished: 1, Began: 1, Resumed: true, Unfinished: 2, NotReadFiles: NotRead(),
		Retired: RetiredServers(),
		ExcludedWhy: []control.ExclusionCount{
			{Why: "its project has opted out", Transcripts: 1, Lines: 8},
			{Why: "held back: read /s/config.json: unexpected\nend", Transcripts: 1},
			{Why: "of a type in exclude_types", Lines: 3},
		},
		Findings: []control.VerifyFinding{
			{Kind: "not_delivered", Count: 5, Text: "not everything is delivered: time is up",
				Fix: "`ccship sync --wait --timeout 10m` waits longer"},
			{Kind: "differences", Count: 1, Text: "1 difference between disk and server",
				Fix: "`ccship verify --repair` sends what the server lacks"},
			{Kind: "dead_letters", Count: 1, Text: "1 entry refused by the server (dead letters)",
				Fix: "`ccship outbox retry --all` sends them again"},
		},
		Repaired: &control.ResendResult{SchemaVersion: 1, Transcripts: 1, Lines: 4, Bytes: 99,
			Resent:  []control.ResentTranscript{{SessionID: "a", Path: "/p/a.jsonl", From: 6, Lines: 4, Generation: 2}},
			Skipped: []control.SkippedFile{{SessionID: "c", Path: "/r/c.jsonl", Why: "its project has opted out"}}},
		Attachments: control.AttachmentsReport{Files: 9, Bytes: 12_345, Missing: 1, Refused: 2, TooLarge: 3, Unproven: 4},
		Deep: &control.DeepReport{
			Past:    control.DeepCount{Generations: 3, Lines: 40, Bytes: 4000},
			Gone:    control.DeepCount{Generations: 1, Lines: 2, Bytes: 3},
			Earlier: control.DeepCount{Generations: 1, Lines: 7, Bytes: 8},
			Retired: control.DeepCount{Generations: 1, Lines: 9, Bytes: 10},
			Stored:  control.DeepCount{Generations: 2, Lines: 5, Bytes: 6},
			Why:     []control.StoredReason{{Why: "of an earlier state file", Generations: 2}},
		},
		Differences: []control.FileDifference{{
			SessionID: "a", Path: "/p/a.jsonl", Epoch: "e0", Past: true, Generation: 2,
			Missing: []control.Range{{First: 3, Last: 5}, {First: 9, Last: 9}},
			Differ:  []control.Range{{First: 1, Last: 1}}, Extra: []control.Range{{First: 12, Last: 13}},
			Detail: "the file is not what was acknowledged",
		}},
		Transcripts: []control.FileReport{
			{SessionID: "a", Path: "/p/a.jsonl", Server: "http://127.0.0.1:5000", Generation: 2, Lines: 10, Bytes: 1234,
				Clear: 2, SHA256: strings.Repeat("0a", 32), Note: "acknowledged, not proven"},
			{SessionID: "b", Path: "/q/b.jsonl", Server: "http://127.0.0.1:5000", Lines: 1, Bytes: 2,
				SHA256: strings.Repeat("0b", 32), Equal: true},
			{SessionID: "c", Path: "/r/c.jsonl", Equal: true, Note: "its project has opted out"},
			{SessionID: "d", Path: "/s/d.jsonl", Equal: true, Note: "held back: read /s/config.json: unexpected\nend"},
		},
	}
}

// RetiredServers returns one server that is no longer configured.
func RetiredServers() []control.RetiredServer {
	return []control.RetiredServer{{URL: "http://old.example.org", Batches: 2, Entries: 7}}
}

// EqualReport returns a verify that found no difference.
func EqualReport() control.VerifyReport {
	return control.VerifyReport{
		SchemaVersion: 1, Equal: true, Proven: true, Files: 1, Lines: 1, Bytes: 2,
		Transcripts: []control.FileReport{{SessionID: "b", Path: "/q/b.jsonl", Server: "http://127.0.0.1:5000", Lines: 1,
			Bytes: 2, SHA256: strings.Repeat("0b", 32), Equal: true}},
	}
}

// Checkpoint has every member set.
func Checkpoint() control.Checkpoint {
	return control.Checkpoint{
		ID: "cp-0123456789ab", SessionID: "3f2a1b9c-0000-4000-8000-000000000001", PortID: "cart", TokensUsed: 137_412,
		TokenBudget: 167_000,
		TriggerType: "auto_80", ContextHash: "00112233445566ff",
		Summary: "Title: Rounding in the cart\nPrompt: 이제 테스트도 고쳐 주세요\x1b[2J\nAnswer: All of them pass.\n" +
			"Tools: Edit 12, Read 9",
		ActiveFiles: []string{"/home/me/shop/cart.go", "/home/me/shop/\u009btax.go"}, CreatedAt: *Before(2 * time.Hour),
	}
}

// Budgets has every member and every source.
func Budgets() control.Budgets {
	return control.Budgets{SchemaVersion: 1, Budgets: []control.Budget{
		{Session: "aa", Model: "claude-haiku-4-5", Window: 200_000, Limit: 155_460, Used: 1000, Source: "learned",
			Seen: 155_460},
		{Model: "claude-sonnet-5", Window: 1_000_000, Limit: 967_000, Source: "model"},
		{Model: "claude-haiku-4-5", Window: 200_000, Limit: 155_460, Source: "learned", Seen: 155_460},
		{Model: "gateway", Window: 200_000, Limit: 167_000, Source: "default"},
		{Model: "claude-opus-4-6", Window: 1_000_000, Limit: 967_000, Source: "seen"},
		{Session: "3f2a1b9c", Model: "claude-haiku-4-5", Window: 200_000, Limit: 120_000, Used: 61_000,
			Source: "configured", Pinned: true},
		{Session: "77", Model: "gateway", Window: 200_000, Limit: 168_000, Used: 170_000, Source: "boundary"},
	}}
}

// Messages has a message of every type.
func Messages() control.Messages {
	at := time.Date(2026, 8, 20, 9, 5, 0, 0, time.UTC).UnixMilli()
	yes, no, refused := true, false, "permission denied\x1b[2J\nsecond line"
	return control.Messages{
		SchemaVersion: control.SchemaVersion, Session: "3f2a9c01-0000-4000-8000-000000000001", Title: "장바구니 반올림", Total: 15,
		UpdatedAt: at,
		Messages: []control.Message{
			{Role: "user", Type: "text", Line: 1, UUID: "u1", Timestamp: at, Content: "장바구니의 반올림을\n고쳐 주세요"},
			{Role: "assistant", Type: "text", Line: 2, UUID: "u2", Timestamp: at, Content: "I will look."},
			{Role: "assistant", Type: "tool_complete", Line: 3, Timestamp: at, ToolUseID: "t1", ToolName: "Bash",
				ToolInput: json.RawMessage(`{"description":"look","command":"ls"}`), Success: &yes, Output: "cart.go"},
			{Role: "assistant", Type: "tool_complete", Line: 4, Timestamp: at, ToolUseID: "t2", ToolName: "Edit",
				ToolInput: json.RawMessage(`{"file_path":"/cart.go"}`), Success: &no, Error: &refused},
			{Role: "assistant", Type: "tool_start", Line: 5, Timestamp: at, ToolUseID: "t3", ToolName: "Read",
				ToolInput: json.RawMessage(`{"file_path":"/b.go"}`)},
			{Role: "assistant", Type: "tool_start", Line: 6, ToolUseID: "t4", Aborted: true},
			{Role: "system", Type: "error", Line: 7, Timestamp: at, Content: "overloaded"},
			{Role: "system", Type: "result", Line: 8, Timestamp: at, Duration: 12.5, InputTokens: 1000, OutputTokens: 500,
				NewTokens: 30, CacheWrite: 270, CacheRead: 700, Interrupted: true},
			{Role: "user", Type: "interrupted", Line: 9, Timestamp: at},
			{Role: "user", Type: "command", Line: 10, Timestamp: at, Content: "/model opus"},
			{Role: "system", Type: "compaction", Line: 11, Timestamp: at, Trigger: "auto", TokensBefore: 167_000,
				TokensAfter: 9000},
			{Role: "system", Type: "cleared", Line: 12, Timestamp: at},
			{Role: "system", Type: "message", Line: 13, Timestamp: at, From: "session checkout", Content: "stop editing"},
			{Role: "user", Type: "text", Line: 14, Timestamp: at, From: "telegram", Content: "deploy"},
		},
	}
}
