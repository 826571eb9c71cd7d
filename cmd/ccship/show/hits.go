package show

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/daemon/remote"
	"github.com/ccship/ccship/internal/amount"
)

// linesEach is how many lines of one session are shown when several sessions have some.
const linesEach = 3

// hitLine is a line that was found. A title that Claude Code wrote again and again is one.
type hitLine struct {
	*remote.Hit
	times int
}

// hitGroup is what was found in one session.
type hitGroup struct {
	session *remote.Session
	title   string
	newest  *time.Time
	lines   []hitLine // the best first
}

// Hits are what a search found, newest first, by session: at most limit lines, the best of each session. more says that
// the server has further ones.
func (v View) Hits(hits []remote.Hit, limit int, more bool) string {
	hits = plain(hits)
	if len(hits) == 0 {
		return "nothing found\n"
	}
	groups := grouped(hits)
	full := make([]string, len(groups))
	for i, g := range groups {
		full[i] = g.session.SessionID
	}
	ids, each := shortened(full), linesEach
	if len(groups) == 1 {
		each = limit
	}
	var b strings.Builder
	for i, g := range groups {
		if limit <= 0 {
			more = true
			break
		}
		shown := g.lines[:min(len(g.lines), each, limit)]
		limit -= len(shown)
		if i > 0 {
			b.WriteString("\n")
		}
		v.hitHead(&b, g, ids[i], more)
		for _, l := range shown {
			b.WriteString(v.hitLine(l))
		}
		if rest := len(g.lines) - len(shown); rest > 0 {
			others := fmt.Sprintf("    and %d more: --session %s", rest, pasted(full[i]))
			if len(groups) == 1 {
				others = fmt.Sprintf("    and %d more: --limit", rest)
			}
			b.WriteString(v.paint(faint, v.fit(others)) + "\n")
		}
	}
	if more {
		b.WriteString("\nthere are more: --limit, or narrow it with --project, --session or --since\n")
	}
	return b.String()
}

// hitHead names a session. atLeast: the server may have further lines of it.
func (v View) hitHead(b *strings.Builder, g *hitGroup, id string, atLeast bool) {
	b.WriteString(v.paint(bold, v.fit(cmp.Or(term.Printable(g.title), "(no title)"))) + "\n")
	count := amount.Counted(int64(len(g.lines)), "hit", "hits")
	if atLeast && len(g.lines) > 1 {
		count = fmt.Sprintf("%d+ hits", len(g.lines))
	}
	parts := []string{id, term.Printable(g.session.Project), term.Printable(cmp.Or(g.session.Host, g.session.Machine))}
	if g.newest != nil {
		parts = append(parts, v.when(*g.newest))
	}
	parts = slices.DeleteFunc(append(parts, count), func(s string) bool { return s == "" })
	b.WriteString(v.fit("  "+strings.Join(parts, "  ")) + "\n")
}

// hitLine is one line: what it is, where it stands, when it was written, and what matched.
func (v View) hitLine(l hitLine) string {
	at, where := "", fmt.Sprintf("line %d", amount.LineNumber(l.Line))
	if !l.Current {
		where += fmt.Sprintf(" of generation %d", l.Generation)
	}
	if l.Time != nil {
		at = l.Time.In(v.Zone).Format("01-02 15:04")
	}
	head := "    " + term.Pad(l.Kind, 8) + "  " + term.Pad(where, 10) + "  " + term.Pad(at, 11) + "  "
	if l.times > 1 {
		head += fmt.Sprintf("%d times: ", l.times)
	}
	room := 0
	if v.Columns > 0 {
		room = max(1, v.Columns-term.Width(head))
	}
	return strings.TrimRight(v.fit(head+v.snippet(within(l.Snippet, room))), " ") + "\n"
}

// within cuts the beginning of a snippet as long as what matched would otherwise not be seen in room columns. 0: any.
func within(pieces []remote.Piece, room int) []remote.Piece {
	before, first := 0, slices.IndexFunc(pieces, func(p remote.Piece) bool { return p.Match })
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
	return append([]remote.Piece{{Text: "… " + text}}, pieces[first:]...)
}

// grouped puts hits together by session, in the order of their first hit, the best lines of each first.
func grouped(hits []remote.Hit) []*hitGroup {
	type key struct{ user, machine, session string }
	type words struct {
		key
		text string
	}
	var groups []*hitGroup
	of, titles := map[key]*hitGroup{}, map[words]int{}
	for i := range hits {
		h := &hits[i]
		k := key{h.Session.User, h.Session.Machine, h.Session.SessionID}
		g := of[k]
		if g == nil {
			g = &hitGroup{session: &h.Session, title: cmp.Or(h.Title, h.Prompt), newest: h.Time}
			of[k], groups = g, append(groups, g)
		}
		if h.Kind == "title" {
			text := words{k, spoken(h.Snippet)}
			if at, known := titles[text]; known {
				g.lines[at].times++
				continue
			}
			titles[text] = len(g.lines)
		}
		g.lines = append(g.lines, hitLine{Hit: h, times: 1})
	}
	for _, g := range groups {
		slices.SortStableFunc(g.lines, func(a, b hitLine) int { return rank(a.Kind) - rank(b.Kind) })
	}
	return groups
}

// rank orders kinds of lines by how much they say about a session.
func rank(kind string) int {
	order := []string{"prompt", "message", "answer", "error", "edit", "command", "tool", "result", "thinking", "read"}
	if at := slices.Index(order, kind); at >= 0 {
		return at
	}
	if kind == "title" { // the heading has it
		return len(order) + 1
	}
	return len(order)
}

func spoken(pieces []remote.Piece) string {
	var b strings.Builder
	for _, p := range pieces {
		b.WriteString(p.Text)
	}
	return b.String()
}

// snippet is a part of a line, on one line, with what matched marked.
func (v View) snippet(pieces []remote.Piece) string {
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
