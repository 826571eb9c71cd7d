package redact

import (
	"bytes"
	"slices"

	"github.com/ccship/ccship/transcript"
)

// near is a cheap check of what is next to a literal. It must hold for escaped text as well.
type near uint8

const (
	anything    near = iota
	nearby           // a sign of an assignment follows soon
	assignment       // the name ends, and is assigned what may be a secret
	quotation        // the same, in quotes
	keyValue         // the same, behind an equals sign
	element          // the same, behind a tag's end
	member           // the same, behind a colon or an equals sign
	unquoted         // the same, without quotes, and neither words nor code
	spaced           // the name ends, and a space or a quote follows
	call             // the name ends, and what may be a secret follows in quotes, as an argument
	arguments        // the name ends, and a list follows that has something in quotes
	valued           // the name ends, and the member named value follows
	quoted           // a quote follows soon
	statement        // a quote follows, behind spaces and signs, or the name of a user does
	spacedValue      // the name ends, and what may be a secret follows behind spaces
	query            // a parameter of a URL
	keyID            // the identifier of a key, as long as they are
	variable
	userinfo
	usertoken // a long name of a user, without a password
	option    // an argument of an option
	bearer    // a token follows
	command   // an option follows on the line
	cookieOption
	piped     // something is written into a pipe before
	words     // the value is a word behind others
	hashed    // a hash follows
	slashed   // a slash follows
	login     // a slash follows, and an at sign
	account   // the kind of a password follows
	keyFile   // the name of a file with a key
	machine   // a password follows
	braced    // a brace follows, and in it the member named value
	port      // the number of a port ends, or a password of a user follows
	vendor    // the name of a vendor begins, and is assigned what is as long as a key
	cookies   // a sign of an assignment follows soon, and names with values
	acl       // a password follows as access lists have it, behind the name of a user
	peer      // the line has the names of a client and a server, and little else, before it
	dumped    // two hashes are before it
	replaced  // a value follows that stands for the named one
	loginName // a colon follows soon
	columns   // a list of names with that of a password is before it, and a quote follows
	formatted // a name is before it, and a quote follows soon
	section   // the name ends, and a bracket, a brace or the end of the line follows
	mailHost  // the name of a host goes on, and a user's with a password follows
	resulting // the member named result follows
	keyMember // the name ends, and a colon follows, and the member named key

	_ = uint(63 - keyMember) // ahead has a bit for each
)

// likely reports whether a hit can belong to a match, by what is next to it. It must hold for escaped text as well.
func (r *rule) likely(b []byte, at int, a *ahead) bool {
	return (!r.Token || startsWord(b, at) && isLong(b[at:]) && !inBase64(b, at)) &&
		(r.near == anything || a.holds(r.near, b, at))
}

// holds checks what is next to a position in a text.
func (n near) holds(b []byte, at int, a *ahead) bool {
	switch n {
	case assignment, quotation, keyValue, call, element, member:
		return n.isAssigned(b, at, a.look(b, at))
	case unquoted:
		return member.isAssigned(b, at, a.look(b, at)) && (a.unsure || isUnquoted(b, at))
	case bearer:
		return hasCredentials(b, at)
	case variable:
		return isAssigned(b, at) && a.look(b, at).promising
	case option:
		return isOption(b, at) && hasArgument(b, at)
	case userinfo, usertoken:
		return hasUserinfo(b, at, n == userinfo)
	case command, cookieOption:
		return hasOption(b[at:min(len(b), at+longestCommand)])
	case arguments:
		return hasArguments(b, at)
	case valued:
		if a.look(b, at).plural {
			return false
		}
		return hasValue(b, at)
	case spaced:
		c := chars{b: b, at: at}
		c.word()
		return c.skip(" \t\"'+:", 4) > 0 // + is a space of a form
	case braced:
		return !a.look(b, at).plural && hasAny(b[at:min(len(b), at+longestBetween)], "{%\\&") && hasValue(b, at)
	case statement:
		return hasString(b, at)
	case spacedValue:
		return hasSpacedValue(b, at)
	case machine:
		return isLogin(b, at)
	case port:
		return b[at] != ':' || endsPort(b, at)
	case vendor:
		return hasVendorKey(b, at)
	case keyID:
		return startsWord(b, at) && isLong(b[at:])
	}
	return n.sees(b, at) && n.stands(b, at)
}

