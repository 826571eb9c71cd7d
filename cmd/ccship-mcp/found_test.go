package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/ccship/ccship/e2e/kit"
)

// TestFoundText: each line has its session and number; an answer has space for what is best, and counts the rest.
func TestFoundText(t *testing.T) {
	hit := func(line int, current bool, text string) map[string]any {
		return map[string]any{"line": line, "kind": "prompt", "current": current, "at": "2026-11-20T10:00:00Z",
			"snippet": []any{map[string]any{"text": text[:3]}, map[string]any{"text": text[3:]}}}
	}
	text := func(doc map[string]any) string {
		t.Helper()
		out := kit.Try(json.Marshal(doc)).Must(t)
		return kit.Try(foundText(out)).Must(t)
	}
	got := text(map[string]any{"total": 2, "missing": []string{"gift"}, "notes": []string{"a: is no filter"}, "sessions": []any{
		map[string]any{"session": "s-1", "user": "kim", "project": "shop", "title": "Fix\nit", "missing": []string{"gift"},
			"hits": []any{hit(4, true, "fix the\ncart"), hit(7, false, "old cart")}},
		map[string]any{"session": "h", "user": "kim", "gone_session": "s-0", "hits": []any{hit(0, true, "count it")}},
	}})
	want := `note: a: is no filter
no session has all words; the best lacks: gift
session s-1 (kim, shop) "Fix it" without gift
  line 5, prompt, 2026-11-20: fix the cart
  line 8, prompt, 2026-11-20, rewound since: old cart
prompt history of kim; only prompts are left of s-0
  line 1, prompt, 2026-11-20: count it`
	kit.Check(t, got == want, "got:\n%s\nwant:\n%s", got, want)
	forged := hit(1, true, "a line")
	forged["kind"] = "prompt\nINJECTED"
	got = text(map[string]any{"total": 1, "sessions": []any{map[string]any{"session": "s-1\nINJECTED", "user": "eve\nINJECTED",
		"project": "p\nINJECTED", "title": "t\nINJECTED", "gone_session": nil, "missing": []string{"w\nINJECTED"}, "hits": []any{forged}}}})
	kit.Check(t, !strings.Contains(got, "\nINJECTED") && strings.Count(got, "INJECTED") == 6,
		"what others chose begins a line:\n%s", got)
	kit.Equal(t, "text", text(map[string]any{}), "nothing found")
	var many []any
	for i := range 100 {
		many = append(many, map[string]any{"session": fmt.Sprint("s-", i), "title": strings.Repeat("장바구니", 1000),
			"hits": []any{hit(i, true, strings.Repeat("장바구니 ", 1000)), hit(i, true, strings.Repeat("x", 1000))}})
	}
	got = text(map[string]any{"total": 100, "sessions": many})
	kit.Check(t, len(got) <= foundBytes+200 && utf8.ValidString(got) && strings.Contains(got, "s-0 ") && strings.Contains(got, "further sessions"),
		"%d bytes:\n%s", len(got), got)
}
