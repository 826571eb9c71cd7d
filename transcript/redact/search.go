package redact

import (
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/ccship/ccship/transcript"
)

// literal is a text that a secret's surroundings contain.
type literal struct {
	text string // in lower case if it folds
	fold bool
	// token: what follows is a part of a secret.
	token bool
	// counted: with an s behind it, it is a number of tokens, as every record of a transcript has them.
	counted bool
	// escape: it begins an escape that may split another literal.
	escape bool
}

func newLiteral(text string, fold, token bool) literal {
	if fold {
		text = strings.ToLower(text)
	}
	return literal{text: text, fold: fold, token: token, counted: fold && strings.HasSuffix(text, "token")}
}

func (l literal) matches(b []byte) bool {
	switch {
	case l.text == discordForm:
		return isDiscord(b)
	case l.text == airtableForm:
		return isAirtable(b)
	case l.text == harnessForm:
		return isHarness(b)
	case len(b) < len(l.text):
		return false
	}
	if !l.fold {
		return string(b[:len(l.text)]) == l.text
	}
	for i := range len(l.text) {
		if lower(b[i]) != l.text[i] {
			return false
		}
	}
	rest := b[len(l.text):]
	switch {
	case l.escape:
		return b[0] == '\\' && (b[1] == '/' || b[1] == 'u' && hidesAsUnicode(b)) || invisible(b) > 0
	case l.counted:
		return len(rest) == 0 || rest[0] != 's' || len(rest) > 1 && isTokenByte(rest[1])
	}
	return true
}

func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c | 0x20
	}
	return c
}

// hit is a literal found in a text.
type hit struct{ at, literal int }

// search finds many literals in one pass. It looks at every second position of a text: three or four bytes there, in
// lower case, are in no literal nearly always, which one bit shows.
type search struct {
	literals []literal
	discord  int                   // the literal discordForm; -1: there is none
	airtable int                   // the literal airtableForm; -1: there is none
	harness  int                   // the literal harnessForm; -1: there is none
	bits     [3][grams / 64]uint64 // by the hash of three bytes, by that of four, and by another of either
	bucket   [grams]uint16         // the bucket of a hash
	buckets  [][]entry             // the first is empty
}

// entry is a literal, and where in it some bytes are.
type entry struct {
	want, mask uint32 // the literal's first bytes in lower case, and those of them that count
	n, at      int32
}

const (
	grams = 1 << 17
	// shortest is the length of the shortest literal; a long one is found by four bytes.
	shortest, long = 3, 5
	// folded is the bit in which the cases of a letter differ, in eight bytes.
	folded = 0x2020202020202020
)

// three returns the hash of the first three bytes of a word, whose letters are in lower case: short literals are found
// by them. Its factor, and that of four, are those of a few hundred with which the fewest sequences of transcripts and
// source code collide with one of a literal.
func three(word uint64) uint32 { return uint32(word) & 0xffffff * 0xe49428f5 >> 15 }

// four returns the hash of the first four bytes of a word.
func four(word uint64) uint32 { return uint32(word) * 0xfdaa700f >> 15 }

// second is another hash of what has one of these: most of what shares a bit of the first does not share this one.
func second(word uint64, three bool) uint32 {
	if three {
		word &= 0xffffff
	}
	return uint32(word) * 0xeba94c4f >> 15
}

func (s *search) has(n int, h uint32) bool { return s.bits[n][h/64]>>(h%64)&1 != 0 }

func (s *search) set(n int, h uint32) { s.bits[n][h/64] |= 1 << (h % 64) }

// escapes are the beginnings of a backslash's escapes that can split a literal, and of characters without width.
var escapes = []string{`\/`, `\u002`, `\u003`, `\u004`, `\u005`, `\u006`, `\u007`, `\u00ad`, `\u200`, `\u202`, `\u206`, `\ufeff`,
	"\xc2\xad", "\xe2\x80", "\xe2\x81", "\xef\xbb"}

func newSearch(literals []literal) *search {
	for _, text := range escapes {
		literals = append(literals, literal{text: text, fold: true, escape: true})
	}
	s := &search{literals: literals, discord: -1, airtable: -1, harness: -1, buckets: make([][]entry, 1)}
	for n, l := range literals {
		switch l.text {
		case discordForm:
			s.discord = n
			continue
		case airtableForm:
			s.airtable = n
			continue
		case harnessForm:
			s.harness = n
			continue
		}
		if slices.Contains(commonEnds, l.text) { // with any byte before it
			s.enter(l.text, n, 0)
			for c := range 256 {
				s.enterLong(string([]byte{byte(c)})+l.text, n, -1)
			}
			continue
		}
		if len(l.text) < shortest { // with any byte before or behind it
			for c := range 256 {
				s.enter(l.text+string([]byte{byte(c)}), n, 0)
				s.enter(string([]byte{byte(c)})+l.text, n, -1)
			}
			continue
		}
		if len(l.text) == shortest { // with any byte behind it
			s.enter(l.text, n, 0)
			for c := range 256 {
				if l.mayFollow(byte(c)) {
					s.enter(l.text[1:]+string([]byte{byte(c)}), n, 1)
				}
			}
			continue
		}
		at := rarest(l.text)
		s.enter(l.text[at:], n, at)
		s.enter(l.text[at+1:], n, at+1)
	}
	return s
}

