package redact

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"errors"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/ccship/ccship/transcript"
)

// Key makes tokens. Without it nobody can test a guess against a token.
type Key [32]byte

// ErrKey is returned for a text that is no key.
var ErrKey = errors.New("not a masking key: 64 hexadecimal digits are expected")

// NewKey makes a random key.
func NewKey() Key {
	var k Key
	_, _ = rand.Read(k[:]) // never fails
	return k
}

// ParseKey reads what Text wrote. White space around it is ignored.
func ParseKey(text string) (Key, error) {
	var k Key
	b, err := hex.DecodeString(strings.TrimSpace(text))
	if err != nil || len(b) != len(k) {
		return k, ErrKey
	}
	return Key(b), nil
}

// Text returns the key as it is stored and exported.
func (k Key) Text() string { return hex.EncodeToString(k[:]) }

// Lengths of the hash in a token, in characters of five bits.
const (
	fullHash  = 26
	namedHash = 10 // the fewest next to a rule's name
	shortHash = 8  // the fewest at all
)

var digits = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// token writes a secret's token over out: [rule:hash...], [:hash] if the name does not fit, asterisks if no hash does.
// Equal secrets give equal hashes, however they are escaped. It reports whether the token has a hash.
func (k Key) token(out, secret []byte, rule string) bool {
	n := len(out)
	switch {
	case n >= len("[:]")+len(rule)+namedHash:
	case n >= len("[:]")+shortHash:
		rule = ""
	default:
		for i := range out {
			out[i] = '*'
		}
		return false
	}
	hash := k.hash(secret)
	out = append(out[:0], '[')
	out = append(out, rule...)
	out = append(out, ':')
	out = append(out, hash[:min(fullHash, n-1-len(out))]...)
	for len(out) < n-1 {
		out = append(out, '.')
	}
	_ = append(out, ']')
	return true
}

// hash identifies a secret by its bytes without any layer of escapes.
func (k Key) hash(secret []byte) string {
	h := hmac.New(sha256.New, k[:])
	h.Write(plain(secret))
	return digits.EncodeToString(h.Sum(nil))
}

var tokenForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\[[a-z0-9-]{0,40}:[a-z2-7]{8,26}\.*\]`)
})

// wideForm is tokenForm in UTF-16, from the first bracket to the last.
var wideForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\[\x00(?:[a-z0-9-]\x00){0,40}:\x00(?:[a-z2-7]\x00){8,26}(?:\.\x00)*\]`)
})

// Proves reports whether token stands for the given bytes of a disk: it is what this key makes of them.
func (m *Masker) Proves(token, disk []byte) bool { return m.proves(token, disk, narrow) }

// proves is Proves for texts of an order.
func (m *Masker) proves(token, disk []byte, o order) bool {
	if len(token) != len(disk) {
		return false
	}
	short := token
	if o != narrow {
		short = o.narrowed(nil, token)
	}
	if loc := tokenForm().FindIndex(short); loc == nil || loc[0] != 0 || loc[1] != len(short) {
		return false
	}
	rule, _, _ := bytes.Cut(short[1:], []byte(":"))
	again := bytes.Clone(disk)
	return o.token(m.key, again, string(rule)) && bytes.Equal(again, token)
}

// HasTokens reports whether a text looks as if secrets in it were masked, also those too short for a hash.
func HasTokens(text []byte) bool {
	return bytes.Contains(text, []byte("***")) || bytes.Contains(text, []byte("*\x00*\x00*")) || len(placesOf(text)) > 0
}

// tokens returns the positions of tokens in a text: nothing there is masked again.
func tokens(text []byte) [][]int { return tokenForm().FindAllIndex(text, -1) }

// keyLines finds the lines of private keys that are elements of one array each, as tools report the lines of a patch.
type keyLines struct {
	array int     // which one; see walker.opened
	open  bool    // a key has begun, and not ended
	lines []Range // what belongs to a key if its end follows
}

const (
	wholeLine = 60 // a line of a key is as long, but for the last one
	keyRule   = "private-key"
)

var (
	keyLine = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`\A[+ -]?[\s>|]*((?:[A-Za-z0-9+/]|\\/){4,90}={0,2})(?:\s|\\[nr])*\z`)
	})
	// keyHeader is what else may be between the lines of a key: nothing, a header, a line that is masked.
	keyHeader = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`\A[+ -]?\s*(?:[A-Za-z-]+: [^"]{0,80}|\[[a-z-]*:[a-z2-7]{8,26}\.*\]|\**)?(?:\s|\\[nr])*\z`)
	})
)

var keyEdges = [][]byte{[]byte("PRIVATE KEY-----"), []byte("PRIVATE KEY BLOCK-----")}

// isKeyEdge reports whether a text has the first or the last line of a private key.
func isKeyEdge(text []byte) bool {
	return bytes.Contains(text, keyEdges[0]) || bytes.Contains(text, keyEdges[1])
}

// isKeyEdge reports whether a hit is part of such a line. The rules for keys keep all of these hits.
func (m *Masker) isKeyEdge(h hit) bool { return isKeyEdge([]byte(m.search.literals[h.literal].text)) }

// add appends to ranges what the walker's string shows to be lines of a key.
func (k *keyLines) add(ranges []Range, w *walker) []Range {
	if w.name != "" || w.opened != k.array {
		*k = keyLines{array: w.opened, lines: k.lines[:0]}
	}
	if w.name != "" {
		return ranges
	}
	text := w.line[w.start:w.end]
	if isKeyEdge(text) {
		begin, end := bytes.LastIndex(text, []byte("-----BEGIN ")), bytes.LastIndex(text, []byte("-----END "))
		if end >= 0 && !k.open {
			ranges = append(ranges, k.lines...)
		}
		k.open, k.lines = begin > end, k.lines[:0]
		return ranges
	}
	loc := keyLine().FindSubmatchIndex(text)
	switch {
	case loc == nil && keyHeader().Match(text):
		return ranges
	case loc == nil || !k.open && len(k.lines) == 0 && loc[3]-loc[2] < wholeLine:
		k.open, k.lines = false, k.lines[:0]
		return ranges
	}
	r := Range{Start: w.start + loc[2], End: w.start + loc[3], Rule: keyRule}
	if k.open {
		return append(ranges, r)
	}
	k.lines = append(k.lines, r)
	return ranges
}

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

// hidesBytes reports whether a text has percent-encoding or references of HTML, which can split a literal. The search
// finds what else can: \/, \u0020 to \u007f, and invisible characters.
func hidesBytes(text []byte) bool { return hasByteEscape(text, '%') || hasByteEscape(text, '&') }

// hasByteEscape reports whether a text has such an escape that begins with a byte.
func hasByteEscape(text []byte, first byte) bool {
	for {
		i := bytes.IndexByte(text, first)
		if i < 0 || i+1 >= len(text) {
			return false
		}
		text = text[i:]
		switch first {
		case '%':
			if c, size := percent(text); size > 0 && c >= ' ' && c < 0x7f {
				return true
			}
		case '&':
			if _, size := reference(text); size > 0 {
				return true
			}
		}
		text = text[1:]
	}
}

// hidesAsUnicode reports whether \uXXXX at the start of a text is an ASCII character or an invisible one.
func hidesAsUnicode(text []byte) bool {
	r, ok := transcript.Hex4(text[1:])
	return ok && (r >= ' ' && r < 0x7f || invisible(utf8.AppendRune(nil, r)) > 0)
}
