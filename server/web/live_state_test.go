package web

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server/web/thread"
	"github.com/ccship/ccship/transcript"
	"github.com/ccship/ccship/transcript/session"
)

func records(lines ...string) (out []transcript.Record) {
	return kit.Each(lines, func(l string) transcript.Record { return transcript.Parse([]byte(l)) })
}

func call(tool string) string {
	return fmt.Sprintf(`{"type":"assistant","message":{"role":"assistant","model":"m","stop_reason":"tool_use","content":[{"type":"tool_use","id":"t1","name":%q,"input":{"command":"make"}}]}}`, tool)
}

const (
	ask    = `{"type":"user","message":{"role":"user","content":"fix it"}}`
	result = `{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"ok"}]}}`
	says   = `{"type":"assistant","message":{"role":"assistant","model":"m","stop_reason":"end_turn","content":[{"type":"text","text":"It is fixed."}]}}`
	// openEnded is an answer as old versions of Claude Code write each one.
	openEnded = `{"type":"assistant","message":{"role":"assistant","model":"m","stop_reason":null,"content":[{"type":"text","text":"It is fixed."}]}}`
	apiDown   = `{"type":"assistant","isApiErrorMessage":true,"message":{"role":"assistant","model":"<synthetic>","content":[{"type":"text","text":"Overloaded"}]}}`
	stopped   = `{"type":"user","message":{"role":"user","content":[{"type":"text","text":"[Request interrupted by user]"}]}}`
	noise     = `{"type":"file-history-snapshot"}`
	bypass    = `{"type":"permission-mode","permissionMode":"bypassPermissions"}`
)

func TestStanding(t *testing.T) {
	now := time.Now()
	for name, x := range map[string]struct {
		quiet        time.Duration
		lines        []string
		state, words string
		needs        bool
	}{
		"nothing":                   {0, nil, "", "", false},
		"only noise":                {0, []string{noise}, "", "", false},
		"a prompt":                  {time.Second, []string{ask, noise}, "working", "Working", false},
		"a prompt long ago":         {time.Hour, []string{ask}, "done", "Stopped before an answer", false},
		"a call":                    {time.Second, []string{ask, call("Bash")}, "working", "Working", false},
		"a call without a result":   {3 * time.Minute, []string{ask, call("Bash"), noise}, "maybe", "Bash for 3 min", true},
		"half an hour without one":  {30 * time.Minute, []string{call("Edit")}, "maybe", "or waiting for permission", true},
		"hours without a result":    {4 * time.Hour, []string{call("Bash")}, "done", "Stopped during Bash", false},
		"a question of yesterday":   {30 * time.Hour, []string{call("AskUserQuestion")}, "done", "Stopped at a question", false},
		"with permission for all":   {3 * time.Minute, []string{bypass, call("Bash")}, "working", "Working", false},
		"a question":                {time.Second, []string{call("AskUserQuestion")}, "waits", "question", true},
		"a plan":                    {time.Hour, []string{call("ExitPlanMode")}, "waits", "approval", true},
		"a result":                  {3 * time.Minute, []string{call("Bash"), result}, "working", "Working", false},
		"an answered plan":          {time.Second, []string{call("ExitPlanMode"), result}, "working", "Working", false},
		"the end of a turn":         {time.Minute, []string{call("Bash"), result, says, noise}, "done", "your turn", false},
		"an answer being written":   {time.Second, []string{ask, openEnded}, "working", "Working", false},
		"an answer without reason":  {time.Hour, []string{ask, openEnded, noise}, "done", "your turn", false},
		"thoughts without reason":   {time.Hour, []string{ask, strings.Replace(openEnded, `"text",`, `"thinking",`, 1)}, "done", "Stopped before an answer", false},
		"an error of the model":     {time.Minute, []string{ask, apiDown}, "failed", "Failed", true},
		"an interruption":           {time.Minute, []string{call("Bash"), stopped}, "done", "Interrupted", false},
		"an agent's call":           {time.Hour, []string{says, strings.Replace(call("Bash"), "{", `{"isSidechain":true,`, 1)}, "done", "your turn", false},
		"another prompt after that": {time.Second, []string{apiDown, ask}, "working", "Working", false},
	} {
		s := liveStateOf(records(x.lines...), now.Add(-x.quiet), now)
		kit.Check(t, s.State == x.state && strings.Contains(s.Words, x.words) && s.Needs == x.needs,
			"%s: %+v, want %s %q, needs %v", name, s, x.state, x.words, x.needs)
	}
	kit.Equal(t, "last", liveStateOf(records(ask, says, noise), now, now).Last, "It is fixed.")
}

func TestDayName(t *testing.T) {
	today := time.Date(2026, 3, 1, 0, 30, 0, 0, time.UTC)
	for at, want := range map[string]string{
		"2026-03-01T00:00:00Z": "Today", "2026-02-28T23:59:00Z": "Yesterday", "2026-02-27T00:00:00Z": "Friday 27 February",
		"2025-12-31T00:00:00Z": "Wednesday 31 December 2025",
	} {
		d, _ := time.Parse(time.RFC3339, at)
		kit.Equal(t, at, dayName(d, today), want)
	}
}

// TestOutlineWithoutMarkup: Claude Code's marks around an error are not part of what the outline says.
func TestOutlineWithoutMarkup(t *testing.T) {
	m := session.Moment{Kind: "error", Tool: "Grep", Text: "<tool_use_error>Path does not exist</tool_use_error>"}
	got := outlineRow(thread.Stream{ID: "x"}, &m).Text
	kit.Check(t, got == "Grep: Path does not exist", "%v", got)
}
