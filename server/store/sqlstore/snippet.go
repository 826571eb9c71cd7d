package sqlstore

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ccship/ccship/transcript"
)

const (
	markBegin = "\x02"
	markEnd   = "\x03"
	// snippetRunes is about how many characters a snippet shows around what was found.
	snippetRunes = 200
)

// HoldsAll says whether a text has all needles.
func HoldsAll(text string, needles []string) bool {
	folded := FoldText(text)
	for _, n := range needles {
		if !strings.Contains(folded, n) {
			return false
		}
	}
	return true
}

// Snippet returns the part of a text around the first needle, on one line, with every needle in it between U+0002 and
// U+0003. "…" stands for what was cut off.
func Snippet(text string, needles []string) string {
	shown, folded := squeeze(text)
	first := len(folded)
	for _, n := range needles {
		if i := indexRunes(folded, []rune(n), 0); i >= 0 {
			first = min(first, i)
		}
	}
	if first == len(folded) {
		first = 0
	}
	from := max(0, first-snippetRunes/4)
	to := min(len(shown), from+snippetRunes)
	from = max(0, min(from, to-snippetRunes))
	var out strings.Builder
	if from > 0 {
		out.WriteString("…")
	}
	marked := marks(folded[from:to], needles)
	for i, r := range shown[from:to] {
		if marked[i] && (i == 0 || !marked[i-1]) {
			out.WriteString(markBegin)
		}
		out.WriteRune(r)
		if marked[i] && (i+1 == len(marked) || !marked[i+1]) {
			out.WriteString(markEnd)
		}
	}
	if to < len(shown) {
		out.WriteString("…")
	}
	return out.String()
}

// squeeze returns a text on one line, as it is shown and as it is searched: both of the same length.
func squeeze(text string) (shown, folded []rune) {
	text = transcript.Compose(text)
	n := utf8.RuneCountInString(text)
	shown, folded = make([]rune, 0, n), make([]rune, 0, n)
	space := false
	for _, r := range text {
		if isSpace(r) {
			space = len(shown) > 0
			continue
		}
		if space {
			shown, folded = append(shown, ' '), append(folded, ' ')
			space = false
		}
		shown, folded = append(shown, r), append(folded, unicode.ToLower(r))
	}
	return shown, folded
}

// marks says which characters are part of a needle.
func marks(folded []rune, needles []string) []bool {
	out := make([]bool, len(folded))
	for _, n := range needles {
		needle := []rune(n)
		for i := indexRunes(folded, needle, 0); i >= 0; i = indexRunes(folded, needle, i+len(needle)) {
			for k := range needle {
				out[i+k] = true
			}
		}
	}
	return out
}

// indexRunes returns where needle begins in text at or behind from, -1 if nowhere.
func indexRunes(text, needle []rune, from int) int {
	if len(needle) == 0 {
		return -1
	}
next:
	for i := from; i+len(needle) <= len(text); i++ {
		for k, r := range needle {
			if text[i+k] != r {
				continue next
			}
		}
		return i
	}
	return -1
}