// stands checks what a file or a program has around a position.
func (n near) stands(b []byte, at int) bool {
	switch n {
	case acl:
		return hasListed(b, at)
	case peer:
		return isPeer(b, at)
	case dumped:
		return at > 33 && isHex(b[at-32:at])
	case replaced:
		return hasFallback(b, at)
	case keyMember:
		return hasKeyMember(b, at)
	case loginName:
		return hasAny(b[at+len("user"):min(len(b), at+72)], ":%&\\")
	case columns:
		before := bytes.ToLower(b[max(0, at-200):at])
		look(len(before))
		named := bytes.Contains(before, []byte("pass")) || bytes.Contains(before, []byte("pwd"))
		return (named || hasAny(before, "%&\\")) && quoted.sees(b, at)
	case formatted:
		return formatName().Match(b[max(0, at-16):at]) && quoted.sees(b, at)
	case section:
		return beginsSection(b, at)
	case mailHost:
		after := b[at:min(len(b), at+100)]
		look(len(after))
		return hasAny(after, "@%&") && hasAny(after, ":%&")
	case resulting:
		most := 600
		if b[at] == 'a' { // of attributes, which many things have
			most = 48
		}
		after := b[at:min(len(b), at+most)]
		look(len(after))
		return bytes.Contains(after, []byte("result"))
	case keyFile:
		return at > 5 && isAlnum(b[at-1]) && at+36 < len(b)
	case hashed:
		return b[at] != 'm' || at+35 <= len(b) && isHex(b[at+3:at+35])
	}
	return true
}

// sees looks for signs next to a position.
func (n near) sees(b []byte, at int) bool {
	after := b[at:min(len(b), at+120)]
	switch n {
	case nearby:
		return hasAny(after[:min(len(after), 48)], "=:,%&\"'\\")
	case cookies:
		return hasAny(after[:min(len(after), 48)], "=:,%&")
	case quoted:
		return hasAny(after[:min(len(after), 80)], "'\"\\%&")
	case query:
		return hasAny(b[max(0, at-32):at], "?&#;%")
	case slashed:
		return hasAny(after, "/")
	case account:
		after = bytes.ToLower(after)
		return bytes.Contains(after, []byte("secret")) || bytes.Contains(after, []byte("password"))
	case login:
		i := bytes.IndexByte(after, '/')
		return i >= 0 && hasAny(after[i:], "@")
	case piped:
		before := b[max(0, at-200):at]
		look(len(before))
		return bytes.Contains(before, []byte("echo")) || bytes.Contains(before, []byte("printf")) ||
			bytes.Contains(before, []byte("<<<")) || bytes.Contains(before, []byte("yes "))
	}
	return true
}

// isAssigned reports whether a name, given by a position in it, is assigned a value that may be a secret.
func (n near) isAssigned(b []byte, at int, a *ahead) bool {
	switch {
	case a.plural:
		return false
	case a.unsure:
		return true
	case n == element && a.sign == '=': // of an attribute
		return hasAny(b[at:min(len(b), at+160)], ">")
	case a.sign == 0 && n == call: // behind a space
		c := chars{b: b, at: at}
		c.word()
		if c.skip(" \t", widest) == 0 {
			return c.deeper
		}
		for n := 0; n < 2 && c.skip("-", 1) > 0; n++ { // an option before it
			c.word()
			c.skip(" \t", widest)
		}
		var buf [64]byte
		_, quoted, value := c.assigned('(', buf[:0])
		return c.deeper || quoted && isPromising(value)
	case a.sign == 0, n == keyValue && a.sign != '=', n == quotation && !a.quoted,
		n == call && (!a.quoted || a.sign != '(' && a.sign != ','), n == element && a.sign != '>',
		n == member && (a.sign != ':' && a.sign != '=' || a.code):
		return false
	}
	return a.promising
}

func isHex(b []byte) bool {
	return !slices.ContainsFunc(b, func(c byte) bool { return transcript.HexDigit(c) < 0 })
}

func hasAny(b []byte, signs string) bool { return bytes.ContainsAny(b, signs) }

// longestCommand bounds how far from a program's name an option is looked for, in bytes.
const longestCommand = 400

// hasOption reports whether a text has an option on its first line, or a pipe.
func hasOption(b []byte) bool {
	for i := 1; i+1 < len(b); i++ {
		look(1)
		switch c := b[i]; {
		case c == '\n':
			return b[i-1] == '\\'
		case (c == '-' || c == '/' || c == '|') && (isSpace(b[i-1]) || b[i-1] == '+'), c == '\\', c == ':' && b[i-1] != ' ',
			c == '%', c == '&':
			return true
		}
	}
	return false
}

