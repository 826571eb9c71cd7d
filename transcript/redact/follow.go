package redact

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
)

// hasArgument reports whether an option, given by a position in it, is followed by what may be a secret.
func hasArgument(b []byte, at int) bool {
	c := chars{b: b, at: at}
	c.word()
	if r, _ := c.peek(); r == '+' { // a space of a form
		return true
	}
	if c.skip("=:", 1) == 0 && c.skip(" \t\"',", longestCommand) == 0 || c.escaped() {
		return c.deeper || c.escaped()
	}
	var buf [64]byte
	value := c.value(buf[:0], "`;,)(&|<>{}[]\\")
	return c.deeper || c.escaped() || isPromising(value)
}

// hasCredentials reports whether a scheme of authentication is followed by a token, as long as they are.
func hasCredentials(b []byte, at int) bool {
	c := chars{b: b, at: at}
	c.word()
	if c.skip(" \t\n\f\r", longestCommand) == 0 {
		return c.deeper || c.escaped()
	}
	c.skip("\"'", 1)
	for n := 0; n < leastToken; {
		r, size := c.peek()
		if size == 0 || r != 0 && !isTokenByte(r) && strings.IndexByte(".~+/", r) < 0 {
			return c.deeper || c.escaped()
		}
		if c.at += size; r != 0 {
			n++
		}
	}
	return true
}

// hasString reports whether the name of a password is followed by a text in quotes, as statements have it.
func hasString(b []byte, at int) bool {
	c := chars{b: b, at: at}
	c.word()
	c.skip(" \t\r\n=(+", widest)
	next, size := c.peek()
	switch {
	case b[at]|0x20 == 'i', next|0x20 == 'f': // identified by, password for
		return quoted.sees(b, at)
	case next|0x20 == 'e' || next|0x20 == 'n': // a kind of string
		c.at += size
		next, _ = c.peek()
	}
	return isQuote(next) || next == '\\' || c.deeper
}

// hasSpacedValue reports whether what may be a secret is behind a name and spaces.
func hasSpacedValue(b []byte, at int) bool {
	c := chars{b: b, at: at}
	c.word()
	if c.skip(" \t+", widest) == 0 {
		return c.deeper || c.escaped()
	}
	for range 3 { // a kind or a number of the password may be before it
		var buf [64]byte
		value := c.value(buf[:0], "<&")
		if c.deeper || isPromising(value) {
			return true
		}
		if len(value) > leastToken || c.skip(" \t+", widest) == 0 {
			break
		}
	}
	return false
}

// isLogin reports whether a password follows the word login, which ends.
func isLogin(b []byte, at int) bool {
	c := chars{b: b, at: at + len("login")}
	return (c.skip(" \t\r\n+\"'", 1) > 0 || c.deeper || c.escaped()) &&
		bytes.Contains(b[at:min(len(b), at+300)], []byte("password"))
}

// endsPort reports whether a space follows the number of a port.
func endsPort(b []byte, at int) bool {
	c := chars{b: b, at: at + 1}
	c.word()
	return c.skip(" \t\r\n+", 1) > 0 || c.deeper || c.escaped()
}

// hasListed reports whether the name of a user is before a part of an access list of Redis.
func hasListed(b []byte, at int) bool {
	before := b[max(0, at-160):min(len(b), at+8)]
	look(len(before))
	return containsAny(before, [][]byte{[]byte("user"), []byte("USER"), []byte("User")}) || hasAny(before, "\\")
}

// fallbacks part the name of a variable from the value that stands for it if it is not set.
var fallbacks = [][]byte{[]byte("??"), []byte("||"), []byte("?:"), []byte(" or "), []byte("unwrap_or"),
	[]byte("orElse"), []byte("OrDefault"), []byte("OrElse"), []byte("{"), []byte("\","), []byte("',"), []byte("),")}

// hasFallback reports whether a name that is one of the environment may be followed by a value that stands for it.
func hasFallback(b []byte, at int) bool {
	around := b[max(0, at-40):min(len(b), at+40)]
	look(len(around))
	if !readsEnvironment(around) {
		return false
	}
	c := chars{b: b, at: at}
	c.word()
	var buf [80]byte
	rest := buf[:0]
	for len(rest) < cap(rest) && !c.deeper {
		r, size := c.peek()
		if size == 0 || r == '\n' {
			break
		}
		if c.at += size; r != 0 {
			rest = append(rest, r)
		}
	}
	return c.deeper || hasAny(rest, "\"'`") && containsAny(rest, fallbacks)
}

// readsEnvironment reports whether a text may name the environment, or ask for a setting.
func readsEnvironment(b []byte) bool {
	for i := 1; i+1 < len(b); i++ {
		c := b[i]
		if c|0x20 == 'n' && b[i+1]|0x20 == 'v' && b[i-1]|0x20 == 'e' || c == '(' && (b[i-1] == 'g' || b[i-1] == 'y') {
			return true
		}
	}
	return false
}

