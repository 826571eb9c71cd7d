package show

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/ccship/ccship/cmd/ccship/term"
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
