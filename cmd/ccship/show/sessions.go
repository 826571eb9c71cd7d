package show

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/daemon/amount"
	"github.com/ccship/ccship/daemon/library"
	"github.com/ccship/ccship/daemon/remote"
)

// shortID is how much of an id lists show.
const shortID = 8

// Sessions lists sessions, one a line; more says that there are others.
func (v View) Sessions(items []library.Item, more bool) string {
	items = plain(items)
	if len(items) == 0 {
		return "no sessions\n"
	}
	ids := shortened(items)
	width, project := 0, 0
	for i, s := range items {
		width, project = max(width, len(ids[i])), min(20, max(project, len([]rune(s.Project))))
	}
	var b strings.Builder
	for i, s := range items {
		figures := []string{amount.Counted(s.Messages, "message", "messages"), humanTokens(s.Tokens), money(s.Cost)}
		line := fmt.Sprintf("%s  %s  %s  %s  %s  %s",
			term.Pad(ids[i], width), term.Pad(v.when(s.ChangedAt), 14), term.Pad(s.State, 6),
			term.Pad(term.Cut(term.Printable(s.Project), project), project),
			term.Pad(strings.Join(figures, ", "), 34), term.Cut(term.Printable(s.Title), 100))
		b.WriteString(v.fit(strings.TrimRight(line, " ")) + "\n")
	}
	if more {
		b.WriteString("there are more: --limit, or narrow it with --project, --since or --text\n")
	}
	return b.String()
}

// shortened are ids as long as it takes to tell them apart.
func shortened(items []library.Item) []string {
	out := make([]string, len(items))
	for i, s := range items {
		n := min(shortID, len(s.Session))
		for j, other := range items {
			for i != j && other.Session != s.Session && n < len(s.Session) &&
				strings.HasPrefix(other.Session, s.Session[:n]) {
				n++
			}
		}
		out[i] = term.Printable(s.Session[:n])
	}
	return out
}

// places says where a session is.
var places = map[string]string{
	library.OnDisk: "on disk", library.OnServer: "on the server", library.OnBoth: "on disk and on the server",
}

// Session is what is known of one session, and its last messages.
func (v View) Session(s library.Shown) string {
	s = plain(s)
	var b strings.Builder
	row := func(name, text string) {
		if text = term.Printable(text); text != "" {
			b.WriteString(term.Pad(name, 12) + text + "\n")
		}
	}
	b.WriteString(cmp.Or(term.Printable(s.Title), "(no title)") + "\n\n")
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
	row("used", humanTokens(s.Tokens)+", "+money(s.Cost))
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
			amount.Counted(g.Lines, "line", "lines"), g.RewoundTo,
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
	}
	return kind
}

// Hits are what a search found, the snippets with what matched marked.
func (v View) Hits(hits []remote.Hit, more bool) string {
	hits = plain(hits)
	if len(hits) == 0 {
		return "nothing found\n"
	}
	var b strings.Builder
	last := ""
	for _, h := range hits {
		if h.Session.SessionID != last {
			last = h.Session.SessionID
			line := term.Printable(last) + "  " + term.Printable(h.Session.Project) + "  " + term.Printable(h.Title)
			b.WriteString(v.fit(line) + "\n")
		}
		at := ""
		if h.Time != nil {
			at = h.Time.In(v.Zone).Format("2006-01-02 15:04")
		}
		where := fmt.Sprintf("line %d", h.Line)
		if !h.Current {
			where += fmt.Sprintf(" of generation %d", h.Generation)
		}
		fmt.Fprintf(&b, "  %s  %s  %s\n    %s\n", term.Pad(at, 16), term.Pad(h.Kind, 8), where, v.snippet(h.Snippet))
	}
	if more {
		b.WriteString("there are more: --limit, or narrow it with --project, --session or --since\n")
	}
	return b.String()
}

func (v View) snippet(pieces []remote.Piece) string {
	var b strings.Builder
	for _, p := range pieces {
		text := term.Harmless(p.Text)
		if p.Match {
			text = v.paint(bold, text)
		}
		b.WriteString(text)
	}
	return strings.TrimSpace(b.String())
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
		fmt.Fprintf(&b, "not on disk: %s on the server; `ccship sessions restore SESSION` restores one\n",
			amount.Counted(int64(len(l.Restorable)), "session is", "sessions are"))
	}
	for _, s := range l.Restorable {
		line := fmt.Sprintf("  %s  %s  %s  %s",
			term.Printable(s.Session), v.minute(s.ChangedAt), term.Printable(s.Project), term.Printable(s.Title))
		b.WriteString(v.fit(line) + "\n")
	}
	return b.String()
}
