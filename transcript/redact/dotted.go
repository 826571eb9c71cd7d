package redact

import (
	"bytes"
	"slices"
)

const (
	// discordForm stands for a token of Discord, which begins with no literal: three words in base64 with dots between.
	discordForm               = "M..."
	discordMiddle             = len(".123456")
	discordLeast, discordMost = 24, 28 // bytes of the first word
	// airtableForm stands for a token of Airtable, harnessForm for one of Harness: their first letters are in too many
	// words. No literal is the same text as one of these.
	airtableForm  = "pat?."
	airtableFirst = len("pat") + 14
	harnessForm   = "?at."
	harnessFirst  = len("pat.") + 22
)

// dotted appends the hits of the forms: two dots with six bytes between, one behind 17 bytes, or one behind "pat".
func (s *search) dotted(hits []hit, text []byte) []hit {
	for i := len("pat"); i+discordMiddle < len(text); i++ {
		n := bytes.IndexByte(text[i:len(text)-discordMiddle], '.')
		if n < 0 {
			break
		}
		i += n
		if at := i - airtableFirst; at >= 0 && text[at] == 'p' && s.airtable >= 0 && isAirtable(text[at:]) {
			hits = append(hits, hit{at, s.airtable})
		}
		if at := i - len("pat"); text[i-1] == 't' && s.harness >= 0 && isHarness(text[at:]) {
			hits = append(hits, hit{at, s.harness})
		}
		if text[i+discordMiddle] != '.' {
			continue
		}
		at := i
		for at > 0 && i-at < discordMost && isTokenByte(text[at-1]) {
			at--
		}
		for ; i-at >= discordLeast; at++ { // a letter of an escape may be before it
			if isDiscord(text[at:]) {
				hits = append(hits, hit{at, s.discord})
			}
		}
	}
	return hits
}

// isDiscord reports whether a text begins as a token of Discord does, up to the second dot.
func isDiscord(b []byte) bool {
	if len(b) < discordLeast+discordMiddle || b[0] < 'M' || b[0] > 'O' {
		return false
	}
	n := 1
	for n < len(b) && n <= discordMost && isTokenByte(b[n]) {
		n++
	}
	return n >= discordLeast && n <= discordMost && n+discordMiddle < len(b) && b[n] == '.' && b[n+discordMiddle] == '.'
}

// isAirtable reports whether a text begins as a token of Airtable does, up to its dot.
func isAirtable(b []byte) bool {
	return len(b) > airtableFirst && string(b[:3]) == "pat" && b[airtableFirst] == '.' &&
		!slices.ContainsFunc(b[:airtableFirst], func(c byte) bool { return !isAlnum(c) })
}

// isHarness reports whether a text begins as a token of Harness does, up to its second dot.
func isHarness(b []byte) bool {
	return len(b) > harnessFirst && (b[0] == 'p' || b[0] == 's') && string(b[1:4]) == "at." && b[harnessFirst] == '.'
}
