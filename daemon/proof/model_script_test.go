package proof_test

import (
	"bytes"
	"context"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/remote"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/tail"
)

// script runs one history that is given step by step, and checks what every history must end with.
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

// send writes lines and waits until they are delivered.
func (h *history) send(m *modelMachine, session string, lines int) {
	m.write(session, lines)
	h.deliver(m)
}

// queue has a machine that does not reach the server read its transcripts.
func (h *history) queue(m *modelMachine) {
	h.server.setCut("ccship/"+m.name, true)
	m.start()
	for began := time.Now(); time.Since(began) < reconcilePatience; {
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
		h.send(a, "a", 3)
		h.server.snapshot()
		a.write("a", 3)
		h.send(a, "b", 3)
		h.server.restore(0, false)
	})
}

// TestVerifiedAtOnce: a comparison with another database has ended, and the state does not hold yet which database it is.
func TestVerifiedAtOnce(t *testing.T) {
	script(t, func(h *history, a, _ *modelMachine) {
		waits, on := make(chan struct{}, 1), make(chan struct{})
		release := sync.OnceFunc(func() { close(on) })
		defer release()
		h.log.delay = func(message string) {
			if strings.HasPrefix(message, "delivered again") { // the drainer says so before it keeps the ledger
				select {
				case waits <- struct{}{}:
				default:
				}
				<-on
			}
		}
		h.send(a, "a", 3)
		h.server.snapshot()
		h.server.restore(0, true)
		h.deliver(a)
		h.await("the drainer", waits)
		h.checkVerify(a, false)
		release()
	})
}

// TestExchangedDuringComparison: the database is exchanged again while a sync waits for the comparison with it.
func TestExchangedDuringComparison(t *testing.T) {
	script(t, func(h *history, a, _ *modelMachine) {
		h.send(a, "a", 3)
		h.server.snapshot()
		h.send(a, "a", 3)
		h.server.snapshot()
		h.server.restore(1, true)
		h.server.whenDigested(func() { h.server.restore(0, false) })
		h.deliver(a)
		h.checkViews(a)
	})
}

// TestPastBeforeRejoin: the generations that a new state read before it joined the epoch in front never had their numbers
// there. The server has other, shorter generations under these.
func TestPastBeforeRejoin(t *testing.T) {
	script(t, func(h *history, a, _ *modelMachine) {
		h.send(a, "a", 3)
		for range 4 {
			a.rewind("a", 1, 2)
			h.deliver(a)
		}
		a.halt()
		a.lose()
		h.queue(a)
		for range 3 {
			a.rewind("a", 2, 6)
			must(a.read())
		}
		h.server.setCut("ccship/A", false)
		h.deliver(a)
		h.checkVerify(a, true)
	})
}

// TestPastUnderFormerNames: what ended before a copied machine took a name of its own is at the server under a former
// one, also when that happened twice.
func TestPastUnderFormerNames(t *testing.T) {
	script(t, func(h *history, a, b *modelMachine) {
		h.send(a, "b", 2)
		h.send(a, "a", 4)
		must(os.Remove(a.path("b")))
		for range 2 {
			a.rewind("a", 1, 2)
			h.deliver(a)
			a.cloneTo(b, true)
			if h.tellApart(a, b) == b {
				a, b = b, a
			}
		}
	})
}

// TestKilledBeforeComparison: a database goes back while a write is in flight, and counts it with a number that the one
// before gave to another write. The daemon is killed between its suspicion and the comparison. Counts agree from then
// on; only what the state keeps of the suspicion finds the lines that the older copy lacks.
func TestKilledBeforeComparison(t *testing.T) {
	script(t, func(h *history, a, _ *modelMachine) {
		a.write("a", 3)
		h.send(a, "b", 3)
		asked := h.server.refuseLedger(true)
		held, release := h.server.holdWrites("b")
		defer release()
		a.write("b", 3)
		h.await("the write", held)
		h.server.snapshot()
		a.write("a", 3)
		for began := time.Now(); ; { // of a all is acknowledged, of b nothing
			s, err := a.client().Status(context.Background())
			must(err)
			sent := h.server.get("/api/sessions/a/raw", url.Values{"machine": {"A"}})
			if s.Outbox.Entries == 3 && bytes.Count(sent, []byte("\n")) == 6 {
				break
			}
			if time.Since(began) > reconcilePatience {
				h.fail("%d entries wait", s.Outbox.Entries)
			}
		}
		h.server.restore(0, false)
		release()
		h.await("the question for the ledger", asked)
		a.kill()
		h.server.refuseLedger(false)
	})
}

// TestServerBackAndForth: an older copy of the database is put in its place, and later the newer one again, while the
// same daemon runs. The newer one has more writes than the daemon knows of the older one, and lacks what that one got.
func TestServerBackAndForth(t *testing.T) {
	script(t, func(h *history, a, _ *modelMachine) {
		h.send(a, "a", 2)
		h.server.snapshot()
		for range 6 {
			h.send(a, "a", 1)
		}
		h.server.swap(0)
		h.deliver(a)
		h.send(a, "b", 2)
		h.server.swap(0)
	})
}

// TestAsManyWritesOfAnother: two daemons use one machine's name. After the database went back, one of them writes as
// often as the other had written: the counts agree, and what the other wrote is missing.
func TestAsManyWritesOfAnother(t *testing.T) {
	script(t, func(h *history, a, b *modelMachine) {
		h.send(a, "a", 2)
		a.cloneTo(b, false)
		h.server.snapshot()
		h.send(b, "b", 2)
		h.server.restore(0, false)
		h.send(a, "a", 2)
		h.send(b, "c", 2)
	})
}

// await waits until something happens.
func (h *history) await(what string, rings <-chan struct{}) {
	select {
	case <-rings:
	case <-time.After(reconcilePatience):
		h.fail("%s never comes", what)
	}
}

// TestServerRestoredBeforeRewind: the server has all of the generation before a rewind and nothing of the one after it,
// of which only the end is queued.
func TestServerRestoredBeforeRewind(t *testing.T) {
	script(t, func(h *history, a, _ *modelMachine) {
		h.send(a, "a", 4)
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
		h.send(a, "a", 3)
		a.cloneTo(b, true)
		h.deliver(b)
		h.send(b, "a", 2)
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

// TestReplacedIsSentAgain: lines that were rewound before they were sent leave the queue when their transcript rejoins.
// They reach the server without being asked for: as an earlier generation, ahead of what is on disk.
func TestReplacedIsSentAgain(t *testing.T) {
	script(t, func(h *history, a, _ *modelMachine) {
		a.write("a", 4)
		h.queue(a)
		lost := readLines(a.path("a"))
		a.rewind("a", 1, 2)
		must(a.read())
		a.exchange()
		h.server.setCut("ccship/A", false)
		h.send(a, "a", 1)
		a.exchange()
		h.deliver(a)
		h.noLetters(a)
		h.hasAll(a, "a", lost)
	})
}

// TestRewoundIsThereAlready: the state went back to a time at which lines that the server has by now waited, since
// rewound. They are not sent again.
func TestRewoundIsThereAlready(t *testing.T) {
	script(t, func(h *history, a, _ *modelMachine) {
		a.write("a", 4)
		h.queue(a)
		a.rewind("a", 1, 2)
		must(a.read())
		a.snapshot()
		h.server.setCut("ccship/A", false)
		h.deliver(a)
		for range 2 { // more generations than the state knows
			a.rewind("a", 1, 3)
			h.deliver(a)
		}
		before := h.newest(a, "a")
		a.restore(0, false)
		h.deliver(a)
		h.noLetters(a)
		if after := h.newest(a, "a"); after > before+1 {
			h.fail("generation %d became %d: more than where the transcript continues", before, after)
		}
	})
}

// TestReplacedIsLeft: a daemon that ended before it queued such lines again does it later, with nothing to compare.
func TestReplacedIsLeft(t *testing.T) {
	script(t, func(h *history, a, _ *modelMachine) {
		a.write("a", 4)
		h.queue(a)
		lost := readLines(a.path("a"))
		a.rewind("a", 1, 2)
		must(a.read())
		a.stopped(func() {
			db, err := state.Open(context.Background(), state.Options{Path: filepath.Join(a.cfg.StateDir, "state.db")})
			must(err)
			files, err := db.Files.Load(context.Background())
			must(err)
			at := files[0].Cursor
			must(db.Rejoin(context.Background(), files[0].File.ID,
				state.Rejoin{Expect: at, Cursor: tail.Cursor{Generation: at.Generation + 1}}))
			if db.Outbox.Usage().Dead == 0 {
				h.fail("nothing is left")
			}
			must(db.Close())
		})
		h.server.setCut("ccship/A", false)
		h.deliver(a)
		h.noLetters(a)
		h.hasAll(a, "a", lost)
	})
}

// TestRepairBesideSending: while a transcript is compared in order to be sent again, what waits of it goes on, and
// replaces what the server has said that it has.
func TestRepairBesideSending(t *testing.T) {
	script(t, func(h *history, a, _ *modelMachine) {
		large := func() string { // a request of its own
			return strings.Replace(a.text(1), `"/w"`, `"/w","text":"`+strings.Repeat("x", 3<<20)+`"`, 1)
		}
		whole := a.text(4) + large() + large() + a.text(2)
		must(os.WriteFile(a.path("a"), []byte(whole), 0o600))
		h.deliver(a)
		h.server.setCut("ccship/A", true)
		a.rewind("a", 4, 2)
		must(a.read())
		must(os.WriteFile(a.path("a"), []byte(whole), 0o600))
		must(a.read())
		waiting := func() int64 {
			s, err := a.client().Status(context.Background())
			must(err)
			return s.Outbox.Entries
		}
		if n := waiting(); n != 14 { // without a mark, all of it is sent again
			h.fail("%d lines wait", n)
		}
		h.server.allow(0)
		h.server.setCut("ccship/A", false)
		h.server.whenDigested(func() {
			h.server.allow(2) // the other lines, and the first large one
			for began := time.Now(); waiting() > 3 && time.Since(began) < reconcilePatience; {
				_, _ = a.client().Flush(context.Background())
			}
		})
		_, err := a.client().Resend(context.Background(), control.ResendRequest{Session: "a"})
		must(err)
		h.server.allow(-1)
		h.deliver(a)
	})
}

// newest is the number of the newest generation at the server.
func (h *history) newest(m *modelMachine, session string) uint32 {
	name := m.identity().Name
	d, err := h.server.reader().Digest(context.Background(), remote.Ref{Session: session, Machine: &name})
	must(err)
	g, _ := d.Newest()
	return uint32(g.Generation)
}

// hasAll: everything of lines can be read from the server.
func (h *history) hasAll(m *modelMachine, session string, lines []string) {
	has := h.readable(reconcilePlace{m.identity().Name, session})
	for _, l := range lines {
		if !has[l] {
			h.fail("the server lacks %s, which was rewound while it waited", l)
		}
	}
}

// noLetters: a machine has no dead letters.
func (h *history) noLetters(m *modelMachine) {
	letters, err := m.client().DeadLetters(context.Background())
	if err != nil || len(letters.Letters) > 0 {
		h.fail("%s: dead letters %+v, %v", m.name, letters, err)
	}
}

func readLines(path string) []string {
	data, err := os.ReadFile(path)
	must(err)
	return strings.Fields(string(data))
}
