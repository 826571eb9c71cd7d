package thread

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

// calls makes the items of an answer's records: "think", "text", or a tool's name, with ! when it failed.
func calls(names ...string) (items []Item) {
	for i, name := range names {
		it := Item{Line: int64(i), Kind: "answer", Who: "Claude", Cont: i > 0}
		switch name {
		case "think":
			it.Parts = []Part{{Kind: "think"}}
		case "text":
			it.Parts = []Part{{Kind: "md"}}
		case "prompt":
			it.Kind = "prompt"
		default:
			t := &Tool{Name: name, State: "ok", Took: 300 * time.Millisecond}
			if name[0] == '!' {
				t.Name, t.State = name[1:], "error"
			}
			t.call = call{Name: t.Name, Input: []byte(`{"file_path":"/w/` + string(rune('a'+i)) + `.go"}`)}
			it.Parts = []Part{{Kind: "tool", Tool: t}}
		}
		items = append(items, it)
	}
	return items
}

// TestFoldRuns: successive successful calls are one line that says what they did; what a reader looks for stays.
func TestFoldRuns(t *testing.T) {
	for _, x := range []struct {
		name string
		in   []string
		want []string // kinds; of a run what it says
	}{
		{"commands and files", []string{"prompt", "Bash", "Bash", "Read", "Bash", "Read", "text"},
			[]string{"prompt", "Ran 3 commands, read 2 files", "answer"}},
		{"thoughts between", []string{"think", "Bash", "think", "Grep", "think", "text"},
			[]string{"Ran 1 command, made 1 search", "answer", "answer"}},
		{"one call", []string{"think", "Bash", "text"}, []string{"answer", "answer", "answer"}},
		{"a failure", []string{"Bash", "Bash", "!Bash", "Bash"}, []string{"Ran 2 commands", "answer", "answer"}},
		{"a change", []string{"Read", "Read", "Edit", "Bash", "Bash"},
			[]string{"Read 2 files", "answer", "Ran 2 commands"}},
		{"other tools", []string{"mcp__a", "mcp__b", "Grep", "Glob"}, []string{"Made 2 searches, called mcp__a and mcp__b"}},
		{"many other tools", []string{"X", "Y", "Z", "WebFetch"}, []string{"Looked up 1 page, made 3 other calls"}},
		{"agents and questions", []string{"Task", "Agent", "AskUserQuestion", "TodoWrite"},
			[]string{"answer", "answer", "answer", "answer"}},
	} {
		var got []string
		items := calls(x.in...)
		folded := FoldRuns(items)
		for i := range folded {
			if folded[i].Kind != "run" {
				got = append(got, folded[i].Kind)
				continue
			}
			got = append(got, folded[i].Summary)
			if folded[i].ID() != folded[i].Run[0].ID()+"-run" || folded[i].Took == 0 {
				t.Errorf("%s: the run is %q and took %v", x.name, folded[i].ID(), folded[i].Took)
			}
		}
		if len(got) != len(x.want) {
			t.Errorf("%s: %q, want %q", x.name, got, x.want)
			continue
		}
		for i := range got {
			kit.Equal(t, x.name, got[i], x.want[i])
		}
	}
}

// TestSecretsAreNotFolded: a line with a secret stays in sight.
func TestSecretsAreNotFolded(t *testing.T) {
	items := calls("Bash", "Bash", "Bash")
	items[1].Secrets = []string{"a rule"}
	kit.Equal(t, "items", len(FoldRuns(items)), 3)
}

// TestTyped: a prompt keeps every line break, space and backslash; only code between fences is code.
func TestTyped(t *testing.T) {
	for in, want := range map[string]string{
		"a\nb\n\n  c":                        "typed:a\nb\n\n  c",
		`C:\new\*.go and \[x\]`:              `typed:C:\new\*.go and \[x\]`,
		"# no heading\n* no *list*":          "typed:# no heading\n* no *list*",
		"<b>&":                               "typed:&lt;b&gt;&amp;",
		"see\n```\nx := 1\n\ty\n```\nok?":    "typed:see|code:x := 1\n\ty|typed:ok?",
		"```\n```\nafter":                    "code:|typed:after",
		"open\n```go\nnever closed":          "typed:open\n```go\nnever closed",
		"in ```line``` it is text":           "typed:in ```line``` it is text",
		"```text\na\n```\n```text\nb\n```\n": "code:a|code:b",
		"":                                   "",
	} {
		b := NewBuilder("", Stream{}, Focused)
		got := kit.Each(b.typed(in), func(p Part) string { return p.Kind + ":" + string(p.HTML) })
		kit.Equal(t, in, strings.Join(got, "|"), want)
	}
	b := NewBuilder("", Stream{}, Focused)
	p := b.typed(strings.Repeat("x", textLimit+5))
	kit.Check(t, len(p) == 1 && p[0].More == 5 && b.cut, "a long prompt: %+v", p)
}

