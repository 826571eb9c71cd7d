package transcript

import (
	"crypto/sha256"
	"encoding/binary"
)

// Layout describes where the lines of a file are: what is between them, and what is known of those that
// were too long. Client and server make it of the same lines in the same order. The zero Layout is of no line; a copy
// goes on by itself.
type Layout struct {
	next int64
	sum  [sha256.Size]byte // over what is no line; zero: there is nothing else so far
}

// Line adds a line. Indices ascend.
func (l *Layout) Line(index int64) {
	l.gap(index)
	l.next = index + 1
}

// Oversize adds a line of which only this is held.
func (l *Layout) Oversize(index int64, o Oversize) {
	l.gap(index)
	l.next = index + 1
	l.add('o', o.SHA256[:], index, o.Offset, o.Length)
}

// Next returns the index behind the last line.
func (l *Layout) Next() int64 { return l.next }

// Sum returns the digest of a file that ends before line end, at Next or later: lines is the sha256 over each line and
// a newline. If every line is there, it is that.
func (l Layout) Sum(end int64, lines []byte) []byte {
	if l.gap(end); l.sum == [sha256.Size]byte{} {
		return lines
	}
	l.add('l', lines)
	return l.sum[:]
}

// gap adds the lines that are missing before one.
func (l *Layout) gap(before int64) {
	if l.next < before {
		l.add('g', nil, l.next, before)
	}
}

func (l *Layout) add(kind byte, text []byte, numbers ...int64) {
	b := append(l.sum[:len(l.sum):len(l.sum)], kind)
	for _, n := range numbers {
		b = binary.BigEndian.AppendUint64(b, uint64(n))
	}
	l.sum = sha256.Sum256(append(b, text...))
}