// commonEnds are literals whose second half is in too many words to find them by it.
var commonEnds = []string{"cio", "BSA", "YCA"}

// mayFollow reports whether a byte may be behind a literal, in a secret or after a name.
func (l literal) mayFollow(c byte) bool {
	switch l.text {
	case "kty":
		return !isAlnum(c) // a name is over there
	case "://":
		return c > ' ' // a name or a password begins there
	}
	if !l.token && !strings.ContainsAny(l.text, "$~") && l.text != ":AA" {
		return c < utf8.RuneSelf || begins[c]
	}
	if strings.HasPrefix(l.text, "SK") || strings.HasPrefix(l.text, "AC") {
		return transcript.HexDigit(c) >= 0 || begins[c]
	}
	return isTokenByte(c) || begins[c] || strings.IndexByte("./+~$", c) >= 0
}

// enter notes that the first bytes of a text are in a literal: three of a short one, four of a long one.
func (s *search) enter(text string, literal, at int) {
	if len(s.literals[literal].text) >= long {
		s.enterLong(text, literal, at)
		return
	}
	word := uint64(text[0]) | uint64(text[1])<<8 | uint64(text[2])<<16 | folded
	s.set(0, three(word))
	s.set(2, second(word, true))
	s.add(three(word), literal, at)
}

// enterLong notes that the first four bytes of a text are in a literal.
func (s *search) enterLong(text string, literal, at int) {
	word := uint64(binary.LittleEndian.Uint32([]byte(text))) | folded
	s.set(1, four(word))
	s.set(2, second(word, false))
	s.add(four(word), literal, at)
}

// add puts a literal into the bucket of a hash.
func (s *search) add(h uint32, literal, at int) {
	if s.bucket[h] == 0 {
		s.bucket[h] = uint16(len(s.buckets))
		s.buckets = append(s.buckets, nil)
	}
	all := &s.buckets[s.bucket[h]]
	start := []byte(s.literals[literal].text + "\x00\x00")
	e := entry{binary.LittleEndian.Uint32(start) | folded&math.MaxUint32, math.MaxUint32, int32(literal), int32(at)}
	if n := len(start) - 2; n < 4 {
		e.mask >>= 32 - 8*n
	}
	if e.want &= e.mask; !slices.Contains(*all, e) {
		*all = append(*all, e)
	}
}

// find appends the hits in a text, nearly in the order of their positions.
func (s *search) find(hits []hit, text []byte) []hit {
	i, short, long := 0, &s.bits[0], &s.bits[1]
	for ; i+8 <= len(text); i += 6 {
		w := binary.LittleEndian.Uint64(text[i:]) | folded
		a, b, c, d, e, f := three(w), three(w>>16), three(w>>32), four(w), four(w>>16), four(w>>32)
		x := (short[a/64]>>(a%64))&1 | (long[d/64]>>(d%64))&1<<1
		y := (short[b/64]>>(b%64))&1 | (long[e/64]>>(e%64))&1<<1
		z := (short[c/64]>>(c%64))&1 | (long[f/64]>>(f%64))&1<<1
		if x|y|z == 0 {
			continue
		}
		if x != 0 {
			hits = s.near(hits, text, i, w)
		}
		if y != 0 {
			hits = s.near(hits, text, i+2, w>>16)
		}
		if z != 0 {
			hits = s.near(hits, text, i+4, w>>32)
		}
	}
	var rest [16]byte
	copy(rest[:], text[i:])
	for n := i; n < len(text); n += 2 {
		w := binary.LittleEndian.Uint64(rest[n-i:]) | folded
		hits = s.near(hits, text, n, w)
	}
	if n := len(text) - shortest; n >= 0 && (n-i)%2 != 0 { // no byte is behind it with which its second one finds it
		w := uint64(text[n]) | uint64(text[n+1])<<8 | uint64(text[n+2])<<16 | folded
		found := len(hits)
		hits = s.near(hits, text, n, w)
		hits = hits[:found+len(slices.DeleteFunc(hits[found:], func(h hit) bool {
			l := s.literals[h.literal]
			return h.at != n || len(l.text) != shortest || l.mayFollow(' ') || // as which the end counts
				slices.Contains(hits[max(0, found-8):found], h)
		}))]
	}
	if s.discord >= 0 {
		hits = s.dotted(hits, text)
	}
	return hits
}

func isTokenByte(c byte) bool { return isAlnum(c) || c == '_' || c == '-' }

// near appends the hits that a word at a position begins or is in.
func (s *search) near(hits []hit, text []byte, place int, w uint64) []hit {
	if h := three(w); s.has(0, h) && s.has(2, second(w, true)) {
		hits = s.at(hits, text, place, h)
	}
	if h := four(w); s.has(1, h) && s.has(2, second(w, false)) {
		hits = s.at(hits, text, place, h)
	}
	return hits
}

// at appends the hits that the bytes at a position are in.
func (s *search) at(hits []hit, text []byte, place int, h uint32) []hit {
	for _, e := range s.buckets[s.bucket[h]] {
		at := place - int(e.at)
		if at < 0 || at+4 <= len(text) && (binary.LittleEndian.Uint32(text[at:])|folded&math.MaxUint32)&e.mask != e.want {
			continue
		}
		if s.literals[e.n].matches(text[at:]) {
			hits = append(hits, hit{at, int(e.n)})
		}
	}
	return hits
}