// TestTook: how long a call ran does not contain known waiting for the user, and says so where it may.
func TestTook(t *testing.T) {
	for name, x := range map[string]struct {
		tool, mode string
		elapsed    time.Duration
		o          outcome
		want       time.Duration
		may        bool
		waited     time.Duration
	}{
		"by call and result":      {"Bash", "", 2 * time.Second, outcome{}, 2 * time.Second, false, 0},
		"perhaps with waiting":    {"Bash", "default", time.Minute, outcome{}, time.Minute, true, 0},
		"everything is allowed":   {"Bash", "bypassPermissions", time.Minute, outcome{}, time.Minute, false, 0},
		"the result says":         {"Grep", "", time.Minute, outcome{OwnMillis: 1500}, 1500 * time.Millisecond, false, 0},
		"in seconds":              {"WebSearch", "", time.Minute, outcome{OwnSeconds: 2.5}, 2500 * time.Millisecond, false, 0},
		"more than there was":     {"Grep", "", time.Second, outcome{OwnMillis: 90_000}, time.Second, false, 0},
		"an agent's":              {"Task", "", 10 * time.Minute, outcome{Millis: 60_000}, time.Minute, false, 0},
		"a question":              {"AskUserQuestion", "", time.Minute, outcome{}, 0, false, time.Minute},
		"a plan":                  {"ExitPlanMode", "", time.Hour, outcome{}, 0, false, time.Hour},
		"a clock that was set":    {"Bash", "", 9 * 24 * time.Hour, outcome{}, 0, false, 0},
		"a list that never waits": {"TodoWrite", "", time.Minute, outcome{}, time.Minute, false, 0},
		"the timeline knows":      {"Bash", "default", 5 * time.Minute, outcome{}, 20 * time.Second, false, 280 * time.Second},
		"of another tool":         {"mcp__x__y", "default", 5 * time.Minute, outcome{}, 5 * time.Minute, true, 0},
		"nobody is asked":         {"Read", "default", time.Minute, outcome{}, time.Minute, false, 0},
		"edits are accepted":      {"Edit", "acceptEdits", time.Minute, outcome{}, time.Minute, false, 0},
		"edits are not":           {"Edit", "default", time.Minute, outcome{}, time.Minute, true, 0},
	} {
		b := NewBuilder("", Stream{}, Focused)
		b.permission = x.mode
		b.Times = map[int64][]Times{7: {{Tool: "Bash", Took: 20 * time.Second, Waited: 280 * time.Second}, {Tool: "Bash", Took: 30 * time.Second}}}
		c := &Tool{ResultLine: 7, call: call{Name: x.tool, Cwd: "/w", Input: []byte(`{"file_path":"/w/a.go"}`)}}
		b.took(c, x.elapsed, x.o)
		kit.Check(t, c.Took == x.want && c.MayWait == x.may && c.Waited == x.waited,
			"%s: %s, waited %s, may wait %v; want %s, %s, %v", name, c.Took, c.Waited, c.MayWait, x.want, x.waited, x.may)
	}
}

// TestDays: where the reader's day changes, the page says so, once.
func TestDays(t *testing.T) {
	at := time.Date(2026, 11, 20, 22, 30, 0, 0, time.UTC)
	for east, want := range map[time.Duration]string{0: "2026-11-20 2026-11-21", 2 * time.Hour: "2026-11-21", -time.Hour: "2026-11-20 2026-11-21"} {
		b := NewBuilder("", Stream{}, Focused)
		b.East = east
		for i := range int64(4) {
			b.push(Item{Line: i, Kind: "answer", Time: at.Add(time.Duration(i) * time.Hour)})
		}
		var days []string
		for _, it := range b.items {
			if it.Kind == "day" {
				days = append(days, it.Who)
			}
		}
		kit.Equal(t, fmt.Sprintf("%s east", east), strings.Join(days, " "), want)
	}
}
