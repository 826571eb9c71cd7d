package redact

import (
	"bytes"
	"slices"
	"sort"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/ccship/ccship/transcript"
)

// maxLevels is how many texts are searched for one string: as it is decoded, and four layers below that.
const maxLevels = 5

// text is a decoded text that knows where its bytes come from.
type text struct {
	b    []byte
	segs []seg
	end  int // the end of the source
}

// seg starts a stretch of decoded bytes: either bytes that are the same in the source, or one escape.
type seg struct {
	at, src int
	escape  bool
}

// reset makes t the same as a source that starts at an offset.
func (t *text) reset(src []byte, offset int) {
	t.b = append(t.b[:0], src...)
	t.segs = append(t.segs[:0], seg{at: 0, src: offset})
	t.end = offset + len(src)
}

// begin empties t. prefix is decoded text that has no source; the source starts at an offset.
func (t *text) begin(prefix string, offset int) {
	t.b = append(t.b[:0], prefix...)
	t.segs = t.segs[:0]
	if prefix != "" {
		t.segs = append(t.segs, seg{at: 0, src: offset, escape: true})
	}
}

// unescape appends the decoded form of a source that starts at an offset: JSON's escapes are decoded. Anything
// else stays as it is, so that any text can be decoded.
func (t *text) unescape(src []byte, offset int) { t.decode(src, offset, false, -1) }

// remove appends a source without its next layer: what unescape decodes, percent-encoding, HTML's character references,
// invisible characters, sequences that control a terminal, and what tools write before each line. The first line begins
// at a position.
func (t *text) remove(src []byte, offset, first int) { t.decode(src, offset, true, first) }

// decode appends a source without its escapes, of JSON only or of all kinds. A negative first: lines have no marks.
func (t *text) decode(src []byte, offset int, all bool, first int) {
	t.segs = append(t.segs, seg{at: len(t.b), src: offset})
	t.end = offset + len(src)
	from := 0 // what is not copied yet
	skip := func(i int, decoded []byte, size int) {
		t.b = append(t.b, src[from:i]...)
		at := len(t.b)
		t.b = append(t.b, decoded...)
		from = i + size
		t.segs = append(t.segs, seg{at: at, src: offset + i, escape: true}, seg{at: len(t.b), src: offset + from})
	}
	if first >= 0 {
		if size := lineMark(src[first:]); size > 0 {
			skip(first, nil, size)
		}
	}
	var buf [utf8.UTFMax]byte
	var f forms
	for i := from; i < len(src); {
		n := nextEscape(src[i:], all)
		if n < 0 {
			break
		}
		i += n
		decoded, size := appendEscape(buf[:0], src[i:], all)
		switch {
		case size > 0:
			skip(i, decoded, size)
			i += size
		case all && src[i] == '+' && f.isForm(src, i):
			skip(i, []byte{' '}, 1)
			i++
		case src[i] == '\n' && first >= 0:
			i++
			if size := lineMark(src[i:]); size > 0 {
				skip(i, nil, size)
				i += size
			}
		default:
			i++
		}
	}
	t.b = append(t.b, src[from:]...)
}

// begins are the bytes that begin an escape of any kind, or a line.
var begins = [256]bool{
	'\\': true, '+': true, esc: true, '%': true, '&': true, '\n': true, 0xe2: true, 0xef: true, 0xc2: true,
}

// mayHide reports whether a byte begins an escape that stands for a character or for nothing.
func mayHide(c byte) bool { return begins[c] && c != '\n' && c != '+' }

// nextEscape returns where an escape may start; negative: nowhere.
func nextEscape(src []byte, all bool) int {
	if !all {
		return bytes.IndexByte(src, '\\')
	}
	return slices.IndexFunc(src, func(c byte) bool { return begins[c] })
}

// esc begins the sequences that control a terminal.
const esc = 0x1b

// longestSequence bounds the sequences of a terminal that are looked at.
const longestSequence = 32

// sequenceSize returns the length of the sequence that a text begins with: ESC, [, parameters and a letter; 0 if it is
// none.
func sequenceSize(text []byte) int {
	if len(text) < 3 || text[0] != esc || text[1] != '[' {
		return 0
	}
	for i, c := range text[2:min(len(text), longestSequence)] {
		switch {
		case c >= '@' && c <= '~':
			return i + 3
		case c < ' ' || c > '?':
			return 0
		}
	}
	return 0
}

