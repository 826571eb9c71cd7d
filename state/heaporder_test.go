package state

import (
	"container/heap"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"
)

type ints struct{ sort.IntSlice }

func (h *ints) Push(v any) { h.IntSlice = append(h.IntSlice, v.(int)) }
func (h *ints) Pop() any   { return nil } // not used

// TestWalk: every element once, in order; a walk that ends early saw the least ones.
func TestWalk(t *testing.T) {
	for n := range 50 {
		h := &ints{}
		for range n {
			heap.Push(h, rand.IntN(20))
		}
		var seen []int
		walkHeap(n, h.Less, func(place int) bool { seen = append(seen, h.IntSlice[place]); return true })
		if len(seen) != n || !slices.IsSorted(seen) {
			t.Errorf("%d elements: %v", n, seen)
		}
		first := 0
		walkHeap(n, h.Less, func(int) bool { first++; return first < 3 })
		if first != min(n, 3) {
			t.Errorf("%d of %d elements", first, n)
		}
	}
}
