package library

import "testing"

// A session that lies here in several files, or came from another machine, is on disk, once, and not lost.
func TestCopiesOnDisk(t *testing.T) {
	r := newRoom(t, &stored{id: one, machine: abroad, copies: [][2]string{{one, here}, {one + "~2", here}, {one + " 2", here}}},
		&stored{id: two, machine: here}, &stored{id: two + "~2", machine: here})
	for _, name := range []string{"-p/" + one, "-q/" + one, "-p/" + one + " 2", "-p/" + two, "-q/" + two} {
		r.write(name+".jsonl", prompt("a"), 0)
	}
	items, _, err := r.List(t.Context(), Filter{Limit: 9})
	if err != nil || len(items) != 3 {
		t.Fatalf("%+v, %v", items, err)
	}
	for _, i := range items {
		if i.State != OnBoth || i.Path == "" {
			t.Errorf("%+v", i)
		}
	}
	if lost, err := r.Lost(t.Context()); err != nil || len(lost.Restorable)+len(lost.Gone) > 0 {
		t.Errorf("%+v, %v", lost, err)
	}
}
