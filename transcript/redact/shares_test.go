package redact

import (
	"maps"
	"math/rand/v2"
	"net/url"
	"slices"
	"testing"

	"github.com/ccship/ccship/transcript/planted"
)

// shown are lines of transcripts in which a text occurs as it is.
var shown = map[string]func(text string) string{
	"prompt": func(s string) string {
		return `{"type":"user","message":{"role":"user","content":` + quote("Look at this:\n"+s+"\nthanks") + `}}`
	},
	"answer": func(s string) string {
		return `{"type":"assistant","message":{"content":[{"type":"text","text":` + quote("Here:\n\n```\n"+s+"\n```\n") + `}]}}`
	},
	"command": func(s string) string { return toolUse("Bash", map[string]any{"command": s, "description": "Run it"}) },
	"output": func(s string) string {
		return `{"type":"user","message":{"content":[{"type":"tool_result","content":` + quote("$ run\n"+s+"\n") +
			`}]},"toolUseResult":{"stdout":` + quote(s) + `,"stderr":"","interrupted":false}}`
	},
	"write": func(s string) string {
		return toolUse("Write", map[string]any{"file_path": "/w/x", "content": "first\n" + s + "\nlast\n"})
	},
	"edit": func(s string) string {
		return toolUse("Edit", map[string]any{"file_path": "/w/x", "old_string": "x", "new_string": s})
	},
	"JSON in a result": func(s string) string { return result(quote(map[string]any{"ok": true, "body": s})) },
	"diff":             func(s string) string { return result("@@ -1 +1 @@\n-old\n" + eachLine(s, numbered["diff -u"])) },
	"percent-encoded":  func(s string) string { return result("GET /log?line=" + url.QueryEscape(s) + " 200") },
	"Read":             func(s string) string { return result(eachLine("one\n"+s+"\nlast", numbered["Read"])) },
	"Read, newer":      func(s string) string { return result(eachLine("one\n"+s+"\nlast", numbered["Read, newer"])) },
	"cat -n":           func(s string) string { return result(eachLine("one\n"+s+"\nlast", numbered["cat -n"])) },
	"grep -n":          func(s string) string { return result(eachLine("one\n"+s+"\nlast", numbered["grep -n"])) },
	"grep -rn":         func(s string) string { return result(eachLine(s, numbered["grep -rn"])) },
}

// asNumbered are the places that must show no more than plain ones.
var asNumbered = []string{"Read", "Read, newer", "cat -n", "grep -n", "grep -rn"}

func toolUse(name string, input map[string]any) string {
	return `{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t","name":"` + name + `","input":` + quote(input) + `}]}}`
}

func result(text string) string {
	return `{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t","content":` + quote(text) + `}]}}`
}

// TestShares demands that of all shapes in all places a share is masked, by class, and that what numbers its lines
// shows nothing that is masked elsewhere.
func TestShares(t *testing.T) {
	t.Parallel()
	m, r := masker(t), rand.New(rand.NewPCG(11, 12))
	shapes := planted.Shapes()
	tried, found := map[planted.Class]int{}, map[planted.Class]int{}
	for _, s := range shapes {
		var missed []string
		text, secret := s.Make(r)
		for _, place := range slices.Sorted(maps.Keys(shown)) {
			in := shown[place](text)
			out, _ := m.Line([]byte(in))
			check(t, m, in, string(out))
			tried[s.Class]++
			if !leaks(string(out), secret) {
				found[s.Class]++
				continue
			}
			missed = append(missed, place)
			if testing.Verbose() {
				t.Logf("%s in %s: %s", s.Name, place, out)
			}
		}
		if len(missed) > 0 {
			t.Logf("%s: %s: missed in %q", s.Class, s.Name, missed)
			for _, place := range missed {
				if slices.Contains(asNumbered, place) && !slices.Contains(missed, "prompt") {
					t.Errorf("%s is masked in a prompt, but not by %s", s.Name, place)
				}
			}
		}
	}
	for class, least := range map[planted.Class]float64{planted.Tokens: 0.98, planted.Files: 0.95, planted.Commands: 0.9} {
		share := float64(found[class]) / float64(tried[class])
		t.Logf("%s: %d of %d, %.1f %%", class, found[class], tried[class], 100*share)
		if share < least {
			t.Errorf("%s: %.3f is masked, want %.2f", class, share, least)
		}
	}
	if len(shapes) < 300 {
		t.Errorf("%d shapes", len(shapes))
	}
	t.Logf("%d shapes in %d places", len(shapes), len(shown))
}
