package library

import (
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

// A session that lies here in several files, or came from another machine, is on disk, once, and not lost.
func TestCopiesOnDisk(t *testing.T) {
	r := newRoom(t, &stored{id: one, machine: abroad, copies: [][2]string{{one, here}, {one + "~2", here}, {one + " 2", here}}},
		&stored{id: two, machine: here}, &stored{id: two + "~2", machine: here})
	for _, name := range []string{"-p/" + one, "-q/" + one, "-p/" + one + " 2", "-p/" + two, "-q/" + two} {
		r.write(name+".jsonl", prompt("a"), 0)
	}
	items, _, err := r.List(t.Context(), Filter{Limit: 9})
	kit.Require(t, err == nil && len(items) == 3, "%+v, %v", items, err)
	for _, i := range items {
		kit.Check(t, i.State == OnBoth && i.Path != "", "%+v", i)
	}
	lost, err := r.Lost(t.Context())
	kit.Check(t, err == nil && len(lost.Restorable)+len(lost.Gone) == 0, "%+v, %v", lost, err)
}
