package term

import "strings"

// Quote makes a text one word of a shell.
func Quote(s string) string {
	special := func(r rune) bool {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		return !letter && !strings.ContainsRune("/._-~+:@%=,", r)
	}
	if s != "" && !strings.ContainsFunc(s, special) && !strings.ContainsAny(s[:1], "~=") {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
