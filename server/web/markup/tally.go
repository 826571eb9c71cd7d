package markup

import (
	"bytes"
	"hash/maphash"
)

// nothing stands for a blank line, which Tally does not count.
const nothing uint64 = 0

var seed = maphash.MakeSeed()

// Sum stands for a line among those of a comparison. It is another number the next time that the program runs.
func Sum(line []byte) uint64 {
	if len(bytes.TrimSpace(line)) == 0 {
		return nothing
	}
	return maphash.Bytes(seed, line)
}

// NewSum makes the Sum of a line that is not blank and comes in pieces.
func NewSum() (h maphash.Hash) {
	h.SetSeed(seed)
	return h
}

// Tally says how many lines of a are removed in b and how many of b are added: those that the other side has nowhere.
// moved is how many of a the other side has in another place. edits is what Compare found.
func Tally(a, b []uint64, edits []Edit) (removed, added, moved int64) {
	inA, inB := contents(a), contents(b)
	for _, e := range edits {
		if e.Op == Same {
			continue
		}
		for _, x := range a[e.A:e.AEnd] {
			switch {
			case x == nothing:
			case inB[x]:
				moved++
			default:
				removed++
			}
		}
		for _, x := range b[e.B:e.BEnd] {
			if x != nothing && !inA[x] {
				added++
			}
		}
	}
	return removed, added, moved
}

func contents(lines []uint64) map[uint64]bool {
	in := make(map[uint64]bool, len(lines))
	for _, x := range lines {
		in[x] = true
	}
	return in
}
