package inbox

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ccship/ccship/state/projection"
)

// Notices that a hook does not confirm go to the next one, before newer notices. The first hook cannot confirm any more.
func TestLeaseExpires(t *testing.T) {
	h, _ := noticesOf(t, nil)
	h.leaseTime = time.Nanosecond
	h.add(t, "s", "a", "b")
	h.add(t, "other", "z")
	receipt := h.lease("s", h.takeOnce(t, "s"))
	h.add(t, "s", "c")
	if diff := cmp.Diff([]string{"a", "b", "c"}, h.taken(t, "s", 3)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if n := h.confirm(receipt); n != 0 {
		t.Errorf("%d were confirmed too late", n)
	}
}

// takeOnce waits for notices, and takes them.
func (n *notices) takeOnce(t *testing.T, session string) (list []projection.Notice) {
	t.Helper()
	for len(list) == 0 && t.Context().Err() == nil {
		list = n.take(t.Context(), session)
	}
	return list
}

// Notices are confirmed once. A receipt without a lease confirms nothing.
func TestLeaseIsConfirmed(t *testing.T) {
	h, stop := noticesOf(t, nil)
	h.leaseTime = time.Hour
	h.add(t, "s", "a", "b")
	receipt := h.lease("s", h.takeOnce(t, "s"))
	if list := h.take(t.Context(), "s"); len(list) > 0 {
		t.Errorf("handed to two: %v", list)
	}
	for _, x := range []struct {
		receipt string
		want    int
	}{{"", 0}, {"nonsense", 0}, {receipt, 2}, {receipt, 0}} {
		if n := h.confirm(x.receipt); n != x.want {
			t.Errorf("%q confirms %d, want %d", x.receipt, n, x.want)
		}
	}
	stop()
	if list := h.take(t.Context(), "s"); len(list) > 0 || h.projections.Notices.Has("s") {
		t.Errorf("and then %v", list)
	}
}

// Leased notices are there again for the next daemon, but not those of a forgotten session.
func TestStopEndsLeases(t *testing.T) {
	h, stop := noticesOf(t, nil)
	h.leaseTime = time.Hour
	h.add(t, "s", "a")
	h.add(t, "forgotten", "b")
	one, two := h.lease("s", h.takeOnce(t, "s")), h.lease("forgotten", h.takeOnce(t, "forgotten"))
	h.forget("forgotten")
	stop()
	if h.confirm(one)+h.confirm(two) > 0 {
		t.Error("confirmed after that")
	}
	list, err := h.projections.Notices.Take(t.Context(), "s", "forgotten")
	if err != nil || len(list["s"]) != 1 || len(list["forgotten"]) != 0 {
		t.Errorf("%v, err %v", list, err)
	}
}
