package thread

import (
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
