package derive

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/state/projection"
)

func every(*projection.Notice) bool { return true }

// lent is what a hook gets: the paths, and the receipt.
func (n *notices) lent(session string) (paths []string, receipt string) {
	l, receipt := n.lend(session, false, every)
	for _, p := range l.list {
		paths = append(paths, p.Path)
	}
	return paths, receipt
}

// gets demands that the next hook of a session gets this and does not print it.
func (n *notices) gets(t *testing.T, session string, want ...string) {
	t.Helper()
	paths, receipt := n.lent(session)
	kit.Same(t, "-want +got", cmp.Diff(want, paths))
	n.expire(receipt)
}

// prints has the next hook of a session print this.
func (n *notices) prints(t *testing.T, session string, want ...string) {
	t.Helper()
	paths, receipt := n.lent(session)
	kit.Same(t, "-want +got", cmp.Diff(want, paths))
	k, known := n.confirm(t.Context(), receipt)
	kit.Check(t, k == len(want) && known, "%d are confirmed, %v", k, known)
}

// What a hook does not confirm goes to the next one, before newer notices. Until then no other hook gets it.
func TestLeaseExpires(t *testing.T) {
	n, _ := noticesOf(t, nil)
	n.add(t, "s", "a", "b")
	n.add(t, "other", "z")
	_, receipt := n.lent("s")
	n.gets(t, "s")
	n.gets(t, "other", "z")
	n.add(t, "s", "c")
	n.gets(t, "s", "c")
	n.expire(receipt)
	n.gets(t, "s", "a", "b", "c")
	n.leaseTime = time.Nanosecond
	n.lent("s")
	n.leaseTime = time.Hour
	kit.Eventually(t, "the lease ends by itself", 10*time.Second, func() bool { paths, _ := n.lent("s"); return len(paths) == 3 })
}

// A hook that prints late has printed all the same. Then the text was shown twice, and is never shown again.
func TestLateConfirmation(t *testing.T) {
	n, _ := noticesOf(t, nil)
	n.add(t, "s", "a")
	_, late := n.lent("s")
	n.expire(late)
	n.prints(t, "s", "a")
	k, known := n.confirm(t.Context(), late)
	kit.Check(t, k == 1 && known, "%d, %v", k, known)
	kit.Eventually(t, "it is gone", 10*time.Second, func() bool { return len(n.projections.Notices.Of("s")) == 0 })
	_, gone := n.lent("s")
	for _, receipt := range []string{"", "nonsense", late, gone} {
		_, known := n.confirm(t.Context(), receipt)
		kit.Check(t, !known, "%q confirms something", receipt)
	}
	n.add(t, "s", "b")
	_, late = n.lent("s")
	n.expire(late)
	n.expire(late) // a minute later
	_, known = n.confirm(t.Context(), late)
	kit.Check(t, !known, "a receipt is good for ever")
	n.gets(t, "s", "b")
}

// A daemon that is killed knows what the state knows: nothing is lost, and what was printed comes again only with time.
func TestKilledDaemonLosesNothing(t *testing.T) {
	n, stop := noticesOf(t, nil)
	n.add(t, "s", "leased", "printed")
	_, receipt := n.lent("s")
	n.expire(receipt)
	l, receipt := n.lend("s", false, func(p *projection.Notice) bool { return p.Path == "printed" })
	k, _ := n.confirm(t.Context(), receipt)
	kit.Require(t, k == 1 && len(l.list) == 1, "not confirmed")
	n.lent("s")
	stop()
	next := NewNotices(n.projections, n.introductions, n.log)
	next.gets(t, "s", "leased")
	next.answered("s", "m1", "2.1.328")
	next.answered("s", "m2", "2.1.328")
	next.gets(t, "s", "leased")
	next.againAfter = 0
	next.gets(t, "s", "leased", "printed")
}

// Nothing of a forgotten session is kept in memory, or printed.
func TestForgetEndsLeases(t *testing.T) {
	n, _ := noticesOf(t, nil)
	n.add(t, "s", "a")
	_, receipt := n.lent("s")
	n.forget("s")
	_, known := n.confirm(t.Context(), receipt)
	kit.Check(t, !known && len(n.sessions)+len(n.leases)+len(n.unsaved) == 0, "%d sessions, %d leases are left", len(n.sessions), len(n.leases))
}
