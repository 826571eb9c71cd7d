package redact

import (
	"encoding/binary"
	"slices"
	"strings"
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

func (l *literal) matches(b []byte) bool {
	switch l.text {
	case discordForm:
		return isDiscord(b)
	case airtableForm:
		return isAirtable(b)
	case harnessForm:
		return isHarness(b)
	}
	return l.begins(b)
}

// begins is matches for a literal that is no form.
func (l *literal) begins(b []byte) bool {
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

// search finds many literals in one pass. It looks at frames of four bytes, at every second position of a text: each
// literal has two that tell it, as it may begin at an even position or at an odd one. Three steps leave ever fewer
// frames, without a branch for each.
type search struct {
	literals []literal
	discord  int           // the literal discordForm; -1: there is none
	airtable int           // the literal airtableForm; -1: there is none
	harness  int           // the literal harnessForm; -1: there is none
	slots    [slots]slot   // by the hash of the two bytes in the middle of a frame
	exact    [2048]uint64  // by hashes of a frame in lower case, or of those three bytes that are in the literal
	first    [slots]uint16 // the first entry of a slot; the entries are in the order of the slots
	entries  []entry
}

// slot tells which bytes are before and behind the middles of some frames, modulo 64.
type slot struct{ before, behind uint64 }

// entry is a frame that tells a literal, and where in the literal it is.
type entry struct {
	want, mask, fold uint32 // its bytes, those that are in the literal, and the bits in which cases differ
	literal          uint16
	at               int8 // -1: its first byte is before the literal
	last             bool // of its slot
}

const (
	slots = 1 << 13
	// shortest is the length of the shortest literal of a rule.
	shortest = 3
	// folded is the bit in which the cases of a letter differ, in four bytes.
	folded = 0x20202020
	// groups is how many groups of three frames, in six bytes each, are looked at before what is found in them.
	groups    = 250
	blockSize = 6*groups + 8
)

func slotOf(middle uint16) uint32 { return uint32(middle) * 0x9e3779b1 >> 19 }

// The hashes of a frame, of its first three bytes, and of its last three.
func ofFour(frame uint32) uint32  { return frame * 0xfdaa700f >> 15 }
func ofFirst(frame uint32) uint32 { return frame & 0xffffff * 0xe49428f5 >> 15 }
func ofLast(frame uint32) uint32  { return frame >> 8 * 0xeba94c4f >> 15 }

// escapes are the beginnings of a backslash's escapes that can split a literal, and of characters without width.
var escapes = []string{`\/`, `\u002`, `\u003`, `\u004`, `\u005`, `\u006`, `\u007`, `\u00ad`, `\u200`, `\u202`, `\u206`, `\ufeff`,
	"\xc2\xad", "\xe2\x80", "\xe2\x81", "\xef\xbb"}

func newSearch(literals []literal) *search {
	for _, text := range escapes {
		literals = append(literals, literal{text: text, fold: true, escape: true})
	}
	s := &search{literals: literals, discord: -1, airtable: -1, harness: -1}
	p := &planner{search: s}
	var order []int // short ones have no choice
	for n, l := range literals {
		switch l.text {
		case discordForm:
			s.discord = n
		case airtableForm:
			s.airtable = n
		case harnessForm:
			s.harness = n
		default:
			order = append(order, n)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return len(literals[a].text) - len(literals[b].text) })
	for _, n := range order {
		p.plan(n)
	}
	s.entries = append(s.entries, entry{mask: 1, last: true}) // of empty slots
	for n, all := range p.entries {
		if len(all) > 0 {
			all[len(all)-1].last = true
			s.first[n] = uint16(len(s.entries))
			s.entries = append(s.entries, all...)
		}
	}
	return s
}

// block is a part of a text that is searched at once, and what the steps of a search leave of it.
type block struct {
	rest   [blockSize]byte // the end of a text, and zeros
	groups [256]uint16     // where groups of three frames begin, one of which may be in a literal
	frames [1024]uint16    // where such frames begin
}

// find appends the hits in a text, nearly in the order of their positions.
func (s *search) find(hits []hit, text []byte, b *block) []hit {
	for i := 0; i < len(text); i += 6 * groups {
		part, n := &b.rest, groups
		if len(text)-i >= blockSize {
			part = (*[blockSize]byte)(text[i:])
		} else {
			size := copy(part[:], text[i:])
			n = min(groups, (size+5)/6)
			clear(part[size:min(blockSize, size+8)])
		}
		n = s.inGroups(part, n, &b.groups)
		n = s.inFrames(part, b.groups[:n], &b.frames)
		for _, at := range b.frames[:n] {
			hits = s.at(hits, text, i+int(at), binary.LittleEndian.Uint32(part[at:]))
		}
	}
	if s.discord >= 0 {
		hits = s.dotted(hits, text)
	}
	return hits
}

// inGroups looks at groups of three frames, and leaves the positions of those with one that fits its slot.
func (s *search) inGroups(text *[blockSize]byte, groups int, found *[256]uint16) (n int) {
	for i := 0; i < min(6*groups, blockSize-8); i += 6 {
		w := binary.LittleEndian.Uint64(text[i : i+8])
		a := &s.slots[slotOf(uint16(w>>8))]
		x := a.before >> (w & 63) & (a.behind >> (w >> 24 & 63))
		a = &s.slots[slotOf(uint16(w>>24))]
		x |= a.before >> (w >> 16 & 63) & (a.behind >> (w >> 40 & 63))
		a = &s.slots[slotOf(uint16(w>>40))]
		x |= a.before >> (w >> 32 & 63) & (a.behind >> (w >> 56 & 63))
		found[n&255] = uint16(i)
		n += int(x & 1)
	}
	return n
}

// inFrames leaves the positions of frames that fit their slots and have the hash of one in a literal.
func (s *search) inFrames(text *[blockSize]byte, places []uint16, found *[1024]uint16) (n int) {
	fit := 0
	for _, at := range places {
		w := binary.LittleEndian.Uint64(text[at:])
		for range 3 {
			a := &s.slots[slotOf(uint16(w>>8))]
			found[fit&1023] = at
			fit += int(a.before >> (w & 63) & (a.behind >> (w >> 24 & 63)) & 1)
			w >>= 16
			at += 2
		}
	}
	for _, at := range found[:fit] {
		frame := binary.LittleEndian.Uint32(text[at:]) | folded
		h, i, j := ofFour(frame), ofFirst(frame), ofLast(frame)
		x := s.exact[h/64]>>(h%64) | s.exact[i/64]>>(i%64) | s.exact[j/64]>>(j%64)
		found[n&1023] = at
		n += int(x & 1)
	}
	return n
}

func isTokenByte(c byte) bool { return isAlnum(c) || c == '_' || c == '-' }

// at appends the hits that a frame at a position tells.
func (s *search) at(hits []hit, text []byte, place int, frame uint32) []hit {
	for n := int(s.first[slotOf(uint16(frame>>8))]); ; n++ {
		e := &s.entries[n]
		if (frame|e.fold)&e.mask == e.want {
			if at := place - int(e.at); at >= 0 && s.literals[e.literal].begins(text[at:]) {
				hits = append(hits, hit{at, int(e.literal)})
			}
		}
		if e.last {
			return hits
		}
	}
}