// endsSequence reports whether a text ends with such a sequence, whose ESC may be written as an escape.
func endsSequence(text []byte) bool {
	i := len(text) - 1
	if i < 2 || text[i] < '@' || text[i] > '~' {
		return false
	}
	for least := max(2, i-longestSequence); i > least && text[i-1] >= ' ' && text[i-1] <= '?'; {
		i--
	}
	if text[i-1] != '[' {
		return false
	}
	before := text[:i-1]
	for _, form := range escForms {
		if bytes.HasSuffix(before, []byte(form)) {
			return true
		}
	}
	return false
}

// escForms are how ESC is written in JSON and in programs.
var escForms = []string{"\x1b", `\u001b`, `\u001B`, `\x1b`, `\x1B`, `\033`, `\e`}

// finish appends decoded text without a source.
func (t *text) finish(suffix string) {
	t.segs = append(t.segs, seg{at: len(t.b), src: t.end, escape: true})
	t.b = append(t.b, suffix...)
}

// prefix returns the length of the decoded text without a source at the beginning.
func (t *text) prefix() int {
	if len(t.segs) > 1 && t.segs[0].escape {
		return t.segs[1].at
	}
	return 0
}

// appendEscape decodes the escape at the start of src. The size is 0 if there is none. With all, it may be of any kind
// that remove knows.
func appendEscape(dst, src []byte, all bool) ([]byte, int) {
	if len(src) < 2 {
		return dst, 0
	}
	switch src[0] {
	case esc:
		return dst, sequenceSize(src)
	case '\\':
		if all && src[1] == '\n' { // a shell's line goes on
			return append(dst, ' '), 2
		}
	case '%':
		c, size := percent(src)
		return appendKnown(dst, c, size)
	case '&':
		c, size := reference(src)
		return appendKnown(dst, c, size)
	default:
		return dst, invisible(src)
	}
	switch c := src[1]; c {
	case '"', '\\', '/':
		return append(dst, c), 2
	case 'b':
		return append(dst, '\b'), 2
	case 'f':
		return append(dst, '\f'), 2
	case 'n':
		return append(dst, '\n'), 2
	case 'r':
		return append(dst, '\r'), 2
	case 't':
		return append(dst, '\t'), 2
	case 'u':
		high, ok := transcript.Hex4(src[1:])
		if !ok {
			return dst, 0
		}
		if utf16.IsSurrogate(high) && len(src) > 6 && src[6] == '\\' {
			if low, ok := transcript.Hex4(src[7:]); ok {
				if r := utf16.DecodeRune(high, low); r != utf8.RuneError {
					return utf8.AppendRune(dst, r), 12
				}
			}
		}
		return utf8.AppendRune(dst, high), 6
	}
	return dst, 0
}

// plain removes every layer that is searched.
func plain(b []byte) []byte {
	for range maxLevels {
		var t text
		t.begin("", 0)
		if t.decode(b, 0, true, len(b)); len(t.segs) == 1 {
			break
		}
		b = t.b
	}
	return b
}

// down maps a decoded offset to the source. Within an escape a start moves behind it and an end before it.
func (t *text) down(at int, start bool) int {
	i := sort.Search(len(t.segs), func(i int) bool { return t.segs[i].at > at }) - 1
	for !start && i > 0 && t.segs[i-1].escape && t.segs[i-1].at == at { // it decodes to nothing
		i--
	}
	s := t.segs[i]
	switch {
	case !s.escape:
		return s.src + at - s.at
	case at == s.at || !start:
		return s.src
	case i+1 < len(t.segs):
		return t.segs[i+1].src
	}
	return t.end
}

// up maps a source offset to a decoded one, with the same moves within an escape.
func (t *text) up(src int, start bool) int {
	i := sort.Search(len(t.segs), func(i int) bool { return t.segs[i].src > src }) - 1
	s := t.segs[i]
	switch {
	case !s.escape:
		return s.at + src - s.src
	case src == s.src || !start:
		return s.at
	case i+1 < len(t.segs):
		return t.segs[i+1].at
	}
	return len(t.b)
}

// snap moves an offset of a level to where no deeper level has an escape.
func snap(deeper []text, at int, start bool) int {
	if len(deeper) == 0 {
		return at
	}
	return deeper[0].down(snap(deeper[1:], deeper[0].up(at, start), start), start)
}
