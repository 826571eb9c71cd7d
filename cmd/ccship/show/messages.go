package show

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/internal/amount"
)

// mostShown is how many columns of a message are shown where there is no terminal.
const mostShown = 400

// Messages are the messages kept of a session, one a line, below its title.
func (v View) Messages(m control.Messages) string {
	m = plain(m)
	var b strings.Builder
	if m.Title != "" {
		b.WriteString(v.fit(term.Cut(term.Printable(m.Title), mostShown)) + "\n\n")
	}
	for i := range m.Messages {
		b.WriteString(v.Message(&m.Messages[i]))
	}
	switch more := m.Total - m.Offset - len(m.Messages); {
	case m.Total == 0:
		b.WriteString("no messages\n")
	case more > 0:
		fmt.Fprintf(&b, "there are %s: --limit, or --offset %d\n", amount.Counted(int64(more), "older one", "older ones"),
			m.Offset+len(m.Messages))
	}
	return b.String()
}

// Message is one message, in one line.
func (v View) Message(m *control.Message) string {
	m = plain(m)
	at := ""
	if m.Timestamp > 0 {
		at = time.UnixMilli(m.Timestamp).In(v.Zone).Format("15:04")
	}
	who, colour, text := describeMessage(m)
	line := fmt.Sprintf("%s  %s  %s", term.Pad(at, 5), term.Pad(who, 6), term.Cut(term.Printable(text), mostShown))
	line = strings.TrimRight(v.fit(line), " ")
	if v.Colours && len(line) > 13 && strings.HasPrefix(line[7:], who) {
		line = line[:7] + v.paint(colour, line[7:13]) + line[13:]
	}
	return line + "\n"
}

// describeMessage says who speaks, in which colour, and what.
func describeMessage(m *control.Message) (who, colour, text string) {
	switch m.Type {
	case "tool_start":
		if text = toolCall(m) + " …"; m.Aborted {
			text = toolCall(m) + " (stopped)"
		}
		return "tool", busy, text
	case "tool_complete":
		if m.Error != nil {
			return "tool", bad, toolCall(m) + " ✗ " + *m.Error
		}
		return "tool", busy, toolCall(m) + " → " + m.Output
	case "error":
		return "error", bad, m.Content
	case "result":
		return "turn", faint, describeTurn(m)
	case "compaction":
		return "—", faint, describeCompaction(m)
	case "cleared":
		return "—", faint, "context cleared; the conversation goes on"
	case "interrupted":
		return "—", faint, "interrupted by the user"
	case "message":
		return "other", faint, m.From + ": " + m.Content
	}
	if m.Role == "assistant" {
		return "claude", good, m.Content
	}
	if m.From != "" {
		return m.Role, bold, "(via " + m.From + ") " + m.Content
	}
	return m.Role, bold, m.Content
}

// describeTurn is a turn's time and tokens. The input is distinguished by what it costs.
func describeTurn(m *control.Message) string {
	text := fmt.Sprintf("%.1f s, %s in", m.Duration, humanTokens(m.InputTokens))
	var parts []string
	for _, p := range []struct {
		tokens int64
		name   string
	}{{m.NewTokens, "new"}, {m.CacheWrite, "cache write"}, {m.CacheRead, "cache read"}} {
		if p.tokens > 0 {
			parts = append(parts, shortTokens(p.tokens)+" "+p.name)
		}
	}
	if len(parts) > 0 {
		text += " (" + strings.Join(parts, ", ") + ")"
	}
	text += fmt.Sprintf(", %d out", m.OutputTokens)
	if m.Interrupted {
		text += ", interrupted"
	}
	return text
}

// describeCompaction is a compaction with the tokens in use before and after, as far as they are recorded.
func describeCompaction(m *control.Message) string {
	text := "conversation compacted"
	if m.Trigger == "auto" {
		text = "conversation auto-compacted"
	}
	if m.TokensBefore > 0 {
		text += " at " + humanTokens(m.TokensBefore)
		if m.TokensAfter > 0 {
			text += ", " + humanTokens(m.TokensAfter) + " left"
		}
	}
	return text
}

// toolCall is a call in short: its tool, and what it works on.
func toolCall(m *control.Message) string {
	return strings.Join(append([]string{cmp.Or(m.ToolName, "?")}, values(m.ToolInput)...), " ")
}

// values are those of an object's members, in their order.
func values(object json.RawMessage) (texts []string) {
	d := json.NewDecoder(bytes.NewReader(object))
	if _, err := d.Token(); err != nil {
		return nil
	}
	for d.More() {
		var value json.RawMessage
		if _, err := d.Token(); err != nil || d.Decode(&value) != nil {
			break
		}
		var text string
		if json.Unmarshal(value, &text) != nil {
			text = string(value)
		}
		texts = append(texts, text)
	}
	return texts
}
