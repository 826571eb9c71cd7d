package show

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/daemon/library"
	"github.com/ccship/ccship/daemon/remote"
	"github.com/ccship/ccship/internal/amount"
	"github.com/ccship/ccship/protocol"
)

// Sessions lists sessions, one a line; more says that there are others.
func (v View) Sessions(items []library.Item, more bool) string {
	items = plain(items)
	if len(items) == 0 {
		return "no sessions\n"
	}
	ids := shortened(items, func(s *library.Item) string { return s.Session })
	table := make([][]string, len(items))
	for i, s := range items {
		project := term.Cut(term.Printable(s.Project), 20)
		table[i] = slices.Concat([]string{ids[i], v.when(s.ChangedAt), cmp.Or(saved[s.State], unknown), project},
			figures(&s), []string{term.Cut(cmp.Or(term.Printable(s.Title), protocol.Untitled), 100)})
	}
	text := v.table(squeezed("<<<<>>><", table, v.Columns, []int{5, 4, 2, 6, 3}))
	if more {
		text += "there are more: --limit, or narrow it with --project, --since or words\n"
	}
	return text
}

// figures are a session's messages, tokens and cost, as far as they are known.
func figures(s *library.Item) []string {
	switch s.Counts {
	case library.Reading:
		return []string{"indexing", unknown, unknown}
	case library.Unknown:
		return []string{unknown, unknown, unknown}
	}
	return []string{amount.Counted(s.Messages, "message", "messages"), humanTokens(s.Tokens), atLeast(s.Cost, s.Unpriced)}
}

// saved says whether the server has a session. Where the server was not asked, there is no state.
var saved = map[string]string{
	library.OnDisk: "local only", library.OnServer: "server only", library.OnBoth: "saved",
}

// places says where a session is.
var places = map[string]string{
	library.OnDisk: "on disk", library.OnServer: "on the server", library.OnBoth: "on disk and on the server",
}

// Session is what is known of one session, and its last messages.
func (v View) Session(s library.Shown) string {
	s = plain(s)
	var b strings.Builder
	row := rows(&b)
	b.WriteString(cmp.Or(term.Printable(s.Title), protocol.Untitled) + "\n\n")
	row("session", s.Session)
	row("project", strings.TrimSpace(s.Project+"  "+s.Cwd))
	row("machine", strings.TrimSpace(s.Host+"  "+s.Machine))
	row("where", places[s.State])
	row("file", s.Path)
	if s.StartedAt != nil {
		row("started", s.StartedAt.In(v.Zone).Format(time.DateTime))
	}
	row("changed", s.ChangedAt.In(v.Zone).Format(time.DateTime))
	row("model", s.Model)
	row("branch", s.Branch)
	row("size", strings.Join([]string{
		amount.Counted(s.Lines, "line", "lines"), amount.Size(s.Bytes),
		amount.Counted(s.Messages, "message", "messages"), amount.Counted(int64(s.Agents), "agent", "agents"),
	}, ", "))
	row("used", used(&s.Item))
	row("forked from", s.ForkedFrom)
	if r := s.Retention; r != nil {
		row("policy", v.retention(r))
	}
	if len(s.Generations) > 1 {
		b.WriteString(v.generations(s))
	}
	if len(s.Last) > 0 {
		b.WriteString("\n")
	}
	for _, m := range s.Last {
		if m.Kind == "result" {
			continue // of use to programs
		}
		at := ""
		if m.At != nil {
			at = m.At.In(v.Zone).Format("15:04")
		}
		line := term.Pad(at, 5) + "  " + term.Pad(speaker(m.Kind), 9) + "  " + term.Cut(term.Printable(m.Text), 400)
		b.WriteString(v.fit(line) + "\n")
	}
	return b.String()
}

// retention says what the server's policy did to a session, and what it will do.
func (v View) retention(r *remote.Retention) string {
	var all []string
	lines := amount.Counted(r.Lines, "line", "lines")
	switch {
	case r.Lines > 0 && r.RetiredAt != nil:
		all = append(all, fmt.Sprintf("retired on %s (%s), %s", r.RetiredAt.In(v.Zone).Format(time.DateTime), r.Rule, lines))
	case r.Lines > 0:
		all = append(all, lines+" of earlier versions retired")
	}
	switch {
	case r.DueAt != nil:
		all = append(all, fmt.Sprintf("due on %s (%s)", r.DueAt.In(v.Zone).Format(time.DateTime), r.DueRule))
	case r.Kept != "":
		all = append(all, "kept: "+r.Kept)
	}
	return strings.Join(all, "; ")
}

// used is a session's tokens and their cost.
func used(s *library.Item) string {
	text := humanTokens(s.Tokens) + ", no price"
	if s.Cost != nil {
		text = humanTokens(s.Tokens) + ", " + atLeast(s.Cost, s.Unpriced)
	}
	if s.Agents > 0 {
		text += ", with its agents"
	}
	if s.Counts == library.Reading {
		text += " so far; the server is still reading"
	}
	return text
}

func (v View) generations(s library.Shown) string {
	var b strings.Builder
	for i, g := range s.Generations {
		name, mark := "", ""
		if i == 0 {
			name = "generations"
		}
		if g.Generation == s.Generation {
			mark = "  ← shown"
		}
		fmt.Fprintf(&b, "%s%d: %s, from line %d, %s%s\n", term.Pad(name, 12), g.Generation,
			amount.Counted(g.Lines, "line", "lines"), amount.LineNumber(g.RewoundTo),
			g.ReceivedAt.In(v.Zone).Format(time.DateTime), mark)
	}
	return b.String()
}

// speaker is who a message is from.
func speaker(kind string) string {
	switch kind {
	case "assistant":
		return "claude"
	case "tool_start":
		return "tool"
	case "tool_complete":
		return "result"
	case "result":
		return "turn"
	case "compaction":
		return "compacted"
	case "interrupted":
		return "stopped"
	}
	return kind
}

// Lost lists sessions that are gone from this machine.
func (v View) Lost(l library.Lost) string {
	l = plain(l)
	var b strings.Builder
	if len(l.Gone)+len(l.Restorable) == 0 {
		return "nothing is lost: every session that the prompt history names is on disk or on the server\n"
	}
	if len(l.Gone) > 0 {
		fmt.Fprintf(&b, "gone: %s only in the prompt history\n",
			amount.Counted(int64(len(l.Gone)), "session is", "sessions are"))
	}
	for _, g := range l.Gone {
		fmt.Fprintf(&b, "  %s  %s  %s to %s\n", term.Printable(g.Session), term.Printable(g.Project), v.minute(g.First),
			v.minute(g.Last))
		for _, p := range g.Prompts {
			b.WriteString(v.fit(fmt.Sprintf("    %s  %s", v.minute(p.At), term.Cut(term.Printable(p.Text), 300))) + "\n")
		}
		if more := g.Count - len(g.Prompts); more > 0 {
			fmt.Fprintf(&b, "    and %s\n", amount.Counted(int64(more), "more prompt", "more prompts"))
		}
	}
	if len(l.Restorable) > 0 {
		fmt.Fprintf(&b, "not on disk: %s on the server; `ccship restore SESSION` restores one\n",
			amount.Counted(int64(len(l.Restorable)), "session is", "sessions are"))
	}
	for _, s := range l.Restorable {
		line := fmt.Sprintf("  %s  %s  %s  %s",
			term.Printable(s.Session), v.minute(s.ChangedAt), term.Printable(s.Project), term.Printable(s.Title))
		b.WriteString(v.fit(line) + "\n")
	}
	return b.String()
}
