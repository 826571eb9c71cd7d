package derive

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/ccship/ccship/state/projection"
)

// A hook that has received a text may end before it prints it: its time is up, or Claude Code or the user kills it. So
// it confirms the text once it has printed it. Until then the text is on lease: no other hook gets it.

const (
	// leaseTime is how long a lease lasts. A hook takes a second.
	leaseTime = 3 * time.Second
	// lateTime is how long after its end a confirmation still counts: the text was printed.
	lateTime = time.Minute
)

// lease is a text that a hook has received and not confirmed yet.
type lease struct {
	session string
	list    []projection.Notice
	init    bool        // the introduction is in it
	ended   bool        // others may have got the text
	timer   *time.Timer // ends the lease, then removes it
}

// lend leases to a hook the notices of a session that are due and wanted, and its introduction if init says so and no
// other hook has it. It returns an empty receipt when there is nothing.
func (n *notices) lend(session string, init bool,
	wanted func(*projection.Notice) bool) (l *lease, receipt string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	l = &lease{session: session}
	for _, p := range n.held(session) {
		if wanted(&p) {
			l.list = append(l.list, p)
			n.listenerOf(session).of(&p).leased = true
		}
	}
	if init && !n.listenerOf(session).introduced {
		l.init, n.listenerOf(session).introduced = true, true
	}
	if len(l.list) > 0 || l.init {
		receipt = rand.Text()
		n.leases[receipt] = l
		l.timer = time.AfterFunc(n.leaseTime, func() { n.expire(receipt) })
	}
	return l, receipt
}

// confirm ends a lease: its text was printed. It returns the number of notices in it; false if there is no such lease.
func (n *notices) confirm(ctx context.Context, receipt string) (notices int, known bool) {
	n.mu.Lock()
	l := n.leases[receipt]
	if l == nil {
		n.mu.Unlock()
		return 0, false
	}
	l.timer.Stop()
	n.end(l)
	delete(n.leases, receipt)
	n.print(l.session, l.list)
	n.mu.Unlock()
	if l.init {
		n.introductions.markShown(ctx, l.session)
	}
	return len(l.list), true
}

// expire ends a lease whose text may not have been printed: the next hook gets it.
func (n *notices) expire(receipt string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	l := n.leases[receipt]
	switch {
	case l == nil:
	case l.ended:
		delete(n.leases, receipt)
	default:
		l.timer.Stop()
		n.end(l)
		l.timer = time.AfterFunc(lateTime, func() { n.expire(receipt) })
	}
}

// end makes what a lease holds free. The caller holds mu.
func (n *notices) end(l *lease) {
	if l.ended {
		return
	}
	l.ended = true
	of := n.sessions[l.session]
	if of == nil {
		return
	}
	for i := range l.list {
		if h := of.handed[l.list[i].Seq]; h != nil {
			h.leased = false
		}
	}
	if l.init {
		of.introduced = false
	}
}
