package thread

import (
	"strings"
	"time"

	"github.com/ccship/ccship/server/web/page"
)

const fence = "```"

// typed shows a prompt as it was typed: every line break, space and backslash. Code between fences is coloured.
func (b *Builder) typed(s string) (out []Part) {
	head, more := b.shown(s)
	for head != "" {
		before, language, code, rest, found := fenced(head)
		if !b.budget.Piece() {
			out, more = append(out, Part{Kind: "typed"}), more+int64(len(head))
			break
		}
		if strings.TrimSpace(before) != "" {
			html, left := b.budget.Text(strings.Trim(before, "\n"))
			out, more = append(out, Part{Kind: "typed", HTML: html}), more+left
		}
		if !found {
			break
		}
		html, left := b.budget.Code(code, language)
		out, more = append(out, Part{Kind: "code", HTML: html}), more+left
		head = rest
	}
	if n := len(out); n > 0 {
		out[n-1].More, b.cut = more, b.cut || more > 0
	}
	return out
}

// fenced cuts a text at its first block of code. A fence stands at the beginning of a line, and has an end.
func fenced(s string) (before, language, code, rest string, found bool) {
	open := 0
	if !strings.HasPrefix(s, fence) {
		at := strings.Index(s, "\n"+fence)
		if at < 0 {
			return s, "", "", "", false
		}
		open = at + 1
	}
	first, body, ok := strings.Cut(s[open+len(fence):], "\n")
	if !ok || strings.ContainsAny(first, "`") {
		return s, "", "", "", false
	}
	if strings.HasPrefix(body, fence) {
		_, rest, _ = strings.Cut(body, "\n")
		return s[:open], strings.TrimSpace(first), "", rest, true
	}
	at := strings.Index(body, "\n"+fence)
	if at < 0 {
		return s, "", "", "", false
	}
	_, rest, _ = strings.Cut(body[at+1:], "\n")
	return s[:open], strings.TrimSpace(first), body[:at], rest, true
}

// words returns a text on one line, as a heading has it.
func words(s string) string { return page.OneLine(s, maxWords) }

// day says on which day what follows happened, in the reader's zone, when that is another than before.
func (b *Builder) day(at time.Time, line int64) {
	if at.IsZero() {
		return
	}
	local := at.UTC().Add(b.East)
	if name := local.Format("Monday 2 January 2006"); name != b.today {
		b.today = name
		b.items = append(b.items, Item{Line: line, Kind: "day", Who: local.Format(time.DateOnly), Mark: "-day",
			Parts: []Part{{Kind: "note", Title: name}}})
	}
}