func containsAny(b []byte, parts [][]byte) bool {
	return slices.ContainsFunc(parts, func(part []byte) bool { return bytes.Contains(b, part) })
}

// hasKeyMember reports whether the member named key follows soon, with a value as long as a key.
func hasKeyMember(b []byte, at int) bool {
	c := chars{b: b, at: at}
	c.word()
	rest := b[min(len(b), c.at):min(len(b), c.at+200)]
	look(len(rest))
	for i := 0; ; {
		n := bytes.Index(rest[i:], []byte("ey"))
		if n < 0 {
			return c.deeper || hasAny(rest, "\\")
		}
		i += n + len("ey")
		if v := (chars{b: rest, at: i}); v.skip("\"' \t:=", 8) > 0 && isLong(rest[min(len(rest), v.at):]) {
			return true
		}
	}
}

// formatName ends as a name does before what is printed behind it.
var formatName = lazily(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)(?:pass(?:word|wd|phrase|code)?|pwd|psk|creds?|secret|key|token|id|[_.]pw)[0-9_]{0,3}$`)
})

// beginsSection reports whether a name is that of a section, of which one of the next words may be a secret.
func beginsSection(b []byte, at int) bool {
	c := chars{b: b, at: at}
	c.word()
	c.skip("\"' \t]=:>", 12)
	if sign, size := c.peek(); size > 0 && !isSpace(sign) && sign != '{' {
		return c.deeper || c.escaped()
	}
	for range 24 {
		c.skip(" \t\r\n{}=:,\"'", widest)
		var buf [48]byte
		if value := c.value(buf[:0], "<&,;{}=:"); c.deeper || isPromising(value) {
			return true
		}
	}
	return false
}

// isPeer reports whether a short word is before a position on its line, and what may be a secret behind.
func isPeer(b []byte, at int) bool {
	before := b[max(0, at-64):at]
	if i := bytes.LastIndexByte(before, '\n'); i >= 0 {
		before = before[i+1:]
	}
	if before = bytes.TrimRight(before, " \t\"'*+"); len(before) == 0 || !isAlnum(before[len(before)-1]) {
		return hasAny(before, "\\%")
	}
	c := chars{b: b, at: at}
	c.skip(" \t\"'*+", 12)
	c.word()
	c.skip(" \t\"'+", 12)
	var buf [64]byte
	return c.deeper || isPromising(c.value(buf[:0], "<&")) || isPromising(bytes.Trim(b[at:min(len(b), at+24)], " \t\"'*+"))
}

const (
	// loginCalls are functions, arguments and settings that are given a user and a password.
	loginCalls = `(?:basic_?auth|\bauth|credentials?|networkcredential|digestauth|getconnection|connect|\bpdo|mysqli|` +
		`\bftp|auth_password|plainauth|networkcredential\]::new|wifi\.begin|\bjwt\.(?:sign|verify|encode|decode))`
	// passwordCalls may be given nothing but a password.
	passwordCalls = `(?:\bauth(?:enticate)?|log_?[io]n|sign_?in)(?:_?(?:user|with|as|to|using)\w{0,24})?`
	// argument is one before another.
	argument = `(?:(?:["'][^"'\r\n]*["']|[\w.$]+|\{[^{}\n]{0,80}\})\s*,\s*)`
)

// loginCall is the name of one of loginCalls or passwordCalls, from a literal on.
var loginCall = lazily(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)^(?:` + loginCalls + `|credential|` + passwordCalls + `)$`)
})

// hasArguments reports whether a list follows a name that is given a password, and has something in quotes.
func hasArguments(b []byte, at int) bool {
	c := chars{b: b, at: at}
	c.word()
	word := b[at:c.at]
	if end, _ := c.peek(); isSpace(end) && !c.deeper { // as nearly always
		t := c
		t.skip(" \t", 3)
		if sign, _ := t.peek(); isAlnum(sign) {
			return false
		}
	}
	if !loginCall().Match(word) && !slices.ContainsFunc(word, mayHide) {
		return false
	}
	if hasFold(b[min(len(b), c.at):], "]::new") {
		c.at += len("]::new")
	}
	c.skip(" \t\"'", 3)
	switch sign, _ := c.peek(); sign {
	case '(':
		c.skip("( \t\r\n", widest)
		if q, _ := c.peek(); isQuote(q) || q == '\\' || c.deeper {
			return true
		}
	case '=', ':':
		c.skip("=: \t", 3)
		if open, _ := c.peek(); open != '(' && open != '[' {
			return c.deeper
		}
	default:
		return c.deeper
	}
	for i := 0; i < 120; i++ {
		r, size := c.peek()
		if c.at += size; size == 0 || r == '\n' {
			return false
		}
		if r == ',' {
			c.skip(" \t", 2)
			if q, _ := c.peek(); isQuote(q) || q == '\\' {
				return true
			}
		}
	}
	return false
}
