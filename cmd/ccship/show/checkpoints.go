package show

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/internal/amount"
)

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
