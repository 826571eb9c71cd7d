package show

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/internal/amount"
	"github.com/ccship/ccship/transcript"
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
	return strings.TrimSpace(cmp.Or(m.ToolName, "?") + " " + transcript.ToolSummary(m.ToolName, m.ToolInput, 0))
}

// Checkpoints are checkpoints, one a line.
func (v View) Checkpoints(l control.Checkpoints) string {
	if len(l.Checkpoints) == 0 {
		return "no checkpoints\n"
	}
	var table [][]string
	for _, c := range l.Checkpoints {
		table = append(table, []string{term.Printable(c.ID), v.when(c.CreatedAt), term.Printable(c.TriggerType),
			usedOf(c.TokensUsed, c.TokenBudget), term.Printable(c.SessionID[:min(shortID, len(c.SessionID))]),
			term.Cut(term.Printable(lastPrompt(c.Summary)), 100)})
	}
	return v.table("<<<><<", table) + more(l.Next)
}

// more says that there is more, from an offset on.
func more(next int) string {
	if next == 0 {
		return ""
	}
	return fmt.Sprintf("there are more: --offset %d\n", next)
}

// usedOf is how much of a budget is in use.
func usedOf(used, budget int64) string {
	switch {
	case used <= 0:
		return "not known"
	case budget <= 0:
		return shortTokens(used)
	}
	return fmt.Sprintf("%d %% of %s", used*100/budget, shortTokens(budget))
}

// lastPrompt is the prompt that a checkpoint's summary names; else the summary's first line.
func lastPrompt(summary string) string {
	for line := range strings.Lines(summary) {
		if text, ok := strings.CutPrefix(line, "Prompt: "); ok {
			return text
		}
	}
	first, _, _ := strings.Cut(summary, "\n")
	return first
}

// Checkpoint is one checkpoint in full.
func (v View) Checkpoint(answer control.CheckpointAnswer) string {
	c := answer.Checkpoint
	var b strings.Builder
	row := rows(&b)
	row("checkpoint", c.ID)
	row("session", c.SessionID)
	row("port", c.PortID)
	row("made", c.CreatedAt.In(v.Zone).Format(time.DateTime)+", "+c.TriggerType)
	used := usedOf(c.TokensUsed, c.TokenBudget)
	if c.TokensUsed > 0 {
		used = amount.Count(c.TokensUsed) + " tokens, " + used
	}
	row("in use", used)
	row("context", c.ContextHash)
	if c.Summary != "" {
		b.WriteString("\n")
	}
	for line := range strings.Lines(c.Summary) {
		b.WriteString("  " + term.Printable(line) + "\n") // set in, so that it cannot pass for a line of ours
	}
	if len(c.ActiveFiles) > 0 {
		b.WriteString("\nfiles\n")
	}
	for _, f := range c.ActiveFiles {
		b.WriteString("  " + term.Printable(f) + "\n")
	}
	return b.String()
}

// Budgets are token budgets, one a line, with where each comes from.
func (v View) Budgets(l control.Budgets) string {
	l = plain(l)
	if len(l.Budgets) == 0 {
		return "no budget set or learned yet\n"
	}
	var b strings.Builder
	for _, x := range l.Budgets {
		name := cmp.Or(x.Session, x.Model)
		line := fmt.Sprintf("%s  %s tokens: %s", term.Pad(term.Printable(name), 24), amount.Count(x.Limit), budgetSource(x))
		if x.Session != "" && x.Used > 0 && x.Limit > 0 {
			line += fmt.Sprintf("; %s in use, %d %%", amount.Count(x.Used), x.Used*100/x.Limit)
		}
		b.WriteString(v.fit(line) + "\n")
	}
	return b.String()
}

// budgetSource is how a limit is known.
func budgetSource(x control.Budget) string {
	window := "a window of " + amount.Count(x.Window)
	switch x.Source {
	case "configured":
		return "set by you"
	case "learned":
		return "where other sessions with " + term.Printable(x.Model) + " compacted"
	case "boundary":
		return "where it compacted"
	case "seen":
		return window + ", for more than 200 000 were in use"
	case "model":
		return window + ", the model's"
	}
	return window + ", assumed"
}

// Documents returns a session's linked documents, one a line.
func (v View) Documents(list control.Documents) string {
	list = plain(list)
	if len(list.Documents) == 0 {
		return "nothing is linked\n"
	}
	var table [][]string
	for _, d := range list.Documents {
		table = append(table, []string{term.Cut(term.Printable(d.Path), 48), v.document(d)})
	}
	return v.table("<<", table)
}

// document returns what is known of one.
func (v View) document(d control.Document) string {
	size := amount.Size(d.Size)
	switch {
	case d.Deleted:
		size = "deleted"
	case d.TooLarge:
		size += ", too large to send"
	}
	parts := []string{amount.Counted(d.Version, "version", "versions"), "changed " + v.when(d.ChangedAt), size}
	if d.Problem != "" {
		parts = append(parts, term.Printable(d.Problem))
	}
	return strings.Join(parts, ", ")
}
