package redact

import (
	"bytes"
	"slices"
)

// placeholder reports whether a text stands in the place of a secret in an example, a template or code. loose: nothing
// but its surroundings makes the text a secret.
func placeholder(b []byte, loose bool) bool {
	if distinct(b) < min(6, len(b)/2) || bytes.Contains(b, []byte("EXAMPLE")) || bytes.Contains(b, []byte("xxxxxx")) ||
		bytes.Contains(b, []byte("...")) || bytes.Contains(b, []byte("XXXXXX")) {
		return true
	}
	if !loose {
		return false
	}
	for _, part := range templateParts {
		if bytes.Contains(b, []byte(part)) {
			return true
		}
	}
	text := bytes.ToLower(b)
	for _, word := range placeholderWords {
		if bytes.Contains(text, []byte(word)) {
			return true
		}
	}
	return bytes.ContainsAny(b[:1], "/~$%")
}

// templateParts occur in code and templates that insert a secret.
var templateParts = []string{
	"${", "$(", "{{", "}}", "<", "process.env", "environ", "getenv", "Getenv", "secrets.", "://", "():",
}

// placeholderWords occur in what documentation writes for a secret.
var placeholderWords = []string{
	"example", "your", "changeme", "change-me", "change_me", "placeholder", "dummy", "redacted", "replace", "insert",
	"todo",
}

// ordinary reports whether a text that only its surroundings make a secret is a word, a number or a usual password. In
// a URL, any other word can be a password.
func ordinary(b []byte, where near) bool {
	if where == userinfo {
		return slices.Contains(usualPasswords, string(bytes.ToLower(b)))
	}
	return !mixed(b)
}

// usualPasswords are what documentation and local setups write into URLs.
var usualPasswords = []string{
	"password", "passwd", "pass", "postgres", "secret", "root", "test", "guest", "admin", "user", "mysql", "redis",
	"token",
}

func distinct(b []byte) int {
	var seen [256]bool
	n := 0
	for _, c := range b {
		if !seen[c] {
			seen[c] = true
			n++
		}
	}
	return n
}

// mixed reports whether a text has letters and digits, as words and numbers do not.
func mixed(b []byte) bool {
	var letters, numbers bool
	for _, c := range b {
		numbers = numbers || c >= '0' && c <= '9'
		letters = letters || c|0x20 >= 'a' && c|0x20 <= 'z'
	}
	return letters && numbers
}
