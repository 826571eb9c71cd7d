package textindex

import (
	"math"

	"github.com/ccship/ccship/server/grams"
)

// Holds reports whether the data of a segment's row has the grams of a text: what an audit of the tables asks.
func Holds(data []byte, folded string) (bool, error) {
	list, err := unpacked(data)
	if err != nil {
		return false, err
	}
	plan := grams.PlanOf([]string{folded})
	found := map[grams.Key]bool{}
	for _, p := range list {
		if p.Part != grams.GramPage {
			continue
		}
		all := func(grams.Key) bool { return true }
		if err := each(p, math.MaxUint64, all, func(k grams.Key, _ []uint32) { found[k] = true }); err != nil {
			return false, err
		}
	}
	for _, k := range plan.All {
		if !found[k] {
			return false, nil
		}
	}
	return len(plan.All) > 0, nil
}
