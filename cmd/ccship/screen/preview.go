package screen

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/daemon/library"
)

// How many lines of a result and of an edit are shown.
const (
	resultLines = 5
	changeLines = 14
	mostChanges = 3
)

// conversation returns what was said at the selected row, in lines of some columns, and the line where the preview
// begins: at what was found, or so that the conversation's end is seen.
func (m *model) conversation(columns int) (lines []string, begin int) {
	r := m.selected()
	if r == nil {
		return nil, 0
	}
	c, known := m.passages[r.key()]
	switch {
	case !known:
		return []string{"reading …"}, 0
	case c.err != nil:
		return wrapped(clean(c.err.Error()), columns), 0
	}
	if words := strings.Join(r.words(), "\n"); c.columns != columns || c.words != words {
		c.draw(r, columns, m.colours)
		c.columns, c.words = columns, words
	}
	begin = c.begin
	if last := max(0, len(c.lines)-m.layout().preview); begin < 0 || begin > last {
		begin = last
	}
	return c.lines, begin
}

// draw writes the conversation at a row in lines of some columns.
func (c *conversation) draw(r *row, columns int, colours bool) {
	w := writer{painter: painter{colours: colours, words: r.words()}, columns: columns}
	c.begin = -1
	for _, p := range c.passages {
		if r.line >= 0 && p.Line <= r.line {
			c.begin = len(w.lines)
		}
		w.passage(&p)
	}
	if len(w.lines) == 0 { // it is no part of the conversation
		for _, line := range wrapped(clean(cmp.Or(r.found(), "nothing was said")), columns) {
			w.add(0, w.line(plain, line))
		}
	}
	c.lines = w.lines
}

// found returns the text in which something was found.
func (r *row) found() string {
	var b strings.Builder
	for _, p := range r.snippet {
		b.WriteString(p.Text)
	}
	return term.OneLine(b.String())
}

// words returns those that were found, in lower case.
func (r *row) words() (words []string) {
	for _, p := range r.snippet {
		if word := strings.ToLower(strings.TrimSpace(p.Text)); p.Match && word != "" && !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	return words
}

// passage writes a message.
func (w *writer) passage(p *library.Passage) {
	switch p.Kind {
	case "result":
		return
	case "user":
		w.speaker("You", added, p.At)
		w.markdown(2, p.Text)
	case "assistant":
		w.speaker("Claude", code, p.At)
		w.markdown(2, p.Text)
	case "tool_start", "tool_complete":
		w.call(p)
		return
	case "error":
		for _, line := range wrapped(clean("error: "+p.Text), w.columns-2) {
			w.add(2, w.line(removed, line))
		}
	default:
		for _, line := range wrapped(clean("— "+p.Kind+": "+p.Text), w.columns) {
			w.add(0, w.line(faint, line))
		}
	}
	w.lines = append(w.lines, "")
}

func (w *writer) speaker(name, style string, at *time.Time) {
	when := ""
	if at != nil {
		when = "  " + at.Local().Format("2 Jan 15:04")
	}
	w.add(0, w.paint(style, name)+w.paint(faint, when))
}

// call writes a tool's call: what it works on in one line, then what it changed, or the beginning of what came out.
func (w *writer) call(p *library.Passage) {
	head, out, _ := strings.Cut(p.Text, "\n")
	style, mark := faint, "· "
	if p.Failed {
		style, mark = removed, "✗ "
	}
	mark += term.Printable(p.Tool) + " "
	w.add(2, w.paint(style, mark)+w.line(faint, cut(clean(head), max(1, w.columns-term.Width(mark)-2))))
	for i, c := range p.Changes {
		if i == mostChanges {
			w.add(4, w.paint(faint, "…"))
			break
		}
		w.change(c)
	}
	if len(p.Changes) == 0 || p.Failed {
		shown := 0
		for line := range strings.SplitSeq(strings.TrimSpace(clean(out)), "\n") {
			if shown == resultLines {
				w.add(4, w.paint(faint, "…"))
				break
			}
			if line != "" {
				w.add(4, w.line(style, cut(line, w.columns-4)))
				shown++
			}
		}
	}
	w.lines = append(w.lines, "")
}

// change writes what an edit took away and what it put there, without the lines that both begin and end with. Of a long
// one both sides are seen.
func (w *writer) change(c library.Change) {
	before, after := linesOf(c.Old), linesOf(c.New)
	for len(before) > 0 && len(after) > 0 && before[0] == after[0] {
		before, after = before[1:], after[1:]
	}
	for len(before) > 0 && len(after) > 0 && before[len(before)-1] == after[len(after)-1] {
		before, after = before[:len(before)-1], after[:len(after)-1]
	}
	w.side(removed, "- ", before, max(changeLines/2, changeLines-len(after)))
	w.side(added, "+ ", after, max(changeLines/2, changeLines-len(before)))
}

// side writes up to so many lines of a side of a change.
func (w *writer) side(style, sign string, lines []string, most int) {
	for i, line := range lines {
		if i == most {
			w.add(4, w.paint(faint, "…"))
			return
		}
		w.add(4, w.line(style, cut(sign+line, w.columns-4)))
	}
}

func linesOf(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(clean(text), "\n"), "\n")
}
