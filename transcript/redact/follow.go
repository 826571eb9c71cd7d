package redact

import (
	"bytes"
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
	var buf [64]byte
	value := c.value(buf[:0], "<&")
	return c.deeper || isPromising(value)
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
