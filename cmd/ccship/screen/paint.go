package screen

import (
	"strings"
	"unicode"

	"github.com/ccship/ccship/cmd/ccship/term"
)

// The colours, by meaning.
const (
	plain   = ""
	bold    = "1"
	faint   = "2"
	removed = "31"
	added   = "32"
	match   = "1;33"
	code    = "36"
	picked  = "7"
)

// painter writes lines in colour, or without any.
type painter struct {
	colours bool
	words   []string // that are marked, in lower case
	bold    bool     // a text of Markdown is within ** or `
	code    bool
}

// cell is a character and how it looks.
type cell struct {
	r     rune
	style string
}

// paint returns a text in one colour.
func (p *painter) paint(style, text string) string {
	if !p.colours || style == plain || text == "" {
		return text
	}
	return "\x1b[" + style + "m" + text + "\x1b[0m"
}

// line returns a text in a colour, with the words that are looked for marked.
func (p *painter) line(style, text string) string {
	cells := make([]cell, 0, len(text))
	for _, r := range text {
		cells = append(cells, cell{r, style})
	}
	return p.draw(cells)
}

// inline returns a line of Markdown in a colour: bold and code as such. A line may begin within them.
func (p *painter) inline(style, text string) string {
	cells := make([]cell, 0, len(text))
	for at, r := range text {
		switch {
		case r == '`':
			p.code = !p.code
			if p.colours {
				continue
			}
		case r == '*' && !p.code && strings.HasPrefix(text[at:], "**"):
			p.bold = !p.bold
			continue
		case r == '*' && !p.code && at > 0 && text[at-1] == '*':
			continue
		}
		look := style
		if p.code {
			look = code
		} else if p.bold {
			look = bold
		}
		cells = append(cells, cell{r, look})
	}
	return p.draw(cells)
}

// draw writes cells, those alike together.
func (p *painter) draw(cells []cell) string {
	p.mark(cells)
	var b, run strings.Builder
	style := plain
	for _, c := range cells {
		if c.style != style {
			b.WriteString(p.paint(style, run.String()))
			run.Reset()
			style = c.style
		}
		run.WriteRune(c.r)
	}
	b.WriteString(p.paint(style, run.String()))
	return b.String()
}

// mark gives the words that are looked for their colour.
func (p *painter) mark(cells []cell) {
	if !p.colours {
		return
	}
	for _, w := range p.words {
		word := []rune(w)
		for at := 0; at+len(word) <= len(cells); at++ {
			n := 0
			for n < len(word) && unicode.ToLower(cells[at+n].r) == word[n] {
				n++
			}
			for i := range n {
				if n == len(word) {
					cells[at+i].style = match
				}
			}
		}
	}
}

// clean returns a text whose lines a screen may show, regardless of who wrote it.
func clean(text string) string {
	return strings.ReplaceAll(term.Safe(unescaped(text), false), "\t", "    ")
}

// unescaped returns the output of a program without its escape sequences, whose letters would be left otherwise.
func unescaped(text string) string {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(text, "\x1b")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		text = after
		switch {
		case strings.HasPrefix(after, "["): // to its final letter
			if end := strings.IndexFunc(after[1:], func(r rune) bool { return r >= '@' && r <= '~' }); end >= 0 {
				text = after[end+2:]
			}
		case strings.HasPrefix(after, "]"): // to a bell, or to ESC \, whose ESC is the next
			if end := strings.IndexAny(after, "\a\x1b"); end >= 0 {
				text = strings.TrimPrefix(after[end:], "\a")
			}
		case strings.HasPrefix(after, "\\"):
			text = after[1:]
		}
	}
}

// wrapped breaks lines between words, and words that are too long.
func wrapped(text string, columns int) (lines []string) {
	columns = max(columns, 8)
	for paragraph := range strings.SplitSeq(text, "\n") {
		for _, line := range term.Wrap(paragraph, columns) {
			for term.Width(line) > columns {
				head := cut(line, columns)
				if head == "" {
					break
				}
				lines = append(lines, head)
				line = line[len(head):]
			}
			lines = append(lines, line)
		}
	}
	return lines
}
