package redact

import (
	"bytes"
	"slices"
	"unicode/utf16"
	"unicode/utf8"
)

// order is how a text is encoded: one or more bytes for a character, or UTF-16 in one of two orders of its bytes.
type order uint8

const (
	narrow order = iota // ASCII, UTF-8, and whatever else has secrets as they are
	little              // UTF-16, the low byte of each unit first
	big                 // UTF-16, the high byte first
)

const (
	// shortestWide is how many ASCII characters in a row are UTF-16 in a text that is something else.
	shortestWide = 8
	// leastASCII is the part of the units, one in as many, that makes a text without a byte order mark UTF-16.
	leastASCII = 8
	// beyondASCII stands for a unit that is no ASCII character, in the view that is searched.
	beyondASCII                = 0xff
	mark, swapped, noCharacter = 0xfeff, 0xfffe, 0xffff
)

// wideText is a part of a text that is UTF-16. It holds whole units.
type wideText struct {
	window
	order order
}

// unit returns the unit that starts at an offset.
func (o order) unit(text []byte, at int) uint16 {
	if o == big {
		return uint16(text[at])<<8 | uint16(text[at+1])
	}
	return uint16(text[at+1])<<8 | uint16(text[at])
}

// narrowed appends one byte for each unit of a text.
func (o order) narrowed(dst, text []byte) []byte {
	for i := 0; i+1 < len(text); i += 2 {
		c := o.unit(text, i)
		if c >= utf8.RuneSelf {
			c = beyondASCII
		}
		dst = append(dst, byte(c))
	}
	return dst
}

// widened puts ASCII characters instead of a text's units.
func (o order) widened(text, ascii []byte) {
	for i, c := range ascii {
		text[2*i], text[2*i+1] = c, 0
		if o == big {
			text[2*i], text[2*i+1] = 0, c
		}
	}
}

// decoded returns a text in UTF-8.
func (o order) decoded(text []byte) []byte {
	if o == narrow {
		return text
	}
	units := make([]uint16, len(text)/2)
	for i := range units {
		units[i] = o.unit(text, 2*i)
	}
	return []byte(string(utf16.Decode(units)))
}

// inAny searches a text as it is, and what of it is UTF-16.
func (m *Masker) inAny(s *scratch, text []byte) {
	m.inText(s, text)
	if bytes.IndexByte(text, 0) < 0 {
		return
	}
	for _, part := range wideTexts(text, s.order) {
		m.inWide(s, text[part.from:part.to], part)
	}
}

// inWide searches UTF-16 in a view that has one byte for each unit, so that positions in it are positions in the text.
func (m *Masker) inWide(s *scratch, text []byte, part wideText) {
	before := len(s.ranges)
	s.view = part.order.narrowed(s.view[:0], text)
	m.inText(s, s.view)
	for i := range s.ranges[before:] {
		r := &s.ranges[before+i]
		r.Start, r.End, r.order = part.from+2*r.Start, part.from+2*r.End, part.order
		// A character of two units stays whole, or goes.
		if r.Start > part.from && part.isPair(text, r.Start-2) {
			r.Start -= 2
		}
		if r.End < part.to && part.isPair(text, r.End-2) {
			r.End += 2
		}
	}
}

// isPair reports whether two units are one character; at is an offset in the text that the part is of.
func (p wideText) isPair(text []byte, at int) bool {
	i := at - p.from
	return i >= 0 && i+4 <= len(text) &&
		utf16.DecodeRune(rune(p.order.unit(text, i)), rune(p.order.unit(text, i+2))) != utf8.RuneError
}

// wideTexts returns the parts of a text that are UTF-16: all of it, if that is known or it looks so; else stretches of
// ASCII characters, as programs append them to a file in another encoding.
func wideTexts(text []byte, known order) (list []wideText) {
	from := 0
	if known == narrow {
		known, from = wideOrder(text[:min(len(text), sniffed)], 1)
	}
	if known != narrow {
		return []wideText{{window{from, from + (len(text)-from)&^1}, known}}
	}
	for i := 0; i+1 < len(text); i++ {
		n := 0
		for at := i; at < len(text) && isWritten(text[at]) && (at+1 == len(text) || text[at+1] == 0); at += 2 {
			n++
		}
		if n >= shortestWide {
			list = append(list, stretch(text, i, n))
		}
		i += max(0, 2*n-1)
	}
	return list
}

// stretch is n ASCII characters in UTF-16, the first at an offset.
func stretch(text []byte, at, n int) wideText {
	if at+2*n <= len(text) {
		return wideText{window{at, at + 2*n}, little}
	}
	if at > 0 && text[at-1] == 0 {
		return wideText{window{at - 1, len(text)}, big}
	}
	return wideText{window{at + 1, len(text)}, big}
}

// isWritten reports whether an ASCII character occurs in texts that people write and programs print.
func isWritten(c byte) bool { return c >= ' ' && c <= '~' || c >= '\b' && c <= '\r' || c == esc }

