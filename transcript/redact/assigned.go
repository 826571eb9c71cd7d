package redact

import (
	"strings"
	"unicode/utf8"
)

// isUnquoted reports whether a name, given by a position in it, is assigned a word without quotes that is neither words
// nor code. What the rules say of what is between is said here without an expression: most assignments are code.
func isUnquoted(b []byte, at int) bool {
	at = endOfName(b, past(b, at, " ")) // a literal may begin with a space
	for n := 0; n < 2 && at < len(b) && strings.IndexByte("\"']", b[at]) >= 0; n++ {
		at++
	}
	at = past(b, at, " \t")
	if at == len(b) || b[at] != ':' && b[at] != '=' {
		return at < len(b) && mayHide(b[at])
	}
	at++
	if isSecretWord(b, past(b, at, " \t\r\n\f")) {
		return true
	}
	return at < len(b) && (b[at] == '=' || b[at] == '>') && isSecretWord(b, past(b, at+1, " \t\r\n\f"))
}

// endOfName returns where a name ends that may have several words: an API key.
func endOfName(b []byte, at int) int {
	end := min(len(b), at+longestRest)
	for at < end && (isTokenByte(b[at]) || b[at] == '.' || b[at] >= utf8.RuneSelf ||
		b[at] == ' ' && hasFold(b[at+1:], "key")) {
		at++
	}
	return at
}

func past(b []byte, at int, set string) int {
	for at < len(b) && strings.IndexByte(set, b[at]) >= 0 {
		at++
	}
	return at
}

// mostSigns bounds how many signs that may end a word are tried.
const mostSigns = 3

// isSecretWord reports whether a word at a position may be a secret, as far as one layer of escapes shows it.
func isSecretWord(b []byte, at int) bool {
	end := at
	for end < len(b) && strings.IndexByte(" \t\r\n\f\"'", b[end]) < 0 {
		if mayHide(b[end]) || b[end] == '`' || b[end] == '!' && end == at || end-at > longestRest {
			return true
		}
		end++
	}
	word := b[at:end]
	if len(word) < leastValue {
		return false
	}
	signs := 0
	for n, c := range word { // it ends before a list does
		if strings.IndexByte("<&},;]", c) < 0 {
			continue
		}
		if signs++; signs > mostSigns {
			break
		}
		if n >= leastValue && !ordinary(word[:n], member) {
			return true
		}
	}
	return !ordinary(word, member) || hasAny(word[len(word)-1:], ";,") && !ordinary(word[:len(word)-1], member)
}
