package web

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ccship/ccship/server"
)

const (
	// maxDecode is the longest line that is decoded for show.
	maxDecode = 1 << 20
	maxText   = 4000 // bytes of one part
	maxTitle  = 120
)

// item is one line as the page shows it.
type item struct {
	Line  int64
	Type  string
	Role  string // "user", "assistant", or "" for what is not conversation
	Time  time.Time
	Size  int64
	Parts []part
}

// part is a piece of a message. Folded ones are shown on demand.
type part struct {
	Label  string
	Text   string
	Folded bool
}

// record is as much of a record as is shown. What it does not fit is shown raw.
type record struct {
	Type      string          `json:"type"`
	Timestamp string          `json:"timestamp"`
	IsMeta    bool            `json:"isMeta"`
	Summary   string          `json:"summary"`
	Title     string          `json:"title"`
	AITitle   string          `json:"aiTitle"`
	Custom    string          `json:"customTitle"`
	Display   string          `json:"display"` // history
	Message   json.RawMessage `json:"message"`
}

type message struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

// decode reads what it can of a line; false when that is nothing. A member of another kind than expected is left out.
func decode(l server.Line) (rec record, msg message, ok bool) {
	if l.Kind != server.Object || len(l.Raw) > maxDecode {
		return rec, msg, false
	}
	if err := json.Unmarshal(l.Raw, &rec); err != nil {
		if _, other := errors.AsType[*json.UnmarshalTypeError](err); !other {
			return rec, msg, false
		}
	}
	_ = json.Unmarshal(rec.Message, &msg) // a message of another shape is shown raw
	return rec, msg, true
}

type block struct {
	Type     string          `json:"type"`
	Text     string          `json:"text"`
	Thinking string          `json:"thinking"`
	Name     string          `json:"name"`
	Input    json.RawMessage `json:"input"`
	Content  json.RawMessage `json:"content"`
}

// describe makes an item of a line, whatever it holds.
func describe(l server.Line) item {
	it := item{Line: l.Index, Type: l.Kind.String(), Size: int64(len(l.Raw))}
	rec, msg, ok := decode(l)
	if !ok {
		if len(l.Raw) > 0 {
			it.Parts = []part{{Label: "bytes", Text: cut(string(l.Raw), maxText), Folded: true}}
		}
		return it
	}
	it.Type = rec.Type
	it.Time, _ = time.Parse(time.RFC3339, rec.Timestamp) // none is shown for what is no time
	if it.Type == "" {
		it.Type = "record"
	}
	if it.Parts = parts(msg.Content); len(it.Parts) > 0 && !rec.IsMeta {
		it.Role = msg.Role
		return it
	}
	if s := firstOf(rec.Summary, rec.Title, rec.AITitle, rec.Custom, rec.Display); s != "" {
		it.Parts = []part{{Text: cut(s, maxText)}}
		return it
	}
	it.Parts = []part{{Label: "record", Text: cut(string(l.Raw), maxText), Folded: true}}
	return it
}

// parts reads a message's content: a string or a list of blocks.
func parts(content json.RawMessage) []part {
	var text string
	if json.Unmarshal(content, &text) == nil {
		if text == "" {
			return nil
		}
		return []part{{Text: cut(text, maxText)}}
	}
	var blocks []block
	if json.Unmarshal(content, &blocks) != nil {
		return nil
	}
	var out []part
	for _, b := range blocks {
		switch b.Type {
		case "text":
			out = append(out, part{Text: cut(b.Text, maxText)})
		case "thinking":
			out = append(out, part{Label: "thinking", Text: cut(b.Thinking, maxText), Folded: true})
		case "tool_use":
			out = append(out, part{Label: "tool: " + b.Name, Text: cut(string(b.Input), maxText), Folded: true})
		case "tool_result":
			out = append(out, part{Label: "result", Text: resultText(b.Content), Folded: true})
		default:
			out = append(out, part{Label: firstOf(b.Type, "block")})
		}
	}
	return out
}

func resultText(content json.RawMessage) string {
	inner := parts(content)
	texts := make([]string, 0, len(inner))
	for _, p := range inner {
		texts = append(texts, p.Text)
	}
	return cut(strings.Join(texts, "\n"), maxText)
}

// titleOf is the title that a line gives its session: one it names, or the first thing a human said.
func titleOf(l server.Line) string {
	rec, msg, ok := decode(l)
	if !ok {
		return ""
	}
	if s := firstOf(rec.Custom, rec.AITitle, rec.Summary, rec.Display); s != "" {
		return oneLine(s)
	}
	if rec.Type != "user" || rec.IsMeta {
		return ""
	}
	for _, p := range parts(msg.Content) {
		// Text in angle brackets is put there by Claude Code: commands, reminders, caveats.
		if p.Label == "" && p.Text != "" && !strings.HasPrefix(p.Text, "<") {
			return oneLine(p.Text)
		}
	}
	return ""
}

func oneLine(s string) string { return cut(strings.Join(strings.Fields(s), " "), maxTitle) }

func firstOf(list ...string) string {
	for _, s := range list {
		if s != "" {
			return s
		}
	}
	return ""
}

// cut shortens s to about n bytes, at a character's edge, and says so.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + fmt.Sprintf("… (%s more)", size(int64(len(s)-n)))
}
