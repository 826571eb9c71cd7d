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
	"strings"
	"sync"
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
