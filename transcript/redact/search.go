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
// as the window. A literal that is one byte shorter than the window stands for itself with any byte before it.
type search struct {
	literals []literal
	parts    []int // where the part of each literal starts; -1 if it is shorter than the window
	window   int   // the length of the parts
	longest  int   // the length of the longest literal
	// jumps has an entry for every block: how far the search jumps, or 0 if parts end in the block.
	jumps   [1 << 16]uint8
	bucket  [1 << 16]uint16 // of a block in which parts end
	buckets [][]int         // literals whose part ends in one block; the first is empty
}

const block = 2

func newSearch(literals []literal) *search {
	s := &search{literals: literals, window: 64, parts: make([]int, len(literals)), buckets: make([][]int, 1)}
	for _, l := range literals {
		s.window, s.longest = min(s.window, len(l.text)+1), max(s.longest, len(l.text))
	}
	for i := range s.jumps {
		s.jumps[i] = uint8(s.window - block + 1)
	}
	for n, l := range literals {
		part := l.text
		if s.parts[n] = -1; len(part) >= s.window {
			s.parts[n] = rarest(l.text, s.window)
			part = l.text[s.parts[n]:][:s.window]
		} else {
			s.enterShort(part[0], l.fold)
		}
		for end := block; end <= len(part); end++ {
			for _, b := range spellings(part[end-block:end], l.fold) {
				s.enter(b, len(part)-end, n)
			}
		}
	}
	return s
}

// enter notes that a block is in a literal, at some distance from its part's end.
func (s *search) enter(b uint16, distance, literal int) {
	if s.jumps[b] = min(s.jumps[b], uint8(distance)); distance > 0 {
		return
	}
	if s.bucket[b] == 0 {
		s.bucket[b] = uint16(len(s.buckets))
		s.buckets = append(s.buckets, nil)
	}
	s.buckets[s.bucket[b]] = append(s.buckets[s.bucket[b]], literal)
}

// enterShort notes that a literal which is shorter than the window begins in the second byte of a block.
func (s *search) enterShort(first byte, fold bool) {
	for _, c := range spellings(string(first), fold) {
		for before := range uint16(256) {
			b := before<<8 | c
			s.jumps[b] = min(s.jumps[b], uint8(s.window-block))
		}
	}
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
	if i := s.window - 2; i >= 1 && i < len(text) {
		hits = s.endingAt(hits, text, i) // a short literal, with no byte before it
	}
	for i := s.window - 1; i < len(text); {
		n := s.jumps[uint16(text[i-1])<<8|uint16(text[i])]
		if n > 0 {
			i += int(n)
			continue
		}
		hits = s.endingAt(hits, text, i)
		i++
	}
	return hits
}

// endingAt appends the hits whose parts end at a place.
func (s *search) endingAt(hits []hit, text []byte, end int) []hit {
	for _, l := range s.buckets[s.bucket[uint16(text[end-1])<<8|uint16(text[end])]] {
		if at := end - s.window + 1 - s.parts[l]; at >= 0 && s.literals[l].matches(text[at:]) {
			hits = append(hits, hit{at, l})
		}
	}
	return hits
}

// hidesLiterals reports whether a line has escapes that can split a literal: \/ and \u0020 to \u007f.
func hidesLiterals(line []byte) bool {
	for {
		i := bytes.IndexByte(line, '\\')
		if i < 0 || i+1 >= len(line) {
			return false
		}
		if line = line[i+1:]; line[0] == '/' {
			return true
		}
		if len(line) > 3 && line[0] == 'u' && line[1] == '0' && line[2] == '0' && line[3] >= '2' && line[3] <= '7' {
			return true
		}
	}
}
