package search

import (
	"slices"
	"strings"
)

// plan is what a search reads of each segment.
type plan struct {
	All []key       // a doc must have each of them
	Any []gramRange // if All is empty, one gram of each of these ranges; nil too: every doc is a candidate
}

// gramRange is the grams from From up to and with To.
type gramRange struct{ From, To key }

const (
	// planGrams is how many grams of one needle are looked up, the rarest: the docs are read anyway.
	planGrams = 10
	// planMax is how many are looked up in all.
	planMax = 12
)

// planOf says how to look for texts that have all needles, each in its searchable form.
func planOf(needles []string) plan {
	var p plan
	var short []gramRange
	for _, n := range needles {
		r := []rune(n)
		switch {
		case len(r) >= 3:
			p.All = append(p.All, rarest(r)...)
		case len(r) > 0:
			short = append(short, prefix(r))
		}
	}
	slices.SortStableFunc(p.All, func(a, b key) int { return rarity(b) - rarity(a) })
	p.All = distinct(p.All)
	p.All = p.All[:min(len(p.All), planMax)]
	if len(p.All) == 0 {
		// The longest is the rarest, most likely.
		slices.SortStableFunc(short, func(a, b gramRange) int { return int((a.To-a.From)>>32) - int((b.To-b.From)>>32) })
		p.Any = short[:min(len(short), 1)]
	}
	return p
}

func prefix(r []rune) gramRange {
	k := key(0)
	for _, c := range r {
		k = k<<runeBits | key(c)
	}
	rest := runeBits * (3 - len(r))
	return gramRange{k << rest, k<<rest | (1<<rest - 1)}
}

func rarest(r []rune) []key {
	var keys []key
	for i := range len(r) - 2 {
		keys = append(keys, key(r[i])<<(2*runeBits)|key(r[i+1])<<runeBits|key(r[i+2]))
	}
	slices.SortStableFunc(keys, func(a, b key) int { return rarity(b) - rarity(a) })
	keys = distinct(keys)
	return keys[:min(len(keys), planGrams)]
}

func distinct(keys []key) []key {
	var out []key
	for _, k := range keys {
		if !slices.Contains(out, k) {
			out = append(out, k)
		}
	}
	return out
}

// common are characters from the most common one in transcripts on.
const common = " etaoinsrlcdpumfgh.b/-_vwyk,:\"()0123x456789jzq"

// rarity is larger for grams that fewer docs have, most likely.
func rarity(k key) int {
	sum := 0
	for range 3 {
		at := strings.IndexRune(common, rune(k&(1<<runeBits-1)))
		if at < 0 {
			at = len(common)
		}
		sum += at
		k >>= runeBits
	}
	return sum
}

// both returns the docs of two ascending lists, in the first.
func both(a, b []uint32) []uint32 {
	out := a[:0]
	for i, k := 0, 0; i < len(a) && k < len(b); {
		switch {
		case a[i] < b[k]:
			i++
		case a[i] > b[k]:
			k++
		default:
			out = append(out, a[i])
			i, k = i+1, k+1
		}
	}
	return out
}
