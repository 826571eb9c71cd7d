package show

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/library"
	"github.com/ccship/ccship/daemon/remote"
	"github.com/ccship/ccship/internal/amount"
	"github.com/ccship/ccship/protocol"
)

// Found returns what a search found: sessions, the best first, with the best of their lines.
func (v View) Found(found remote.Ranked) string {
	found = plain(found)
	var b strings.Builder
	for _, note := range found.Notes {
		b.WriteString(v.fit("note: "+term.Printable(note)) + "\n")
	}
	if len(found.Sessions) == 0 {
		return b.String() + "nothing found\n"
	}
	if len(found.Missing) > 0 {
		missing := term.Printable(strings.Join(found.Missing, ", "))
		b.WriteString(v.fit("no session has all words; the best lacks "+missing) + "\n")
	}
	ids := shortened(found.Sessions, func(x *remote.RankedSession) string { return x.Session.SessionID })
	for i := range found.Sessions {
		if b.Len() > 0 {
			b.WriteString("\n")
		}
		v.foundSession(&b, &found.Sessions[i], ids[i])
	}
	if found.Next != nil || found.More {
		count := amount.Counted(found.Total, "session", "sessions")
		if found.More {
			count = "at least " + count
		}
		b.WriteString("\n" + count + ": --limit, or narrow it with project: or after:\n")
	}
	return b.String()
}

// foundSession names a session and shows its lines.
func (v View) foundSession(b *strings.Builder, x *remote.RankedSession, id string) {
	title := x.Title
	if x.Gone != nil {
		title = "only prompts are left of " + *x.Gone
	}
	b.WriteString(v.paint(bold, v.fit(cmp.Or(term.Printable(title), protocol.Untitled))) + "\n")
	parts := []string{id, term.Printable(x.Session.Project), term.Printable(cmp.Or(x.Session.Host, x.Session.Machine)),
		v.when(x.Session.Last)}
	if len(x.Missing) > 0 {
		parts = append(parts, "without "+term.Printable(strings.Join(x.Missing, ", ")))
	}
	parts = slices.DeleteFunc(parts, func(s string) bool { return s == "" })
	b.WriteString(v.fit("  "+strings.Join(parts, "  ")) + "\n")
	for i := range x.Hits {
		b.WriteString(v.hitLine(&x.Hits[i]))
	}
}

// roomy is how many columns a hit needs to say its time: in fewer, what matched would be cut to a few words.
const roomy = 100

// hitLine returns one line: what it is, where it stands, when it was written, and what matched.
func (v View) hitLine(l *protocol.Hit) string {
	at, where := "", fmt.Sprintf("line %d", amount.LineNumber(l.Line))
	if !l.Current {
		where += ", rewound"
	}
	if l.Time != nil {
		at = l.Time.In(v.Zone).Format("01-02 15:04")
	}
	head := "    " + term.Pad(l.Kind, 8) + "  " + term.Pad(where, 10) + "  "
	if v.Columns == 0 || v.Columns >= roomy {
		head += term.Pad(at, 11) + "  "
	}
	room := 0
	if v.Columns > 0 {
		room = max(1, v.Columns-term.Width(head))
	}
	return strings.TrimRight(v.fit(head+v.snippet(within(l.Snippet, room))), " ") + "\n"
}

// within cuts the beginning of a snippet as long as what matched would otherwise not be seen in that many columns. 0:
// any.
func within(pieces []protocol.Piece, room int) []protocol.Piece {
	before, first := 0, slices.IndexFunc(pieces, func(p protocol.Piece) bool { return p.Match })
	if first < 1 || room == 0 {
		return pieces
	}
	for _, p := range pieces[:first+1] {
		before += term.Width(p.Text)
	}
	if before <= room {
		return pieces
	}
	rest := 0
	for _, p := range pieces[first:] {
		rest += term.Width(p.Text)
	}
	lead := []rune(pieces[first-1].Text)
	for len(lead) > 0 && term.Width(string(lead)) > max(room/3, room-rest)-term.Width("… ") {
		lead = lead[1:]
	}
	text := string(lead)
	if _, word, found := strings.Cut(text, " "); found {
		text = word
	}
	return append([]protocol.Piece{{Text: "… " + text}}, pieces[first:]...)
}

