package markup_test

import (
	"testing"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server/web/markup"
)

// TestTally counts a line that is in another place as moved, and a blank one not at all.
func TestTally(t *testing.T) {
	for _, c := range []struct {
		a, b                  []uint64
		removed, added, moved int64
	}{
		{nil, nil, 0, 0, 0},
		{[]uint64{1, 2, 3}, []uint64{1, 2, 3}, 0, 0, 0},
		{[]uint64{1, 2, 3, 4, 5}, []uint64{1, 9, 5, 2}, 2, 1, 1},
		{[]uint64{1, 7, 7, 0}, []uint64{1, 7}, 0, 0, 1}, // one of two that are alike is left out
		{[]uint64{1}, []uint64{2, 0, 1, 1}, 0, 1, 0},
	} {
		removed, added, moved := markup.Tally(c.a, c.b, markup.Compare(c.a, c.b))
		kit.Check(t, removed == c.removed && added == c.added && moved == c.moved,
			"%v → %v: %d removed, %d added, %d moved", c.a, c.b, removed, added, moved)
	}
}
