package grams

import (
	"slices"
	"strings"
)

// Plan is what a search reads of each segment.
type Plan struct {
	All []Key   // a doc must have each of them
	Any []Range // if All is empty, one gram of each of these ranges; nil too: every doc is a candidate
}

// Range is the grams from From up to and with To.
type Range struct{ From, To Key }

const (
	// planGrams is how many grams of one needle are looked up, the rarest: the docs are read anyway.
	planGrams = 5
	// planMax is how many are looked up in all.
	planMax = 12
)

// PlanOf says how to look for texts that have all needles, each in its searchable form.
func PlanOf(needles []string) Plan {
	var p Plan
	var short []Range
	for _, n := range needles {
		r := []rune(n)
		switch {
		case len(r) >= 3:
			p.All = append(p.All, rarest(r)...)
		case len(r) > 0:
			short = append(short, prefix(r))
		}
	}
	slices.SortStableFunc(p.All, func(a, b Key) int { return rarity(b) - rarity(a) })
	p.All = distinct(p.All)
	p.All = p.All[:min(len(p.All), planMax)]
	if len(p.All) == 0 {
		// The longest is the rarest, most likely.
		slices.SortStableFunc(short, func(a, b Range) int { return int((a.To-a.From)>>32) - int((b.To-b.From)>>32) })
		p.Any = short[:min(len(short), 1)]
	}
	return p
}

func prefix(r []rune) Range {
	k := Key(0)
	for _, c := range r {
		k = k<<runeBits | Key(c)
	}
	rest := runeBits * (3 - len(r))
	return Range{k << rest, k<<rest | (1<<rest - 1)}
}

func rarest(r []rune) []Key {
	var keys []Key
	for i := range len(r) - 2 {
		keys = append(keys, Key(r[i])<<(2*runeBits)|Key(r[i+1])<<runeBits|Key(r[i+2]))
	}
	slices.SortStableFunc(keys, func(a, b Key) int { return rarity(b) - rarity(a) })
	keys = distinct(keys)
	return keys[:min(len(keys), planGrams)]
}

func distinct(keys []Key) []Key {
	var out []Key
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
func rarity(k Key) int {
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

// Both are the docs of two ascending lists, in the first.
func Both(a, b []uint32) []uint32 {
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
