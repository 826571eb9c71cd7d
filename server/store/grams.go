package store

import (
	"strings"
	"unicode"
)

// The index knows which three characters stand next to each other. So that words of one or two characters are found
// in scripts that have such words, their characters are set apart with an unprintable one, which makes each of them,
// and each two that are neighbours, three characters.
const apart = '\x01'

// gramRunes is how many characters the index takes together.
const gramRunes = 3

// indexText is a folded text as the index gets it.
func indexText(folded string) string {
	if !strings.ContainsFunc(folded, shortWords) {
		return folded
	}
	var out strings.Builder
	out.Grow(2 * len(folded))
	set := false // the last one written is apart
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

// shortWords says whether r belongs to a script in which a character or two are a word.
func shortWords(r rune) bool {
	return r >= 0x1100 && unicode.In(r,
		unicode.Han, unicode.Hangul, unicode.Hiragana, unicode.Katakana, unicode.Bopomofo, unicode.Yi)
}

const (
	maxNeedles = 16
	maxNeedle  = 256 // characters
	// maxGrams bounds what of one needle the index is asked for: what it finds is looked at again anyway.
	maxGrams = 24
)

// needles cuts what somebody looks for into texts that must all be found: words, and what stands in double quotes.
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

// match is the index's query for texts that may hold all needles; "" when only short ones are looked for, which
// every text may hold. Each gram is a quoted string: nothing in it is an operator.
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
