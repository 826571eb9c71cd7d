package transcript_test

import (
	"testing"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/transcript"
)

func TestPromptHeading(t *testing.T) {
	for text, want := range map[string]string{
		"fix the cart":                    "fix the cart",
		"/init":                           "",
		"/ccship:why":                     "",
		"/review 214 and the tests":       "/review 214 and the tests",
		"/usr/lib/cart.so crashes":        "/usr/lib/cart.so crashes",
		"[Image #1]":                      "",
		"[image]":                         "",
		"[Image #1] why is this **red**?": "why is this red?",
		"[Pasted text #1 +20 lines] what is wrong":           "what is wrong",
		"# Count in cents\n\nThe cart rounds `float64`.":     "Count in cents",
		"Please:\n- [ ] fix `cart.go`\n- see [it](http://x)": "Please: fix cart.go see it",
		"> quoted\n\n```go\nfunc main() {}\n```":             "quoted func main() {}",
		"<task><goal>Fix it</goal></task>":                   "Fix it",
		"what does Vec<String> mean, and <div>?":             "what does Vec<String> mean, and <div>?",
		"keep snake_case and __init__":                       "keep snake_case and __init__",
		"2 * 3 is not 5":                                     "2 * 3 is not 5",
	} {
		kit.Equal(t, text, transcript.PromptHeading(text, 300), want)
	}
	got := transcript.PromptHeading("a long **prompt** indeed", 10)
	kit.Check(t, len([]rune(got)) <= 10, "%q", got)
}

func TestPlanHeading(t *testing.T) {
	for plan, want := range map[string]string{
		"## Context\nIt rounds.":                         "",
		"Implement the following plan:\n\n# Cents `now`": "Cents now",
		"# Plan: count in cents\n\n1. a":                 "count in cents",
		"# Plan":                                         "",
		"no heading\n#hashtag":                           "",
	} {
		kit.Equal(t, plan, transcript.PlanHeading(plan, 300), want)
	}
}
