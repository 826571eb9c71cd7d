// Package provenance tells which tool call wrote a line of a file. A Builder reads from a transcript what each call
// added to which file; Attribute compares that with the lines that a commit adds. Lines are compared by hashes of their
// text, so that neither side has to show the other a text.
package provenance

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"hash/fnv"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// SumSize is the length of a Sum.
const SumSize = 16

// Sum stands for the text of a line. The first bytes are a hash of the text as formatters leave it alone, the last one
// is a checksum of the text as it is behind its indentation.
type Sum [SumSize]byte

// MarshalText writes a sum as text.
func (s Sum) MarshalText() ([]byte, error) { return base64.RawURLEncoding.AppendEncode(nil, s[:]), nil }

// UnmarshalText reads what MarshalText wrote.
func (s *Sum) UnmarshalText(text []byte) error {
	b, err := base64.RawURLEncoding.AppendDecode(nil, text)
	if err != nil || len(b) != SumSize {
		return errors.New("not a sum")
	}
	*s = Sum(b)
	return nil
}

// Key is the part of a Sum that lines have in common which only a formatter distinguishes.
type Key [SumSize - 1]byte

// Key returns the part by which lines are compared.
func (s Sum) Key() Key { return Key(s[:SumSize-1]) }

// SumOf returns the sum of a line, without its newline. plain: the line says so little that it proves nothing alone.
// ok is false for a line without any text.
func SumOf(line string) (s Sum, plain, ok bool) {
	line = strings.TrimRight(line, "\r")
	text, letters := normalised(nil, line)
	if len(text) == 0 {
		return s, true, false
	}
	return sumOf(line, text), letters < leastLetters, true
}

// sumOf returns the sum of a line whose text, as normalised returns it, is known.
func sumOf(line string, text []byte) (s Sum) {
	full := sha256.Sum256(text)
	copy(s[:], full[:SumSize-1])
	s[SumSize-1] = checksum(strings.TrimSpace(line)) // Claude Code writes tabs as spaces in what it says of a file
	return s
}

// checksum returns the last byte of the text's FNV-1a.
func checksum(text string) byte {
	h := fnv.New32a()
	_, _ = io.WriteString(h, text)
	return byte(h.Sum32())
}

// leastLetters is how many letters and digits a line has that proves something alone.
const leastLetters = 12

// normalised returns a line without what formatters change: white space, the kind of quotes, a last comma or semicolon.
// It is written to dst, which is empty. letters counts its letters and digits.
func normalised(dst []byte, line string) (text []byte, letters int) {
	text = slices.Grow(dst, len(line))
	for _, r := range line {
		switch {
		case r >= utf8.RuneSelf:
			if unicode.IsSpace(r) || r == '\ufeff' {
				continue
			}
			if unicode.IsLetter(r) || unicode.IsDigit(r) {
				letters++
			}
			text = utf8.AppendRune(text, r)
			continue
		case r|0x20 >= 'a' && r|0x20 <= 'z' || r >= '0' && r <= '9':
			letters++
		case r == ' ' || r >= '\t' && r <= '\r':
			continue
		case r == '\'' || r == '`':
			r = '"'
		}
		text = append(text, byte(r))
	}
	for len(text) > 1 && (text[len(text)-1] == ',' || text[len(text)-1] == ';') {
		text = text[:len(text)-1]
	}
	return text, letters
}
