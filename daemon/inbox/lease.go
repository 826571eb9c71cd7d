package inbox

import (
	"crypto/rand"
	"time"

	"github.com/ccship/ccship/state/projection"
)

// A hook has so little time that it may have ended when its answer arrives. So it confirms the notices before it passes
// them on. Notices that are not confirmed go to the next hook.

// leaseTime is how long a hook has to confirm; it takes 20 ms in all. A later confirmation is refused, and that hook
// passes nothing on.
const leaseTime = time.Second

// lease is a list of notices that a hook has received and not confirmed yet.
type lease struct {
	session string
	list    []projection.Notice
	timer   *time.Timer // ends the lease
}

// lease returns a receipt for notices that are handed over.
func (n *notices) lease(session string, list []projection.Notice) (receipt string) {
	receipt = rand.Text()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.leases[receipt] = &lease{session, list, time.AfterFunc(n.leaseTime, func() { n.expire(receipt) })}
	return receipt
}

// confirm ends a lease: its notices have arrived. It returns their number, or 0 if the lease has expired.
func (n *notices) confirm(receipt string) (notices int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	l := n.leases[receipt]
	if l == nil {
		return 0
	}
	l.timer.Stop()
	delete(n.leases, receipt)
	return len(l.list)
}

func (n *notices) expire(receipt string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if l := n.leases[receipt]; l != nil {
		n.end(receipt, l)
	}
}

// end makes a lease's notices ready for the next hook, before newer ones. The caller holds mu.
func (n *notices) end(receipt string, l *lease) {
	l.timer.Stop()
	delete(n.leases, receipt)
	n.ready[l.session] = append(l.list, n.ready[l.session]...)
}
