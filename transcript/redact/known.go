package redact

import (
	"encoding/binary"
	"slices"
)

// known are the secrets that a search has found, to be found again wherever else the text has them.
type known struct {
	values map[uint64][]value // by their first bytes
	bits   [1 << 10]uint64    // by the hash of these
}

// value is a secret without escapes, and the rule that found it.
type value struct {
	text, rule string
}

const (
	leastKnown  = 8  // bytes of a secret that is looked for again
	longKnown   = 16 // bytes from which one may be part of a word
	mostSimilar = 32 // secrets that begin alike
)

// newKnown collects the secrets of some ranges; nil if none can be distinguished from other words.
func newKnown(text []byte, ranges []Range) *known {
	var k *known
	for _, r := range ranges {
		v := value{string(plain(r.order.decoded(text[r.Start:r.End]))), r.Rule}
		if len(v.text) < leastKnown || distinct([]byte(v.text)) < leastKnown/2 {
			continue
		}
		if k == nil {
			k = &known{values: map[uint64][]value{}}
		}
		first := binary.LittleEndian.Uint64([]byte(v.text))
		all := k.values[first]
		if len(all) < mostSimilar && !slices.ContainsFunc(all, func(o value) bool { return o.text == v.text }) {
			k.values[first] = append(all, v)
			h := hash16(first)
			k.bits[h/64] |= 1 << (h % 64)
		}
	}
	return k
}

func hash16(word uint64) uint64 { return word * 0x9e3779b97f4a7c15 >> 48 }

// find calls found with every position of a secret in a text.
func (k *known) find(text []byte, found func(rule string, from, to int)) {
	for i := 0; i+leastKnown <= len(text); i++ {
		first := binary.LittleEndian.Uint64(text[i:])
		if h := hash16(first); k.bits[h/64]>>(h%64)&1 == 0 {
			continue
		}
		for _, v := range k.values[first] {
			end := i + len(v.text)
			if end <= len(text) && string(text[i:end]) == v.text && (len(v.text) >= longKnown ||
				startsWord(text, i) && (end == len(text) || !isAlnum(text[end]))) {
				found(v.rule, i, end)
			}
		}
	}
}
