package store

import (
	"strings"
	"unicode"
)

// The index stores runs of three characters. Some scripts have words of one or two characters. To find those, an
// unprintable character stands before, between and after such characters: apart a apart is a run of three, and so is a
// apart b.
const apart = '\x01'

// gramRunes is the number of characters in an indexed run.
const gramRunes = 3

// indexText is a folded text in the form for the index.
func indexText(folded string) string {
	if !strings.ContainsFunc(folded, shortWords) {
		return folded
	}
	var out strings.Builder
	out.Grow(2 * len(folded))
	set := false // the last character is separated
	for _, r := range folded {
		if !shortWords(r) {
			out.WriteRune(r)
			set = false
			continue
		}
		if !set {
			out.WriteByte(apart)
		}
		out.WriteRune(r)
		out.WriteByte(apart)
		set = true
	}
	return out.String()
}

// shortWords reports whether r belongs to a script in which one or two characters are a word.
func shortWords(r rune) bool {
	return r >= 0x1100 && unicode.In(r,
		unicode.Han, unicode.Hangul, unicode.Hiragana, unicode.Katakana, unicode.Bopomofo, unicode.Yi)
}

const (
	maxNeedles = 16
	maxNeedle  = 256 // characters
	// maxGrams limits the grams of one needle in an index query: the hits are checked again anyway.
	maxGrams = 24
)

// needles splits a search text into parts that must all be found: words, and texts in double quotes.
func needles(query string) (out []string) {
	for i, part := range strings.Split(query, `"`) {
		words := []string{foldText(part)}
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

// match is the index query for texts that may contain all needles; "" when all needles are short, which every text may
// contain. Each gram is a quoted string, so nothing in it is an operator.
func match(needles []string) string {
	var out []string
	seen := map[string]bool{}
	for _, n := range needles {
		r := []rune(indexText(n))
		last := len(r) - gramRunes
		step := 1 + max(0, last)/maxGrams
		for i := 0; i <= last; i += step {
			if g := string(r[i : i+gramRunes]); !seen[g] {
				seen[g] = true
				out = append(out, `"`+strings.ReplaceAll(g, `"`, `""`)+`"`)
			}
		}
	}
	return strings.Join(out, " AND ")
}
