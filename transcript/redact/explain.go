package redact

import "bytes"

// Explanation counts the tokens by which a text differs from the bytes on a disk.
type Explanation struct {
	Proven   int // they are what this key makes of the disk's bytes, whatever rule found them
	Unproven int // asterisks in the place of secrets that are too short for a hash
}

// mostAsterisks is the longest secret that has no room for a hash, in bytes.
const mostAsterisks = len("[:]") + shortHash - 1

// Explain reports whether a held text is the disk's with some bytes masked, by whatever rules. Every difference must
// lie in a token that the key makes of the disk's bytes, or in asterisks of a secret that is too short for one. A nil
// Masker explains no difference.
func (m *Masker) Explain(disk, held []byte) (e Explanation, explained bool) {
	if len(disk) != len(held) {
		return e, false
	}
	var places [][]int
	for i := differs(disk, held, 0); i < len(held); i = differs(disk, held, i) {
		if m == nil {
			return e, false
		}
		if places == nil {
			places = tokens(held)
		}
		for len(places) > 0 && places[0][1] <= i {
			places = places[1:]
		}
		end := i
		switch {
		case len(places) > 0 && places[0][0] <= i:
			end = places[0][1]
			if !m.Proves(held[places[0][0]:end], disk[places[0][0]:end]) {
				return e, false
			}
			e.Proven++
		case held[i] == '*':
			for end < len(held) && held[end] == '*' {
				end++
			}
			last := end
			for disk[last-1] == held[last-1] {
				last--
			}
			if last-i > mostAsterisks {
				return e, false
			}
			e.Unproven++
		default:
			return e, false
		}
		i = end
	}
	return e, true
}

// differs is the first place from an offset on where two texts of one length differ; their length if there is none.
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
