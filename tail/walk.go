package tail

import (
	"bytes"

	"github.com/cespare/xxhash/v2"
)

// markGap is the smallest distance in bytes between two Marks, and the length from which a line gets Marks of its own.
const markGap = 64 << 10

// hashOf returns the hash of everything in this package. No bytes have the hash 0, so that the zero Cursor is the start
// of every file.
func hashOf(b []byte) uint64 {
	if len(b) == 0 {
		return 0
	}
	return xxhash.Sum64(b)
}

// prefixWalker walks over whole lines from a cursor, counts them and places Marks.
type prefixWalker struct {
	from   int64 // where it started: no Mark is placed here again
	offset int64
	line   int64
	mark   int64         // offset of the last Mark
	open   xxhash.Digest // of the bytes since mark
	marks  []Mark
}

// Start sets the Walker at c. segment is the bytes from c.Mark to c.Offset.
func (w *prefixWalker) Start(c Cursor, segment []byte) {
	w.from, w.offset, w.line, w.mark = c.Offset, c.Offset, c.Line, c.Mark
	w.marks = nil
	w.open.Reset()
	w.open.Write(segment)
}

// Add walks over lines, each with its newline.
func (w *prefixWalker) Add(lines []byte) {
	hashed := 0
	for pos := 0; pos < len(lines); {
		n := bytes.IndexByte(lines[pos:], '\n') + 1
		if n == 0 {
			n = len(lines) - pos // only a caller's mistake gets here; the offset stays right
		}
		if n >= markGap && w.offset > w.mark && w.offset > w.from {
			w.open.Write(lines[hashed:pos])
			hashed = pos
			w.place()
		}
		pos += n
		w.offset += int64(n)
		w.line++
		if w.offset-w.mark >= markGap {
			w.open.Write(lines[hashed:pos])
			hashed = pos
			w.place()
		}
	}
	w.open.Write(lines[hashed:])
}

// Leap goes over one line that ends at end and places a Mark behind it. open is the hash of what follows the last Mark,
// all of the line included.
func (w *prefixWalker) Leap(open xxhash.Digest, end int64) {
	w.open, w.offset = open, end
	w.line++
	w.place()
}

// place puts a Mark where the Walker stands.
func (w *prefixWalker) place() {
	w.marks = append(w.marks, Mark{Offset: w.offset, Line: w.line, Hash: w.open.Sum64()})
	w.mark = w.offset
	w.open.Reset()
}

// Cursor returns where the Walker stands; the Anchor is the caller's to fill in.
func (w *prefixWalker) Cursor(generation uint32) Cursor {
	c := Cursor{Offset: w.offset, Line: w.line, Generation: generation, Mark: w.mark}
	if w.offset > w.mark {
		c.Segment = w.open.Sum64()
	}
	return c
}

// firstOver returns where the first line longer than limit begins, or -1.
func firstOver(lines []byte, limit int64) int {
	if !overCap(int64(len(lines)), limit) {
		return -1
	}
	for pos := 0; pos < len(lines); {
		n := bytes.IndexByte(lines[pos:], '\n')
		if n < 0 {
			n = len(lines) - pos
		}
		if overCap(int64(n), limit) {
			return pos
		}
		pos += n + 1
	}
	return -1
}

// anchorOf returns the Anchor of a cursor before which lie the bytes of before and then of lines.
func anchorOf(before, lines []byte) uint64 {
	if len(lines) >= AnchorSize {
		return hashOf(lines[len(lines)-AnchorSize:])
	}
	before = before[max(0, len(before)-(AnchorSize-len(lines))):]
	if len(before)+len(lines) == 0 {
		return 0
	}
	var d xxhash.Digest
	d.Reset()
	d.Write(before)
	d.Write(lines)
	return d.Sum64()
}

// Ends says whether b, at least the last AnchorSize bytes before the cursor or all there are, ends as what was read up
// to the cursor does.
func (c Cursor) Ends(b []byte) bool {
	return hashOf(b[max(0, len(b)-AnchorSize):]) == c.Anchor
}
