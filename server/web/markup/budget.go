package markup

import (
	"bytes"
	"html/template"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	// pageHTML is how much HTML a page's content may have, in bytes. The frame around it comes on top.
	pageHTML = 3 << 20
	// pageCode is how much code of a page is coloured, in bytes, and codeTime how long that may take.
	pageCode = 96 << 10
	codeTime = 3 * time.Second
	// pageTokens is how many tokens of code a page finds: each takes several hundred bytes.
	pageTokens = 30_000
	// pageMarks is how many characters with a meaning in Markdown a page parses: each may become a node.
	pageMarks = 40_000
	// pageSteps is the work for differences: numbers of four bytes that the comparisons of a page keep.
	pageSteps = 2 << 20
	// pageLines is how many lines the comparisons of a page read.
	pageLines = 100_000
	// pageBlocks is how many blocks of messages a page decodes.
	pageBlocks = 3_000
	// pageEscapes is in how many escapes of JSON a page looks for secrets.
	pageEscapes = 80_000
	// frame is about what a template writes around a piece of content, in bytes.
	frame = 700
)

// Budget is what the content of one page may still take: bytes of HTML, time, and what is kept meanwhile. Everything
// that renders content is a method of it, so nothing can be rendered for which there is no space; what is left out is
// said. For one goroutine.
type Budget struct {
	Cache *Cache // of coloured code; nil: none

	html, code, tokens, marks, steps, lines, blocks, escapes int
	patience                                                 time.Duration
}

// NewBudget returns the budget of a page.
func NewBudget() *Budget {
	return &Budget{html: pageHTML, code: pageCode, tokens: pageTokens, marks: pageMarks,
		steps: pageSteps, lines: pageLines,
		blocks: pageBlocks, escapes: pageEscapes, patience: codeTime}
}

// Half takes half of the space for another part of the page, which neither colours nor parses.
func (p *Budget) Half() *Budget {
	half := &Budget{html: p.html / 2}
	p.html -= half.html
	return half
}

// Left returns how many bytes of HTML there is space for.
func (p *Budget) Left() int { return max(p.html, 0) }

// Piece takes the space for a piece of content in its frame, with texts that a template writes. It reports whether
// there was space for it: if not, the piece is to be left out.
func (p *Budget) Piece(texts ...string) bool {
	if p.html <= 0 {
		return false
	}
	p.html -= frame
	for _, s := range texts {
		p.html -= len(template.HTMLEscapeString(s))
	}
	return p.html > 0
}

// Blocks takes n blocks of a message, and reports whether there is space for more.
func (p *Budget) Blocks(n int) bool {
	p.blocks -= n
	return p.blocks > 0
}

// Escapes takes the escapes of a line, and reports whether the line may be searched for secrets.
func (p *Budget) Escapes(line []byte) bool {
	p.escapes -= bytes.Count(line, []byte{'\\'})
	return p.escapes > 0
}

// Text is as much of s as there is space for, as it is, with what can't be seen made visible: control characters and
// those that turn the direction of text around, with which code can be made to look like other code. left is how many
// bytes of s are left out.
func (p *Budget) Text(s string) (html template.HTML, left int64) {
	o := p.open(len(s))
	n := o.text(s)
	return p.close(o), int64(len(s) - n)
}

// output collects HTML as long as there is space.
type output struct {
	strings.Builder
	room int
	full bool // something was left out
}

// open begins what has about size bytes.
func (p *Budget) open(size int) *output {
	o := &output{room: max(p.html, 0)}
	o.Grow(min(size+size/8, o.room))
	return o
}

func (p *Budget) close(o *output) template.HTML {
	p.html -= o.Len()
	return template.HTML(o.String()) //nolint:gosec // escaped by text
}

// write writes HTML whole, or nothing of it.
func (o *output) write(html string) bool {
	if o.full = o.full || o.Len()+len(html) > o.room; !o.full {
		o.WriteString(html)
	}
	return !o.full
}

// text escapes s for the content of an element, as far as there is space, and returns how much of s that is. It may
// write elements, so it is not for attributes.
func (o *output) text(s string) int {
	start := 0
	for i := 0; i < len(s); {
		n := 1
		var seen string
		if c := s[i]; c < utf8.RuneSelf {
			seen = asciiEscape(c)
		} else {
			seen, n = wideEscape(s[i:])
		}
		if seen != "" {
			if k := o.plain(s[start:i]); k < i-start || !o.write(seen) {
				return start + k
			}
			start = i + n
		}
		i += n
	}
	return start + o.plain(s[start:])
}

// plain writes the beginning of s that there is space for, up to the edge of a character, and returns its length.
func (o *output) plain(s string) int {
	if o.full {
		return 0
	}
	if n := o.room - o.Len(); n < len(s) {
		o.full = true
		for n > 0 && !utf8.RuneStart(s[n]) {
			n--
		}
		s = s[:n]
	}
	o.WriteString(s)
	return len(s)
}

// span writes a text in a span of a class; "" is none. It returns how much of the text it wrote.
func (o *output) span(class, s string) int {
	if class == "" || s == "" {
		return o.text(s)
	}
	const end = "</span>"
	open := `<span class="` + class + `">`
	if o.Len()+len(open)+len(end)+len(s) > o.room {
		o.full = true
	}
	if !o.write(open) {
		return 0
	}
	n := o.text(s)
	o.WriteString(end)
	return n
}
