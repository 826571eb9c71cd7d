package redact

import (
	"bytes"
	"strings"
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

// search finds many literals in one pass, by Wu and Manber's algorithm on blocks of two bytes: nearly every block
// occurs in no literal, and lets the search jump. It looks for a part of each literal: the rarest one that is as long
// as the shortest literal.
type search struct {
	literals []literal
	parts    []int // where the part of each literal starts
	window   int   // the length of the parts
	longest  int   // the length of the longest literal
	// table has an entry for every block: below the window's length the jump, otherwise firstBucket + its bucket.
	table   [1 << 16]uint16
	buckets [][]int // the literals whose part ends in one block
}

const (
	block       = 2
	firstBucket = 256
)

func newSearch(literals []literal) *search {
	s := &search{literals: literals, window: 64, parts: make([]int, len(literals))}
	for _, l := range literals {
		s.window, s.longest = min(s.window, len(l.text)), max(s.longest, len(l.text))
	}
	for i := range s.table {
		s.table[i] = uint16(s.window - block + 1)
	}
	for n, l := range literals {
		s.parts[n] = rarest(l.text, s.window)
		part := l.text[s.parts[n]:]
		for end := block; end <= s.window; end++ {
			for _, b := range spellings(part[end-block:end], l.fold) {
				s.enter(b, s.window-end, n)
			}
		}
	}
	return s
}

// enter notes that a block is in a literal, at some distance from its part's end.
func (s *search) enter(b uint16, distance, literal int) {
	if distance > 0 {
		if s.table[b] < firstBucket {
			s.table[b] = min(s.table[b], uint16(distance))
		}
		return
	}
	if s.table[b] < firstBucket {
		s.table[b] = uint16(firstBucket + len(s.buckets))
		s.buckets = append(s.buckets, nil)
	}
	n := s.table[b] - firstBucket
	s.buckets[n] = append(s.buckets[n], literal)
}

// rarest is where the part of a literal starts whose bytes are the least frequent in text.
func rarest(text string, length int) int {
	best, least := 0, 1<<30
	for i := 0; i+length <= len(text); i++ {
		score := 0
		for k := range length {
			score += frequency(text[i+k]) << min(k, 2)
		}
		if score < least {
			best, least = i, score
		}
	}
	return best
}

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

// spellings are the blocks that a part of a literal matches.
func spellings(part string, fold bool) []uint16 {
	all := []uint16{0}
	for i := range len(part) {
		var next []uint16
		for _, b := range all {
			next = append(next, b<<8|uint16(part[i]))
			if fold && part[i] >= 'a' && part[i] <= 'z' {
				next = append(next, b<<8|uint16(part[i]-0x20))
			}
		}
		all = next
	}
	return all
}

// find appends the hits in a text, in order of the places of their parts.
func (s *search) find(hits []hit, text []byte) []hit {
	for i := s.window - 1; i < len(text); {
		n := s.table[uint16(text[i-1])<<8|uint16(text[i])]
		if n < firstBucket {
			i += int(n)
			continue
		}
		for _, l := range s.buckets[n-firstBucket] {
			if at := i - s.window + 1 - s.parts[l]; at >= 0 && s.literals[l].matches(text[at:]) {
				hits = append(hits, hit{at, l})
			}
		}
		i++
	}
	return hits
}

// hidesLiterals reports whether a line has escapes that can split a literal: \/ and \u0020 to \u007f.
func hidesLiterals(line []byte) bool {
	if bytes.Contains(line, []byte(`\/`)) {
		return true
	}
	for {
		i := bytes.Index(line, []byte(`\u00`))
		if i < 0 || i+4 >= len(line) {
			return false
		}
		if c := line[i+4]; c >= '2' && c <= '7' {
			return true
		}
		line = line[i+4:]
	}
}
