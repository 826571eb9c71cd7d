package state

import (
	"math/rand/v2"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

// Whatever was added and cut off, the counts are those of the lines that are left.
func TestOddLines(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		var odd OddLines
		model := map[int64]OddKind{}
		end := int64(0)
		for range 20 {
			var more OddList
			for range rng.IntN(30) {
				kind := OddKind(rng.IntN(6))
				if kind < oddKinds {
					model[end] = kind
					more.Add(end, kind)
				}
				end++
			}
			odd = odd.Plus(&more)
			if rng.IntN(4) == 0 {
				end = rng.Int64N(end + 1)
				odd = odd.Before(end)
				for line := range model {
					if line >= end {
						delete(model, line)
					}
				}
			}
			var want [oddKinds]int64
			for _, kind := range model {
				want[kind]++
			}
			got := odd.Count()
			kit.Require(t, got == want && odd.Total() == int64(len(model)), "%v, want %v", got, want)
		}
	}
}

// A file of nothing but odd lines has a small row, and still the right count.
func TestOddLinesAreBounded(t *testing.T) {
	var l OddList
	const lines = 100_000
	for i := range int64(lines) {
		l.Add(2*i, OddKind(i%2))
	}
	odd := OddLines("").Plus(&l)
	n := odd.Count()
	kit.Check(t, n[OddBlank] == lines/2 && n[OddMalformed] == lines/2 && len(odd) <= 32<<10, "%v in %d bytes", n, len(odd))
	half := odd.Before(lines).Total()
	kit.Check(t, half >= lines*2/5 && half <= lines*3/5 && odd.Before(0) == "", "%d of %d lines before the middle", half, lines)
}
