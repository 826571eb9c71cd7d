package screen

import (
	"sort"
	"strings"
	"unicode"

	tea "charm.land/bubbletea/v2"

	"github.com/ccship/ccship/cmd/ccship/term"
)

// maxWritten is how many characters a line has at most: frames measure it, and no search is longer.
const maxWritten = 4096

// box is a line that is being written.
type box struct {
	text []rune
	at   int // the cursor
}

func (b *box) String() string { return string(b.text) }

// insert writes at the cursor what can stand in one line, and has a place there.
func (b *box) insert(text string) {
	var in []rune
	for _, r := range text {
		if len(b.text)+len(in) >= maxWritten {
			break
		}
		if r == '\n' || r == '\t' {
			r = ' '
		}
		if !term.Steers(r) {
			in = append(in, r)
		}
	}
	b.text = append(b.text[:b.at:b.at], append(in, b.text[b.at:]...)...)
	b.at += len(in)
}

// set replaces the line.
func (b *box) set(text string) {
	b.text, b.at = nil, 0
	b.insert(text)
}

// key edits the line, and reports whether the key is one for that.
func (b *box) key(k tea.KeyPressMsg) bool {
	switch k.Keystroke() {
	case "backspace", "ctrl+h":
		b.remove(max(0, b.at-1), b.at)
	case "delete", "ctrl+d":
		b.remove(b.at, min(len(b.text), b.at+1))
	case "ctrl+w", "alt+backspace":
		b.remove(b.wordStart(), b.at)
	case "ctrl+u":
		b.remove(0, b.at)
	case "ctrl+k":
		b.remove(b.at, len(b.text))
	case "left", "ctrl+b":
		b.at = max(0, b.at-1)
	case "right", "ctrl+f":
		b.at = min(len(b.text), b.at+1)
	case "home", "ctrl+a":
		b.at = 0
	case "end":
		b.at = len(b.text)
	default:
		if k.Text == "" || k.Mod&(tea.ModCtrl|tea.ModAlt) != 0 {
			return false
		}
		b.insert(k.Text)
	}
	return true
}

func (b *box) remove(from, to int) {
	b.text = append(b.text[:from:from], b.text[to:]...)
	b.at = from
}

// wordStart returns where the word before the cursor begins.
func (b *box) wordStart() int {
	at := b.at
	for at > 0 && unicode.IsSpace(b.text[at-1]) {
		at--
	}
	for at > 0 && !unicode.IsSpace(b.text[at-1]) {
		at--
	}
	return at
}

// show returns what of the line fits into so many columns, and the column of the cursor.
func (b *box) show(columns int) (text string, cursor int) {
	// The longest end before the cursor that fits: halving, for a step at a time measures a long line thousands of times.
	from := sort.Search(b.at, func(i int) bool { return term.Width(string(b.text[i:b.at])) < columns })
	before := string(b.text[from:b.at])
	return cut(before+string(b.text[b.at:]), columns), term.Width(before)
}

// cut returns the beginning of a text that fits, without an ellipsis.
func cut(text string, columns int) string {
	if term.Width(text) <= columns {
		return text
	}
	return strings.TrimSuffix(term.Cut(text+" ", columns+1), "…")
}
