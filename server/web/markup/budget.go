package markup

import (
	"bytes"
	"encoding/json"
	"hash/maphash"
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

// nothing stands for a blank line, which Tally does not count.
const nothing uint64 = 0

var seed = maphash.MakeSeed()

// Sum stands for a line among those of a comparison. It is another number the next time that the program runs.
func Sum(line []byte) uint64 {
	if len(bytes.TrimSpace(line)) == 0 {
		return nothing
	}
	return maphash.Bytes(seed, line)
}

// NewSum makes the Sum of a line that is not blank and comes in pieces.
func NewSum() (h maphash.Hash) {
	h.SetSeed(seed)
	return h
}

// Tally says how many lines of a are removed in b and how many of b are added: those that the other side has nowhere.
// moved is how many of a the other side has in another place. edits is what Compare found.
func Tally(a, b []uint64, edits []Edit) (removed, added, moved int64) {
	inA, inB := contents(a), contents(b)
	for _, e := range edits {
		if e.Op == Same {
			continue
		}
		for _, x := range a[e.A:e.AEnd] {
			switch {
			case x == nothing:
			case inB[x]:
				moved++
			default:
				removed++
			}
		}
		for _, x := range b[e.B:e.BEnd] {
			if x != nothing && !inA[x] {
				added++
			}
		}
	}
	return removed, added, moved
}

func contents(lines []uint64) map[uint64]bool {
	in := make(map[uint64]bool, len(lines))
	for _, x := range lines {
		in[x] = true
	}
	return in
}

// maxIndent is how deep values are indented. What is nested deeper stays on one line: indented, it would grow with the
// square of its depth.
const maxIndent = 32

// JSON returns a value indented and coloured, or the text as it is when it is none or is longer than limit bytes. left
// is how many bytes are left out.
func (p *Budget) JSON(raw []byte, limit int) (html template.HTML, left int64) {
	if len(raw) > limit || !json.Valid(raw) {
		text := string(raw[:min(len(raw), limit)])
		html, left = p.Text(text)
		return html, left + int64(len(raw)-len(text))
	}
	o := p.open(2 * len(raw))
	done := o.indent(string(raw))
	return p.close(o), int64(len(raw) - done)
}

// indent writes a valid value with its members on lines of their own, as far as there is space, and returns how much of
// it that is.
func (o *output) indent(s string) int {
	depth := 0
	line := func() { o.write("\n" + strings.Repeat("  ", depth)) }
	i := 0
	for i < len(s) && !o.full {
		switch c := s[i]; c {
		case ' ', '\t', '\r', '\n':
			i++
		case '{', '[':
			o.write(s[i : i+1])
			if i++; skipBlank(s, i) < len(s) && s[skipBlank(s, i)] == c+2 { // nothing is in it
				i = skipBlank(s, i) + 1
				o.write(string(rune(c + 2)))
			} else if depth++; depth <= maxIndent {
				line()
			}
		case '}', ']':
			if depth--; depth < maxIndent {
				line()
			}
			o.write(s[i : i+1])
			i++
		case ',':
			o.write(",")
			if i++; depth <= maxIndent {
				line()
			}
		case ':':
			o.write(": ")
			i++
		default:
			class, end := scalar(s, i)
			i += o.span(class, s[i:end])
		}
	}
	return i
}

// scalar returns the class and the end of the string, number or word that begins at i. A name has another class than a
// text.
func scalar(s string, i int) (class string, end int) {
	if s[i] != '"' {
		end = i + 1
		for end < len(s) && !strings.ContainsRune(" \t\r\n,]}", rune(s[end])) {
			end++
		}
		if strings.IndexByte("tfn", s[i]) >= 0 {
			return "tk", end
		}
		return "tn", end
	}
	for end = i + 1; s[end] != '"'; end++ {
		if s[end] == '\\' {
			end++
		}
	}
	if end++; skipBlank(s, end) < len(s) && s[skipBlank(s, end)] == ':' {
		return "tk", end
	}
	return "ts", end
}

func skipBlank(s string, i int) int {
	for i < len(s) && strings.IndexByte(" \t\r\n", s[i]) >= 0 {
		i++
	}
	return i
}
