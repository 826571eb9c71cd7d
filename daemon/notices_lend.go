package daemon

import (
	"crypto/rand"
	"time"

	"github.com/ccship/ccship/state"
)

// A hook has so little time that it may be gone when its answer comes. So it confirms what it got before it passes it
// on: what nobody confirms is handed to the next hook.

// lendTime is how long a hook has for that; it takes 20 ms in all. Who is later is refused, and passes nothing on.
const lendTime = time.Second

// loan is what was handed over, and is not confirmed yet.
type loan struct {
	session string
	list    []state.Pending
	end     *time.Timer
}

// lend makes a receipt for what is handed over.
func (n *herald) lend(session string, list []state.Pending) (receipt string) {
	receipt = rand.Text()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lent[receipt] = &loan{session, list, time.AfterFunc(n.lendTime, func() { n.takeBack(receipt) })}
	return receipt
}

// confirm ends a loan: what was handed over is told. It answers how many notices that were, 0 when they were taken back.
func (n *herald) confirm(receipt string) (notices int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	x := n.lent[receipt]
	if x == nil {
		return 0
	}
	x.end.Stop()
	delete(n.lent, receipt)
	return len(x.list)
}

func (n *herald) takeBack(receipt string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if x := n.lent[receipt]; x != nil {
		n.regain(receipt, x)
	}
}

// regain has a loan ready for the next hook, before what came since. The caller holds mu.
func (n *herald) regain(receipt string, x *loan) {
	x.end.Stop()
	delete(n.lent, receipt)
	n.ready[x.session] = append(x.list, n.ready[x.session]...)
}
