package server

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

var now = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)

// writtenQuery is a query in short: its clauses, what is excluded, filters, times, and how many notes.
func writtenQuery(q Query) string {
	one := func(t QueryTerm) string {
		switch {
		case t.Regexp != nil:
			return "/" + t.Text + "/"
		case t.Exact:
			return "'" + t.Text + "'"
		}
		return t.Text
	}
	var out []string
	for _, c := range q.Clauses {
		alternatives := kit.Each(c, one)
		out = append(out, strings.Join(alternatives, "|"))
	}
	out = append(out, kit.Each(q.Not, func(t QueryTerm) string { return "-" + one(t) })...)
	for _, f := range QueryFilters() {
		if list := q.Only[f.Name]; list != nil {
			out = append(out, f.Name+"="+strings.Join(list, "+"))
		}
	}
	for name, at := range map[string]time.Time{"<": q.Before, ">": q.After} {
		if !at.IsZero() {
			out = append(out, name+at.Format("2006-01-02T15"))
		}
	}
	if n := len(q.Notes); n > 0 {
		out = append(out, fmt.Sprintf("(%d)", n))
	}
	return strings.Join(out, " ")
}

// TestParseQuery reads every form of the language, and what only looks like one as words.
func TestParseQuery(t *testing.T) {
	for text, want := range map[string]string{
		``:                                      ``,
		`  rounding   cart `:                    `rounding cart`,
		`"off by one" cart`:                     `cart 'off by one'`,
		`foo"bar baz"qux`:                       `foo 'bar baz' qux`,
		`“off by one”`:                          `'off by one'`,
		`"never closed cart`:                    `never closed cart (1)`,
		`""`:                                    ``,
		`cart OR basket docs`:                   `cart|basket docs`,
		`a OR "b c" OR /d+/`:                    `a|'b c'|/d+/`,
		`OR cart`:                               `OR cart (1)`,
		`cart OR`:                               `cart OR (1)`,
		`cart OR OR basket`:                     `cart OR OR basket (1)`,
		`cart OR -basket`:                       `cart OR -basket (1)`,
		`cart or basket`:                        `cart or basket`,
		`-docs -"a b" -/x/ cart`:                `cart -docs -'a b' -/x/`,
		`- cart`:                                `- cart`,
		`/retr(y|ies) \d+/ x`:                   `x /retr(y|ies) \d+/`,
		`/a\/b/`:                                `/a/b/`,
		`/usr/local/bin and /etc/`:              `/usr/local/bin and /etc/`,
		`/broken( [a/`:                          `broken a (1)`,
		`project:shop kind:prompt,answer x`:     `x project=shop kind=prompt+answer`,
		`project:"my shop" Project:other`:       `project=my shop+other`,
		`kind:prompt kind:answer kind:prompt`:   `kind=prompt+answer`,
		`is:lost IS:starred`:                    `is=lost+starred`,
		`is:lost,purple`:                        `purple is=lost (1)`,
		`before:2026-11 after:2026-10-05`:       `<2026-11-01T00 >2026-10-05T00`,
		`after:36h`:                             `>2026-11-19T22`,
		`after:1w before:today`:                 `<2026-11-21T00 >2026-11-14T10`,
		`after:tuesday`:                         `tuesday (1)`,
		`after:NaNd`:                            `NaNd (1)`,
		`projekt:shop`:                          `projekt shop (1)`,
		`-project:shop`:                         `project shop (1)`,
		`https://x.y std::vector C:\src error:`: `https://x.y std::vector C:\src error:`,
		`tool:mcp__github__* file:src/cart.go`:  `file=src/cart.go tool=mcp__github__*`,
	} {
		got := strings.Fields(writtenQuery(ParseQuery(text, now)))
		slices.Sort(got)
		expected := strings.Fields(want)
		slices.Sort(expected)
		kit.Equal(t, text, got, expected)
	}
}

// TestParseBounds: a text of any length becomes a query of bounded size, and says so.
func TestParseQueryBounds(t *testing.T) {
	q := ParseQuery(strings.Repeat("word ", 1000)+strings.Repeat("é", 1000), now)
	kit.Check(t, len(q.Clauses) == maxTokens && len(q.Notes) == 1, "%d clauses, notes %q", len(q.Clauses), q.Notes)
	kit.Equal(t, "characters", len([]rune(ParseQuery(strings.Repeat("é", 1000), now).Clauses[0][0].Text)), maxText)
}

// TestEditQuery adds and removes filters as chips do: what is written is read again as what it was.
func TestEditQuery(t *testing.T) {
	text := WithFilter(`rounding "a b"`, "project", "my shop")
	text = WithFilter(WithFilter(text, "kind", "prompt"), "project", "my shop")
	want := `rounding "a b" project:"my shop" kind:prompt`
	kit.Require(t, text == want, "%s, want %s", text, want)
	got := WithoutFilter(text, "project", "my shop")
	kit.Check(t, got == `rounding "a b" kind:prompt`, "%v", got)
	got = WithoutFilter(text+" kind:answer,tool", "kind", "tool")
	kit.Check(t, got == text+" kind:answer", "%v", got)
	got = WithoutFilter(`x kind:answer,tool kind:prompt`, "kind", "")
	kit.Check(t, got == "x", "%v", got)
	for _, value := range []string{"/abs/path.go", ":odd", "a,b", "", "-x", "ü ü"} {
		got := ParseQuery(FormatFilter("project", value), now)
		kit.Check(t, len(got.Notes) == 0 && slices.Equal(got.Only["project"], []string{value}), "%q: %v %q", value, got.Only, got.Notes)
	}
}