// startsWord reports whether no letter or digit is before an offset. The letter of an escape does not count, nor does
// that of a terminal's sequence.
func startsWord(b []byte, at int) bool {
	if at == 0 || !isAlnum(b[at-1]) && b[at-1] != '_' {
		return true
	}
	if at >= 3 && b[at-3] == '%' {
		return true
	}
	return at >= 2 && b[at-2] == '\\' || at >= 6 && b[at-6] == '\\' && b[at-5] == 'u' || endsSequence(b[:at])
}

// inBase64 reports whether a position is within base64: behind a sign any word may begin, and so may one at the
// beginning of a line, unless the line before begins as that does, as in a list of tokens.
func inBase64(b []byte, at int) bool {
	before, least := endOfLine(b[:at]), 24
	switch {
	case len(before) < at:
		least = 60
	case at == 0 || b[at-1] != '/' && b[at-1] != '+':
		return false
	}
	from := len(before)
	for from > 0 && len(before)-from < 100 && (isAlnum(before[from-1]) || before[from-1] == '/' || before[from-1] == '+') {
		from--
	}
	if from > 0 && from < len(before) && before[from-1] == '\\' { // the letter of a line's end
		from++
	}
	return len(before)-from >= least && (len(before) == at || !bytes.HasPrefix(before[from:], b[at:min(len(b), at+4)]))
}

// endOfLine returns a text without the line's end that it ends with, which may be escaped.
func endOfLine(b []byte) []byte {
	for _, c := range []string{"\nn", "\rr"} {
		switch n := len(b); {
		case n > 0 && b[n-1] == c[0]:
			b = b[:n-1]
		case n > 1 && b[n-1] == c[1] && b[n-2] == '\\':
			b = bytes.TrimRight(b[:n-1], `\`)
		}
	}
	return b
}

// leastToken is the length of the shortest token, in bytes.
const leastToken = 16

// isLong reports whether a text begins with as many bytes as a token has, or with an escape after some of them.
func isLong(b []byte) bool {
	for i, c := range b {
		switch {
		case i == leastToken, mayHide(c):
			return true
		case c == ' ' && i == len("SSWS"):
		case c <= ' ', c == '"', c == '\'', c == '`', c == ',', c == ')':
			return false
		}
	}
	return len(b) >= leastToken
}

const (
	leastValue  = 6   // the length of the shortest value of a variable that counts, in bytes
	longestRest = 128 // no variable's name is longer
)

// isAssigned reports whether a variable, given by a position in its name, is assigned a value. An escape may hide that.
func isAssigned(b []byte, at int) bool {
	for most := min(len(b), at+longestRest); at < most && isUpper(b[at]); {
		at++
	}
	for start := at; at < len(b) && at-start < 4 && hasAny(b[at:at+1], "\"'] ?"); {
		at++
	}
	if at == len(b) || b[at] != '=' && b[at] != ':' {
		return at < len(b) && mayHide(b[at])
	}
	for at++; at < len(b) && hasAny(b[at:at+1], "=> "); {
		at++
	}
	value := b[at:min(len(b), at+leastValue)]
	for i, c := range value {
		switch {
		case mayHide(c), i == 0 && hasAny([]byte{c}, "\"'`"): // a quoted value may have spaces
			return true
		case isSpace(c):
			return false
		}
	}
	return true
}

// isUpper reports whether a byte may be part of a variable's name.
func isUpper(c byte) bool { return c-'0' <= 9 || c >= 'A' && c <= 'Z' || c == '_' }

func isSpace(c byte) bool { return bytes.IndexByte([]byte(" \t\n\f\r"), c) >= 0 }

// longestOption bounds the names of options, in bytes.
const longestOption = 40

// isOption reports whether a word, given by its position, is in a name that begins with a hyphen.
func isOption(b []byte, at int) bool {
	for i := at; i >= max(0, at-longestOption); i-- {
		switch c := b[i]; {
		case c == '-' && (i == 0 || !isAlnum(b[i-1])):
			return true
		case c != '-' && !isAlnum(c):
			return false
		}
	}
	return false
}

// hasUserinfo reports whether a URL, given by the position of its "://", names a user, with a password or without one.
func hasUserinfo(b []byte, at int, password bool) bool {
	colon := false
	for _, c := range b[at+3 : min(len(b), at+3+256)] {
		switch c {
		case ':':
			colon = true
		case '@':
			return colon == password
		case '/', ' ', '"', '\'', '<', '>', '\\', '\n', '\t', '?', '#', '`', '(', ')':
			return false
		}
	}
	return false
}

func isAlnum(c byte) bool { return c-'0' <= 9 || c|0x20 >= 'a' && c|0x20 <= 'z' }
