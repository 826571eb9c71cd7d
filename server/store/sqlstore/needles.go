package sqlstore

import "strings"

const (
	maxNeedles = 16
	maxNeedle  = 256 // characters
)

// Needles splits a search text into parts that must all be found: words, and texts in double quotes.
func Needles(query string) (out []string) {
	for i, part := range strings.Split(query, `"`) {
		words := []string{FoldText(part)}
		if i%2 == 0 {
			words = strings.Fields(words[0])
		}
		for _, w := range words {
			if r := []rune(w); len(r) > maxNeedle {
				w = string(r[:maxNeedle])
			}
			if w != "" && len(out) < maxNeedles {
				out = append(out, w)
			}
		}
	}
	return out
}
