package redact

import (
	"bytes"
	"cmp"
	"github.com/ccship/ccship/e2e/kit"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestSearchFindsAll compares the search with a naive one, over texts made from pieces of the literals: those at the
// very beginning and end of a text, overlapping ones, and literals of the shortest and of longer lengths.
func TestSearchFindsAll(t *testing.T) {
	m := masker(t)
	s := m.search
	rng := rand.New(rand.NewPCG(1, 2))
	hiding := []string{`\/`, `\u0041`, `\u007F`, `\u001b`, `\u200B`, `\u2063`, `\ufeff`, "\u200b", "\u2014", "\u2063", "\ufeff", "\u00ad"}
	for n := range 4_000 {
		var text []byte
		if n%40 == 0 { // the literals are near the end of a block
			text = bytes.Repeat([]byte("~"), blockSize-40+rng.IntN(48))
		}
		for range rng.IntN(6) {
			l := s.literals[rng.IntN(len(s.literals))].text
			from := rng.IntN(len(l))
			if rng.IntN(3) > 0 {
				from = 0
			}
			text = append(text, l[from:]...)
			for range rng.IntN(3) {
				text = append(text, "aK_/ \"\\~"[rng.IntN(8)])
			}
			if rng.IntN(4) == 0 {
				text = append(text, hiding[rng.IntN(len(hiding))]...)
			}
		}
		var want []hit
		for at := range text {
			for n, l := range s.literals {
				if l.matches(text[at:]) {
					want = append(want, hit{at, n})
				}
			}
		}
		got := s.find(nil, text, new(block))
		byPlace := func(a, b hit) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.literal, b.literal)) }
		slices.SortFunc(got, byPlace)
		slices.SortFunc(want, byPlace)
		kit.Require(t, slices.Equal(got, want), "in %q: %v, want %v", text, got, want)
	}
}