// wideOrder returns the order of a text that is UTF-16, and where its first unit starts, at most at an offset. The text
// begins with a byte order mark, or every unit could be a character and many are ASCII: no file of a program, an
// image or numbers passes.
func wideOrder(head []byte, latest int) (found order, from int) {
	best := 0
	for at := 0; at <= min(latest, len(head)); at++ {
		for _, o := range []order{little, big} {
			text := head[at : at+(len(head)-at)&^1]
			marked := at == 0 && len(text) > 0 && o.unit(text, 0) == mark
			ascii, ok := o.characters(text, marked)
			if ok && marked {
				return o, 0
			}
			if ok && ascii > best && ascii >= shortestWide && ascii >= len(text)/2/leastASCII {
				best, found, from = ascii, o, at
			}
		}
	}
	return found, from
}

// characters counts ASCII characters. It reports false if some unit is no part of a text. A text that says that it is
// one may have any control character.
func (o order) characters(text []byte, marked bool) (ascii int, ok bool) {
	for i := 0; i < len(text); i += 2 {
		c := o.unit(text, i)
		switch {
		case c < utf8.RuneSelf && isWritten(byte(c)):
			ascii++
		case c < ' ' && !marked, c == swapped, c == noCharacter:
			return 0, false
		case !utf16.IsSurrogate(rune(c)):
		case i+2 == len(text): // the rest may be cut off
		case utf16.DecodeRune(rune(c), rune(o.unit(text, i+2))) == utf8.RuneError:
			return 0, false
		default:
			i += 2
		}
	}
	return ascii, true
}

// token overwrites a secret in a text of this order by its token. It reports whether the token has a hash.
func (o order) token(key Key, secret []byte, rule string) bool {
	if o == narrow {
		return key.token(secret, secret, rule)
	}
	out := make([]byte, len(secret)/2)
	proven := key.token(out, o.decoded(secret), rule)
	o.widened(secret, out)
	return proven
}

// place is where a token is, from its first bracket to its last.
type place struct {
	window
	wide bool // it is UTF-16
}

// placesOf returns the tokens in a text, in either encoding.
func placesOf(text []byte) []place {
	list := []place{} // never nil
	for _, loc := range tokens(text) {
		list = append(list, place{window{loc[0], loc[1]}, false})
	}
	if bytes.IndexByte(text, 0) < 0 {
		return list
	}
	for _, loc := range wideForm().FindAllIndex(text, -1) {
		list = append(list, place{window{loc[0], loc[1]}, true})
	}
	slices.SortFunc(list, func(a, b place) int { return a.from - b.from })
	return list
}

// reaches reports whether a token may begin at an offset or before it.
func (p place) reaches(at int) bool { return p.from <= at || p.wide && p.from-1 == at }

// ends reports whether a token ends before an offset.
func (p place) ends(at int) bool { return p.to < at || p.to == at && !p.wide }

// in returns the part of a text that a token is, in the orders that it can have: its first character has a zero before
// it, or its last one has a zero behind it.
func (p place) in(text []byte) (list []wideText) {
	if !p.wide {
		return []wideText{{p.window, narrow}}
	}
	if p.to < len(text) && text[p.to] == 0 {
		list = append(list, wideText{window{p.from, p.to + 1}, little})
	}
	if p.from > 0 && text[p.from-1] == 0 {
		list = append(list, wideText{window{p.from - 1, p.to}, big})
	}
	return list
}

// at returns the part of a text that a token is and an offset lies in; an empty one if there is none.
func (p place) at(text []byte, i int) window {
	for _, t := range p.in(text) {
		if t.from <= i && i < t.to {
			return t.window
		}
	}
	return window{}
}

// asterisks returns the position of the asterisks at an offset that stand for a secret which is too short for a token;
// an empty one if there are none. It begins at the offset, or with the high byte before it, unless that is before
// after.
func asterisks(text, masked []byte, i, after int) window {
	most := wideAsterisks(text, masked, i, little)
	if masked[i] == '*' && i-1 >= after {
		most = longer(most, wideAsterisks(text, masked, i-1, big))
	} else {
		most = longer(most, wideAsterisks(text, masked, i, big))
	}
	if most.from < most.to {
		return most
	}
	end := i
	for end < len(masked) && masked[end] == '*' {
		end++
	}
	for end > i && text[end-1] == masked[end-1] {
		end--
	}
	if end-i > mostAsterisks {
		end = i
	}
	return window{i, end}
}

func longer(a, b window) window {
	if b.to > a.to && b.from < b.to {
		return b
	}
	return a
}

// wideAsterisks are units from an offset on, of which the last one differs.
func wideAsterisks(text, masked []byte, i int, o order) window {
	end := i
	for end+1 < len(masked) && o.unit(masked, end) == '*' {
		end += 2
	}
	for end > i && bytes.Equal(text[end-2:end], masked[end-2:end]) {
		end -= 2
	}
	if end-i > 2*mostAsterisks {
		end = i
	}
	return window{i, end}
}

// narrowToken returns a token in UTF-16 as it is in ASCII; false: it is none.
func narrowToken(token string) (string, bool) {
	text := []byte(token)
	if len(text)%2 != 0 || bytes.IndexByte(text, 0) < 0 {
		return "", false
	}
	for _, o := range []order{little, big} {
		short := o.narrowed(nil, text)
		wide := make([]byte, len(text))
		if o.widened(wide, short); bytes.Equal(wide, text) {
			return string(short), true
		}
	}
	return "", false
}
