package redact

import "bytes"

// Explanation counts the tokens by which a text differs from the bytes on a disk.
type Explanation struct {
	Proven   int // they are what this key makes of the disk's bytes, whatever rule found them
	Unproven int // asterisks instead of secrets that are too short for a hash
}

// mostAsterisks is the longest secret that has no space for a hash, in bytes.
const mostAsterisks = len("[:]") + shortHash - 1

// Explain reports whether a held text is the disk's with some bytes masked, by whatever rules. Every difference must
// lie in a token that the key makes of the disk's bytes, or in asterisks of a secret that is too short for one. A nil
// Masker explains no difference.
func (m *Masker) Explain(disk, held []byte) (e Explanation, explained bool) {
	if len(disk) != len(held) {
		return e, false
	}
	var list []place
	after := 0
	for i := differs(disk, held, 0); i < len(held); i = differs(disk, held, i) {
		if m == nil {
			return e, false
		}
		if list == nil {
			list = placesOf(held)
		}
		for len(list) > 0 && list[0].ends(i) {
			list = list[1:]
		}
		stars := asterisks(disk, held, i, after)
		switch {
		case len(list) > 0 && list[0].reaches(i):
			end := m.end(list[0], disk, held, i)
			if end <= i {
				return e, false
			}
			list = list[1:]
			e.Proven++
			i, after = end, end
		case stars.from < stars.to:
			e.Unproven++
			i, after = stars.to, stars.to
		default:
			return e, false
		}
	}
	return e, true
}

// end returns where a token ends that stands for the bytes of a disk, those at an offset too; 0: it does not.
func (m *Masker) end(p place, disk, held []byte, at int) int {
	for _, t := range p.in(held) {
		if t.from <= at && m.proves(held[t.from:t.to], disk[t.from:t.to], t.order) {
			return t.to
		}
	}
	return 0
}

// differs returns the first position from an offset on where two texts of one length differ; their length if there is
// none.
func differs(a, b []byte, from int) int {
	const step = 4 << 10
	for ; from < len(a); from += step {
		end := min(len(a), from+step)
		if bytes.Equal(a[from:end], b[from:end]) {
			continue
		}
		for a[from] == b[from] {
			from++
		}
		return from
	}
	return len(a)
}