// snippet returns a part of a line, on one line, with what matched marked.
func (v View) snippet(pieces []protocol.Piece) string {
	var b strings.Builder
	for _, p := range pieces {
		text := term.Harmless(p.Text)
		if p.Match {
			text = v.paint(bold, v.paint(uneasy, text))
		}
		b.WriteString(text)
	}
	return strings.TrimSpace(b.String())
}

// Timeline lists what happened in a session, one moment a line.
func (v View) Timeline(t library.Timeline) string {
	t = plain(t)
	var b strings.Builder
	day, wide, waits := "", 0, false
	for _, m := range t.Moments {
		wide, waits = max(wide, term.Width(took(&m))), waits || m.MayWait
	}
	for _, m := range t.Moments {
		at := ""
		if !m.At.IsZero() {
			local := m.At.In(v.Zone)
			if d := local.Format("2006-01-02"); d != day {
				day = d
				b.WriteString(d + "\n")
			}
			at = local.Format("15:04:05")
		}
		text := m.Text
		switch {
		case m.From != "" && m.Kind == "prompt":
			text = "(via " + m.From + ") " + text
		case m.From != "":
			text = m.From + ": " + text
		}
		if m.Tool != "" && m.Kind != "prompt" {
			text = strings.TrimSpace(m.Tool + ": " + text)
		}
		if m.Before > 0 {
			text += ", " + humanTokens(m.Before)
			if m.After > 0 {
				text += " → " + humanTokens(m.After)
			}
		}
		line := fmt.Sprintf("  %s  %s  %s  %s", term.Pad(at, 8), term.Pad(string(m.Kind), 10), term.Pad(took(&m), wide),
			term.Cut(term.Printable(text), mostShown))
		b.WriteString(strings.TrimRight(v.fit(line), " ") + "\n")
	}
	if len(t.Moments) == 0 {
		b.WriteString("nothing happened\n")
	}
	if waits {
		b.WriteString(v.fit("≤: it may have waited for you part of that time") + "\n")
	}
	if t.Read < t.Lines {
		fmt.Fprintf(&b, "the server is still reading: %s of %s\n", amount.Count(t.Read),
			amount.Counted(t.Lines, "line", "lines"))
	}
	return b.String()
}

// took says how long a moment took, and how much of it was waiting for the user.
func took(m *library.Moment) string {
	if m.Running {
		return "running"
	}
	var parts []string
	if m.Took > 0 {
		text := span(m.Took)
		if m.MayWait {
			text = "≤ " + text
		}
		parts = append(parts, text)
	}
	if m.Waited >= 1000 {
		parts = append(parts, "waited "+span(m.Waited))
	}
	return strings.Join(parts, ", ")
}

// span returns a number of milliseconds in words.
func span(ms int64) string {
	d := time.Duration(ms) * time.Millisecond
	if d < time.Minute {
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	if d < time.Hour {
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
	}
	return amount.Duration(d)
}

// Census says what is on this disk; "" where nobody has counted.
func (v View) Census(c *control.Census) string {
	if c == nil || c.Sessions == 0 {
		return ""
	}
	text := "on this disk: " + amount.Counted(int64(c.Sessions), "session", "sessions") + " and " +
		amount.Counted(int64(c.Agents), "agent", "agents") + " of " +
		amount.Counted(int64(c.Projects), "project", "projects") + ", " + amount.Size(c.Bytes)
	var largest []string
	for _, p := range c.Largest[:min(len(c.Largest), 3)] {
		largest = append(largest, term.Printable(p.Project)+" ("+amount.Size(p.Bytes)+")")
	}
	if len(largest) > 1 {
		text += "; most of it in " + strings.Join(largest, ", ")
	}
	return term.Hang(text, v.Columns, 2) + "\n"
}
