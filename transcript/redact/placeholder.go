package redact

import (
	"bytes"
	"regexp"
	"slices"
	"unicode"
	"unicode/utf8"
)

// placeholder reports whether a text replaces a secret in an example, a template or code. loose: nothing
// but its surroundings makes the text a secret.
func placeholder(b []byte, loose bool) bool {
	look(len(b))
	if distinct(b) < min(6, len(b)/2) || bytes.Contains(b, []byte("EXAMPLE")) || bytes.Contains(b, []byte("xxxxxx")) ||
		bytes.Contains(b, []byte("...")) || bytes.Contains(b, []byte("XXXXXX")) || bytes.Contains(b, []byte("****")) {
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
	return placeholderWords().Match(b) || templateForm().Match(b)
}

// templateParts occur in code and templates that insert a secret.
var templateParts = []string{
	"${", "{{", "}}", "process.env", "environ", "getenv", "Getenv", "secrets.", "://", "():",
}

// templateForm is a variable, what a program prints, an angle-bracketed name, a path, a name that a test fills in, a
// terminal's colour, or an encoded quote, behind which a deeper layer shows the value.
var templateForm = lazily(func() *regexp.Regexp {
	return regexp.MustCompile(`^[$%]\w*[%)]?$|^\$[A-Za-z_][\w.>:(-]*|\$\([\w ./-]+\)|<[^<>]*>|^<|^&(?:#|quot;|apos;)|^%2[27]|^__\w+?__(?:&|$)|^\\(?:x1[bB]|033|e)\[|^[/~](?:[a-z0-9._-]+/)*[a-z0-9._-]+$`)
})

// placeholderWords occur in what documentation writes for a secret.
var placeholderWords = lazily(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)example|changeme|change[-_]me|placeholder|redacted|(?:^|[^a-z0-9])(?:your|dummy|replace|insert)|` +
		`(?:^|[^a-z0-9])todo(?:[^a-z0-9]|$)`)
})

// ordinary reports whether a text that only its surroundings make a secret is a word, a number, a time, a usual password,
// or code. In a URL or behind an option, any other word can be a password.
func ordinary(b []byte, where near) bool {
	look(8 * len(b)) // expressions read it
	if timeForm().Match(b) {
		return true
	}
	switch where {
	case cookies:
		return isCookies(b)
	case cookieOption:
		return isWords(b)
	case words:
		if propertyForm().Match(b) {
			return true
		}
		fallthrough
	case userinfo, command, slashed, login, quoted, statement:
		return slices.Contains(usualPasswords, string(bytes.ToLower(b))) || len(bytes.Trim(b, "0123456789")) == 0 && len(b) < 6
	}
	return !slices.ContainsFunc(b, func(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }) || isWords(b) || codeForm().Match(b)
}

// timeForm is a time: columns and settings say with it when a password expires.
var timeForm = lazily(func() *regexp.Regexp {
	return regexp.MustCompile(`^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d(?::\d\d)?(?:[.,]\d{1,9})?(?:[Zz]|[+-]\d\d:?\d\d)?[,;)]*$`)
})

// isWords reports whether a text is words of any language.
func isWords(b []byte) bool {
	b = bytes.Map(func(r rune) rune {
		if r >= utf8.RuneSelf && unicode.IsLetter(r) {
			return 'e'
		}
		return r
	}, b)
	return wordsForm().Match(b) && isPronounced(b)
}

// isCookies reports whether a list of cookies has none with a value that may be a secret.
func isCookies(b []byte) bool {
	for pair := range bytes.SplitSeq(b, []byte(";")) {
		name, value, _ := bytes.Cut(bytes.TrimSpace(pair), []byte("="))
		if !cookieAttribute().Match(name) && len(value) >= leastValue && !isWords(value) {
			return false
		}
	}
	return true
}

// cookieAttribute is the name of what says where and how long a cookie is valid.
var cookieAttribute = lazily(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)^(?:expires|max-age|domain|path|secure|httponly|samesite|partitioned|priority|version|comment)$`)
})

