package transcript

import (
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Compose returns a text in Unicode's composed form (NFC), so that texts that look the same are the same: names of
// files on macOS come decomposed. A text that is composed is returned as it is.
func Compose(text string) string {
	from := 0
	for from < len(text) && text[from] < utf8.RuneSelf {
		from++
	}
	if from == len(text) {
		return text
	}
	from = max(0, from-1) // a mark combines with the letter before it
	if norm.NFC.QuickSpanString(text[from:]) == len(text)-from {
		return text
	}
	return text[:from] + norm.NFC.String(text[from:])
}
