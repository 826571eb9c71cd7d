package show

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ccship/ccship/cmd/ccship/term"
)

// shortID is how much of an id lists show.
const shortID = 8

// shortened are ids as long as it takes to tell them apart. An agent's, which has its session's in front, stays whole.
func shortened(ids []string) []string {
	out := make([]string, len(ids))
	for i, id := range ids {
		n := min(shortID, len(id))
		if strings.Contains(id, "/") {
			n = len(id)
		}
		for j, other := range ids {
			for i != j && other != id && n < len(id) && strings.HasPrefix(other, id[:n]) && !isAgentOf(other, id) {
				n++
			}
		}
		out[i] = term.Printable(id[:n])
	}
	return out
}

// isAgentOf says whether an id is of an agent of a session.
func isAgentOf(id, session string) bool { return strings.HasPrefix(id, session+"/") }

// pasted is an id as a shell takes it, in full: what distinguishes it from others on a page may not do so from all.
func pasted(id string) string {
	id = term.Printable(id)
	plain := func(r rune) bool {
		return r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("-_./~%", r))
	}
	if !strings.ContainsFunc(id, func(r rune) bool { return !plain(r) }) {
		return id
	}
	return "'" + strings.ReplaceAll(id, "'", `'\''`) + "'"
}
