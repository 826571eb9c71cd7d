package redact

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
	"unicode/utf8"
)

// literal is a text that a secret's surroundings contain.
type literal struct {
	text string // in lower case if it folds
	fold bool
}

func newLiteral(text string, fold bool) literal {
	if fold {
		text = strings.ToLower(text)
	}
	return literal{text, fold}
}

func (l literal) matches(b []byte) bool {
	if len(b) < len(l.text) {
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

// search finds many literals in one pass. It looks at every second place of a text: three bytes there, in lower case,
// are in no literal nearly always, which one bit tells.
type search struct {
	literals []literal
	longest  int                     // the length of the longest literal
	bits     [grams / 64]uint64      // by the hash of three bytes
	bucket   [grams]uint16           // the bucket of a hash
	buckets  [][]struct{ n, at int } // a literal, and where in it the three bytes are; the first is empty
}

const (
	grams = 1 << 17
	// shortest is the length of the shortest literal.
	shortest = 3
	// folded is the bit in which the cases of a letter differ, in eight bytes.
	folded = 0x2020202020202020
)

// gram is the hash of the first three bytes of a word, whose letters are in lower case.
func gram(word uint64) uint32 { return uint32(word) & 0xffffff * 0x9e3779b1 >> 15 }

func newSearch(literals []literal) *search {
	s := &search{literals: literals, buckets: make([][]struct{ n, at int }, 1)}
	for n, l := range literals {
		s.longest = max(s.longest, len(l.text))
		if len(l.text) == shortest { // with any byte behind it
			s.enter(l.text, n, 0)
			for c := range 256 {
				s.enter(l.text[1:]+string([]byte{byte(c)}), n, 1)
			}
			continue
		}
		at := rarest(l.text)
		s.enter(l.text[at:], n, at)
		s.enter(l.text[at+1:], n, at+1)
	}
	return s
}

// enter notes that three bytes are in a literal.
func (s *search) enter(text string, literal, at int) {
	h := gram(uint64(text[0]) | uint64(text[1])<<8 | uint64(text[2])<<16 | folded)
	if s.bucket[h] == 0 {
		s.bucket[h] = uint16(len(s.buckets))
		s.buckets = append(s.buckets, nil)
		s.bits[h/64] |= 1 << (h % 64)
	}
	all := &s.buckets[s.bucket[h]]
	if e := (struct{ n, at int }{literal, at}); !slices.Contains(*all, e) {
		*all = append(*all, e)
	}
}

// rarest is where the four bytes of a literal start that are the least frequent in text.
func rarest(text string) int {
	best, least := 0, 1<<30
	for i := 0; i+4 <= len(text); i++ {
		four, score := strings.ToLower(text[i:i+4]), 0
		for _, c := range []byte(four) {
			score += frequency(c)
		}
		for _, three := range []string{four[:3], four[1:]} {
			if strings.Contains(frequent, three) {
				score += 100
			}
		}
		if score < least {
			best, least = i, score
		}
	}
	return best
}

// frequent are three letters that many words and names have.
const frequent = "ion tio ati ess est typ fil mit wor oke ken tok ead ist ret cre pat ach sto iss att ror lic " +
	"mod ass ref esu ack ook ool cor sec ese gin msg act ace dev fie emo hea fin con ser ser ver err " +
	"cti the ing and ent ter tin tur per pro com str cont nam ame ode cod key use con ers tes rea res " +
	"sta int urn for men all set get ect edi sag mes " +
	"ont nte ten rom fro rec ord num ber str ine lin dat ata val alu lue inp put out url htt doc ser cli eat orm pas"

// frequency is roughly how often a byte occurs in transcripts.
func frequency(c byte) int {
	if n := strings.IndexByte("zqjxkvbpgfywmucldrhsnioate", c); n >= 0 {
		return 4 + n
	}
	if strings.IndexByte(" \"\\,:./-_", c) >= 0 {
		return 12
	}
	return 3
}

// find appends the hits in a text, nearly in the order of their places.
func (s *search) find(hits []hit, text []byte) []hit {
	i := 0
	for ; i+8 <= len(text); i += 6 {
		w := binary.LittleEndian.Uint64(text[i:]) | folded
		a, b, c := gram(w), gram(w>>16), gram(w>>32)
		if (s.bits[a/64]>>(a%64)|s.bits[b/64]>>(b%64)|s.bits[c/64]>>(c%64))&1 == 0 {
			continue
		}
		for n, h := range [...]uint32{a, b, c} {
			if s.bits[h/64]>>(h%64)&1 != 0 {
				hits = s.at(hits, text, i+2*n, h)
			}
		}
	}
	var rest [16]byte
	copy(rest[:], text[i:])
	for n := i; n < len(text); n += 2 {
		hits = s.at(hits, text, n, gram(binary.LittleEndian.Uint64(rest[n-i:])|folded))
	}
	return hits
}

// at appends the hits that three bytes at a place are in.
func (s *search) at(hits []hit, text []byte, place int, h uint32) []hit {
	for _, e := range s.buckets[s.bucket[h]] {
		if at := place - e.at; at >= 0 && s.literals[e.n].matches(text[at:]) {
			hits = append(hits, hit{at, e.n})
		}
	}
	return hits
}

// hidesLiterals reports whether a text has escapes that can split a literal: \/ and \u0020 to \u007f, percent-encoding,
// references of HTML, and invisible characters.
func hidesLiterals(text []byte) bool {
	return hasByteEscape(text, '\\') || hasByteEscape(text, '%') || hasByteEscape(text, '&') ||
		hasByteEscape(text, 0xc2) || hasByteEscape(text, 0xef) ||
		(bytes.Contains(text, []byte("\xe2\x80")) || bytes.Contains(text, []byte("\xe2\x81"))) && hasByteEscape(text, 0xe2)
}

// hasByteEscape reports whether a text has such an escape that begins with a byte.
func hasByteEscape(text []byte, first byte) bool {
	for {
		i := bytes.IndexByte(text, first)
		if i < 0 || i+1 >= len(text) {
			return false
		}
		text = text[i:]
		switch first {
		case '\\':
			if text[1] == '/' || text[1] == 'u' && hidesAsUnicode(text) {
				return true
			}
		case '%':
			if c, size := percent(text); size > 0 && c >= ' ' && c < 0x7f {
				return true
			}
		case '&':
			if _, size := reference(text); size > 0 {
				return true
			}
		default:
			if invisible(text) > 0 {
				return true
			}
		}
		text = text[1:]
	}
}

// hidesAsUnicode reports whether \uXXXX at the start of a text is an ASCII character or an invisible one.
func hidesAsUnicode(text []byte) bool {
	r, ok := hex4(text)
	return ok && (r >= ' ' && r < 0x7f || invisible(utf8.AppendRune(nil, r)) > 0)
}
