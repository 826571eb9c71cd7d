package search

import (
	"cmp"
	"slices"
)

// placed is a gram and its position in the order in which they came.
type placed struct {
	key key
	at  uint32
}

const (
	// fewGrams are sorted by comparing.
	fewGrams = 1 << 10
	// digitBits is what one pass sorts by. Two digits are a character; most have only the lower one.
	digitBits = 11
	digits    = 6
)

// digit returns a part of a key: 0 the lowest.
func digit(k key, n int) key { return k >> (n/2*runeBits + n%2*digitBits) & (1<<(digitBits-n%2) - 1) }

// sorted returns grams in the order of their keys, digit by digit: each is another.
func sorted(grams []key) []placed {
	out := make([]placed, len(grams))
	for i, k := range grams {
		out[i] = placed{k, uint32(i)}
	}
	if len(out) < fewGrams {
		slices.SortFunc(out, func(x, y placed) int { return cmp.Compare(x.key, y.key) })
		return out
	}
	var counts [digits][1 << digitBits]uint32
	for _, k := range grams {
		for n := range digits {
			counts[n][digit(k, n)]++
		}
	}
	other := make([]placed, len(out))
	for n := range digits {
		at := &counts[n]
		if at[digit(grams[0], n)] == uint32(len(grams)) {
			continue // all have the same
		}
		sum := uint32(0)
		for i, count := range at {
			at[i], sum = sum, sum+count
		}
		for _, p := range out {
			d := digit(p.key, n)
			other[at[d]] = p
			at[d]++
		}
		out, other = other, out
	}
	return out
}