// isPronounced reports whether vowels and consonants alternate as in words: what is random has too few vowels, too many
// consonants in a row, or changes its case too often.
func isPronounced(b []byte) bool {
	letters, vowels, parts, run, longest := 0, 0, 1, 0, 0
	for i, c := range b {
		switch {
		case c|0x20 < 'a' || c|0x20 > 'z':
			run = 0
			continue
		case bytes.IndexByte([]byte("aeiouy"), c|0x20) >= 0:
			vowels++
			run = 0
		default:
			run++
		}
		letters++
		if c < 'a' && i > 0 && b[i-1] >= 'a' {
			parts++
			run = min(run, 1)
		}
		longest = max(longest, run)
	}
	return (longest < 5 || longest == 5 && parts == 1) && 100*vowels >= 15*letters && (100*vowels >= 25*letters || letters >= 4*parts)
}

var (
	// wordsForm is words, alone or as parts of a name or of an expression.
	wordsForm = lazily(func() *regexp.Regexp {
		return regexp.MustCompile(`^[^A-Za-z0-9]*(?:(?:[A-Z]?[a-z]+(?:[A-Z]{1,4}[a-z]{2,}|Id|Db|Is|To|Of|In|Or|At|By|On|No|My|Go|Up|It|If|As)*` +
			`[A-Z]{0,4}[0-9]?|[A-Z]{1,5}[a-z]{2,}|[A-Z]+)(?:[_./:,;&*+#(){}\[\]<>= -]+|$))+$`)
	})
	// codeForm is an expression of a program: a call, an element, a composite literal, a member, a constant, a version, a
	// file, a line of one, a name with a number of bits; the scope and the name of AWS's signatures; the name of a field with a number; the next name.
	codeForm = lazily(func() *regexp.Regexp {
		return regexp.MustCompile(`^[*&]?(?:[A-Za-z_]+[0-9]{0,2}|[a-z]+[0-9]{1,5}|[A-Z0-9_]+)(?:(?:[?!]?\.|::|->)(?:[A-Za-z_]+[0-9]{0,2}|[A-Z][A-Z0-9_]+))+[,;)]*$|` +
			`^[*&!+]?[A-Za-z_](?:\w|[?!]?\.|::)*!?(?:\(|\[|\{|\))|^\w+(?:(?:\.|::)[A-Za-z_]+)*(?:\.|::)[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+[,;)]*$|^\[\w*\]|^v?\d+(?:\.\d+)+|^[*&?\[\]]*(?:u?int|float|complex)(?:8|16|32|64|128)[,;)}\]]*$|^0x[0-9A-Fa-f_]{1,20}[,;)]*$|^[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+$|^[a-z]+(?:[-_][a-z0-9]{1,12})+$|^(?:Test|Benchmark|Fuzz|Example)(?:[A-Z]|[^\x00-\x7f])|` +
			`^[*&(]?[A-Za-z_][\w.]*[a-z0-9](?:Key|Token|Secret|Password|Passphrase|Cert|Certificate|Credentials?|Authorization)[0-9]*[,;)}]*$|` +
			`^[A-Za-z][a-z]+(?:[A-Z][a-z]+){0,3}(?:8|16|32|64|128|256|384|512|509|25519)(?:[A-Z][a-z]+){1,4}(?:[<|?.&\[].*|[,;)}\]]*)$|` +
			`^(?:[\w.-]+/)*[\w.-]+\.[A-Za-z]{1,5}:\d+(?::\d+)?[,;:)]*$|` +
			`^(?:[\w.@-]+/)*[\w.@-]+\.(?:go|py|rb|rs|java|kts?|swift|cs|php|cc|cpp|sh|exp|[cm]?[jt]sx?|vue|json|ya?ml|toml|md|txt|html|css|sql)[,;:)]*$|` +
			`^[\w%-]{2,40}/\d{5,10}/[a-z0-9-]+/[a-z0-9-]+/[a-z0-9_]+(?:[,;/]|$)|^[\w%.*]{1,6}4-HMAC-SHA256$|^[a-z_.]+![rsa]$|^[\w.-]+:$|` +
			`^(?i:(?:access|secret|session|security|api|auth|key|token|id|user){2,}|token|session)[-_]?[0-9]{1,3}$`)
	})
)

// propertyForm is a property that a build is given, or an option: /p:Configuration=Release, --help.
var propertyForm = lazily(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Z][A-Za-z]+=[\w.$()-]*$|^--[a-z]+(?:-[a-z]+)*$`)
})

// usualPasswords are what documentation and local setups write into URLs.
var usualPasswords = []string{
	"password", "passwd", "pass", "postgres", "secret", "root", "test", "guest", "admin", "user", "mysql", "redis",
	"token", "abc", "xyz", "pwd", "sample",
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
