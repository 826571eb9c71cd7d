package redact

import (
	"bytes"
	"strings"
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
	for at < end && (isTokenByte(b[at]) || b[at] == '.' || b[at] == ' ' && hasFold(b[at+1:], "key")) {
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
	if n := bytes.IndexAny(word, "<&},;]"); n >= leastValue && !ordinary(word[:n], member) { // it ends before a list does
		return true
	}
	return !ordinary(word, member) || hasAny(word[len(word)-1:], ";,") && !ordinary(word[:len(word)-1], member)
}

// loginPrograms are the programs that log in, and what may be between them and the word.
var loginPrograms = []string{
	"docker", "podman", "nerdctl", "buildah", "skopeo", "crane", "oras", "regctl", "helm", "az", "cf", "oc", "ibmcloud",
	"tabcmd", "argocd", "bx", "heroku", "rancher", "snyk", "registry", "auth", "acr",
}

// isProgram reports whether one of loginPrograms is before a position, or an escape.
func isProgram(b []byte, at int) bool {
	before := bytes.TrimRight(b[max(0, at-16):at], " \t\r\n\f+")
	for _, c := range before[max(0, len(before)-8):] {
		if mayHide(c) {
			return true
		}
	}
	for _, name := range loginPrograms {
		if bytes.HasSuffix(before, []byte(name)) {
			return true
		}
	}
	return false
}
