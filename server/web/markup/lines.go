package markup

import (
	"html/template"
	"strings"
	"unicode"
	"unicode/utf8"
)

// DiffLine is one line of a difference. Numbers count from 1; 0 is none.
type DiffLine struct {
	Op       Op
	Old, New int
	HTML     template.HTML // with what changed inside the line in <mark>
	Folded   int           // lines left out here instead of a line
}

// Sign is the line's sign as diffs have it.
func (l DiffLine) Sign() string { return string(rune(l.Op)) }

// Class names the line's colour.
func (l DiffLine) Class() string {
	switch {
	case l.Folded > 0:
		return "fold"
	case l.Op == Removed:
		return "del"
	case l.Op == Added:
		return "add"
	}
	return "same"
}

// Diff compares two texts line by line. Around each change context equal lines stay; the others are folded. It has at
// most about limit lines, and says how many there are more.
func Diff(before, after string, context, limit int) (lines []DiffLine, more int) {
	a, b := split(before), split(after)
	for i, edits := 0, Compare(a, b); i < len(edits); i++ {
		e := edits[i]
		if len(lines) > limit {
			more += max(e.AEnd-e.A, e.BEnd-e.B)
			continue
		}
		switch {
		case e.Op == Same:
			lines = appendSame(lines, a, e, context, i == 0, i == len(edits)-1)
		case e.Op == Removed && i+1 < len(edits) && edits[i+1].Op == Added:
			lines = appendPair(lines, a[e.A:e.AEnd], b[edits[i+1].B:edits[i+1].BEnd], e.A, edits[i+1].B)
			i++
		case e.Op == Removed:
			lines = appendPair(lines, a[e.A:e.AEnd], nil, e.A, 0)
		case i+1 < len(edits) && edits[i+1].Op == Removed:
			lines = appendPair(lines, a[edits[i+1].A:edits[i+1].AEnd], b[e.B:e.BEnd], edits[i+1].A, e.B)
			i++
		default:
			lines = appendPair(lines, nil, b[e.B:e.BEnd], 0, e.B)
		}
	}
	if n := len(lines) - limit; n > 0 {
		lines, more = lines[:limit], more+n
	}
	return lines, more
}

// split cuts a text into lines; a newline at its end makes no empty one.
func split(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(s, "\n"), "\n")
}

// appendSame shows context lines on the sides where something changes.
func appendSame(lines []DiffLine, a []string, e Edit, context int, first, last bool) []DiffLine {
	head, tail := context, context
	if first {
		head = 0
	}
	if last {
		tail = 0
	}
	for i := e.A; i < e.AEnd; i++ {
		at := i - e.A
		if left := e.AEnd - i - tail; at >= head && left > 1 {
			lines = append(lines, DiffLine{Op: Same, Folded: left})
			i = e.AEnd - tail - 1
			continue
		}
		lines = append(lines, DiffLine{Op: Same, Old: i + 1, New: e.B + at + 1, HTML: Text(a[i])})
	}
	return lines
}

// appendPair shows removed lines and the ones that came in their place. Lines of equal rank are compared word by word.
func appendPair(lines []DiffLine, removed, added []string, a, b int) []DiffLine {
	var marked [2][]template.HTML
	pairs := len(removed) == len(added) || len(removed) > 0 && len(added) > 0 && len(removed)+len(added) <= 8
	for i := range min(len(removed), len(added)) {
		if !pairs {
			break
		}
		x, y := words(removed[i], added[i])
		marked[0], marked[1] = append(marked[0], x), append(marked[1], y)
	}
	html := func(side int, i int, s string) template.HTML {
		if i < len(marked[side]) {
			return marked[side][i]
		}
		return Text(s)
	}
	for i, s := range removed {
		lines = append(lines, DiffLine{Op: Removed, Old: a + i + 1, HTML: html(0, i, s)})
	}
	for i, s := range added {
		lines = append(lines, DiffLine{Op: Added, New: b + i + 1, HTML: html(1, i, s)})
	}
	return lines
}

// maxMarked is the longest line in which changes are marked, in bytes.
const maxMarked = 2000

// words marks what differs between two lines, unless that is most of them.
func words(before, after string) (x, y template.HTML) {
	if len(before) > maxMarked || len(after) > maxMarked {
		return Text(before), Text(after)
	}
	a, b := tokens(before), tokens(after)
	edits := Compare(a, b)
	same := 0
	for _, e := range edits {
		if e.Op == Same {
			same += len(strings.TrimSpace(strings.Join(a[e.A:e.AEnd], "")))
		}
	}
	if 3*same < max(len(strings.TrimSpace(before)), len(strings.TrimSpace(after))) {
		return Text(before), Text(after)
	}
	var bx, by strings.Builder
	for _, e := range edits {
		mark(&bx, strings.Join(a[e.A:e.AEnd], ""), e.Op != Same)
		mark(&by, strings.Join(b[e.B:e.BEnd], ""), e.Op != Same)
	}
	return template.HTML(bx.String()), template.HTML(by.String()) //nolint:gosec // escaped by writeText
}

func mark(b *strings.Builder, s string, on bool) {
	if s == "" {
		return
	}
	if !on {
		writeText(b, s)
		return
	}
	b.WriteString("<mark>")
	writeText(b, s)
	b.WriteString("</mark>")
}

// tokens cuts a line into words, runs of blanks and single other characters.
func tokens(s string) []string {
	var out []string
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		if in := class(r); in != nil {
			for n < len(s) {
				next, m := utf8.DecodeRuneInString(s[n:])
				if !in(next) {
					break
				}
				n += m
			}
		}
		out = append(out, s[:n])
		s = s[n:]
	}
	return out
}

// class is the run that r begins; nil when it stands alone.
func class(r rune) func(rune) bool {
	switch {
	case wordRune(r):
		return wordRune
	case unicode.IsSpace(r):
		return unicode.IsSpace
	}
	return nil
}

func wordRune(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }
