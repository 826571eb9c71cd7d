package reconcile_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/ccship/ccship/daemon/control"
)

// script runs one history that is told step by step, and checks what every history must end with.
func script(t *testing.T, steps func(h *history, a, b *modelMachine)) {
	t.Parallel()
	h := newHistory(t)
	defer h.end()
	steps(h, h.machines[0], h.machines[1])
	h.heal()
	h.check()
}

// deliver waits until a machine has delivered everything.
func (h *history) deliver(m *modelMachine) {
	m.start()
	h.syncOne(m)
}

// queue has a machine that does not reach the server read its transcripts.
func (h *history) queue(m *modelMachine) {
	h.server.setCut("ccship/"+m.name, true)
	m.start()
	for began := time.Now(); time.Since(began) < patience; {
		_ = m.sync(100 * time.Millisecond)
		if s, err := m.client().Status(context.Background()); err == nil && s.Outbox.Entries > 0 {
			return
		}
	}
	h.fail("%s queues nothing", m.name)
}

// TestIdleServerRestored: a sync notices that the server lacks what it acknowledged, although there is nothing to send.
func TestIdleServerRestored(t *testing.T) {
	script(t, func(h *history, a, _ *modelMachine) {
		a.write("a", 3)
		h.deliver(a)
		h.server.snapshot()
		a.write("a", 3)
		a.write("b", 3)
		h.deliver(a)
		h.server.restore(0, false)
	})
}

// TestServerRestoredBeforeRewind: the server has all of the generation before a rewind and nothing of the one after it,
// of which only the end is queued.
func TestServerRestoredBeforeRewind(t *testing.T) {
	script(t, func(h *history, a, _ *modelMachine) {
		a.write("a", 4)
		h.deliver(a)
		h.server.snapshot()
		a.rewind("a", 2, 3)
		h.deliver(a)
		h.server.restore(0, false)
		a.write("a", 1)
	})
}

// TestIdleClone: a sync notices that another daemon went on under this machine's name, although there is nothing to
// send.
func TestIdleClone(t *testing.T) {
	script(t, func(h *history, a, b *modelMachine) {
		a.write("a", 3)
		h.deliver(a)
		a.cloneTo(b, true)
		h.deliver(b)
		b.write("a", 2)
		h.deliver(b)
	})
}

// TestGoneBeforeItWasSent: the only copy of some lines is in the queue of a state that is not in front any more.
func TestGoneBeforeItWasSent(t *testing.T) {
	script(t, func(h *history, a, _ *modelMachine) {
		a.write("a", 2)
		a.write("c", 2)
		h.queue(a)
		a.exchange()
		h.server.setCut("ccship/A", false)
		h.deliver(a)
		must(os.Remove(a.path("a")))
		a.exchange()
	})
}

// TestReplacedIsSentAgain: lines of a generation that ended before they were sent can be queued again by hand; the
// server has no place for them, and asks for no comparison without end.
func TestReplacedIsSentAgain(t *testing.T) {
	script(t, func(h *history, a, _ *modelMachine) {
		a.write("a", 4)
		h.queue(a)
		a.rewind("a", 1, 2)
		_ = a.sync(time.Second)
		a.exchange()
		h.server.setCut("ccship/A", false)
		a.write("a", 1)
		h.deliver(a)
		a.exchange()
		h.deliver(a)
		letters, err := a.client().DeadLetters(context.Background())
		if err != nil || len(letters.Letters) == 0 {
			h.fail("dead letters %+v, %v", letters, err)
		}
		_, err = a.client().RetryDead(context.Background(), control.DeadRequest{All: true})
		must(err)
	})
}
