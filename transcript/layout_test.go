package transcript

import (
	"crypto/sha256"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

// TestLayout: different views never have one digest, whatever is left out where, and one of which every line is there
// has that of its bytes.
func TestLayout(t *testing.T) {
	notes := map[string]Oversize{
		"long": {Offset: 1, Length: 2}, "later": {Offset: 2, Length: 2}, "longer": {Offset: 1, Length: 3}, "other": {Offset: 1, Length: 2, SHA256: [32]byte{1}},
	}
	kinds := []string{"", "a", "b", "g", "missing", "long", "later", "longer", "other"}
	seen := map[string][]string{}
	var try func(view []string)
	try = func(view []string) {
		h, whole := sha256.New(), true
		var layout Layout
		for i, what := range view {
			note, over := notes[what]
			switch {
			case what == "missing":
				whole = false
			case over:
				whole = false
				layout.Oversize(int64(i), note)
			default:
				layout.Line(int64(i))
				h.Write([]byte(what + "\n"))
			}
		}
		bytes := h.Sum(nil)
		sum := string(layout.Sum(int64(len(view)), bytes))
		other, twice := seen[sum]
		kit.Check(t, !twice, "%q and %q have one digest", other, view)
		if seen[sum] = append([]string{}, view...); whole != (sum == string(bytes)) {
			t.Errorf("%q: all there %t, the digest of the bytes %t", view, whole, sum == string(bytes))
		}
		if len(view) == 4 {
			return
		}
		for _, k := range kinds {
			try(append(view, k))
		}
	}
	try(nil)
	kit.Equal(t, "digests", len(seen), 1+9+81+729+6561)
}

// TestLayoutGoesOn: a copy goes on by itself, and missing lines count the same however they are given.
func TestLayoutGoesOn(t *testing.T) {
	var a Layout
	a.Line(0)
	b := a
	b.Line(3)
	a.Line(2)
	x, y := string(a.Sum(5, nil)), string(b.Sum(5, nil))
	kit.Check(t, x != y && a.Next() == 3 && b.Next() == 4, "copies are one")
	c := Layout{}
	c.Line(0)
	_ = c.Sum(2, nil) // a digest on the way changes nothing
	c.Line(2)
	kit.Equal(t, "a digest on the way counts", string(a.Sum(5, nil)), string(c.Sum(5, nil)))
}
