package search

import (
	"math"
)

// Holds reports whether the data of a segment's row has the grams of a text: what an audit of the tables asks.
func Holds(data []byte, folded string) (bool, error) {
	list, err := unpacked(data)
	if err != nil {
		return false, err
	}
	plan := planOf([]string{folded})
	found := map[key]bool{}
	for _, p := range list {
		if p.Part != gramPage {
			continue
		}
		all := func(key) bool { return true }
		if err := each(p, 0, math.MaxUint64, all, func(k key, _ []uint32) { found[k] = true }); err != nil {
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
