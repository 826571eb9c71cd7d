package e2e

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/protocol"
)

// way is a home whose daemon ships to a server of its own, which reaches the database in one of the ways that
// docs/scale.md names.
type way struct {
	*home
	name   string
	server *shipServer
	proc   *kit.Process
	files  []crashFile
	rng    *rand.Rand
	lines  int // on disk
	stop   chan struct{}
	done   chan error
}

func newWay(t testing.TB, name, store string, seed uint64) *way {
	t.Helper()
	h := newHome(t)
	w := &way{home: h, name: name, server: newShipServerAt(h, store), rng: rand.New(rand.NewPCG(seed, 1))}
	h.writeKey(w.server.key)
	h.url = w.server.url.String()
	for range 5 {
		conv := newConversation(w.rng.Uint64(), h.cwd())
		w.files = append(w.files, crashFile{conv, h.path("-work", conv.session+".jsonl")})
	}
	w.proc = h.daemon()
	return w
}

// write adds a line to one of the transcripts, again and again, until pause.
func (w *way) write() {
	w.stop, w.done = make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			select {
			case <-w.stop:
				w.done <- nil
				return
			case <-time.After(20 * time.Millisecond):
			}
			f := w.files[w.rng.IntN(len(w.files))]
			if err := appendTo(f.path, f.line(800+w.rng.IntN(2000))); err != nil {
				w.done <- err
				return
			}
		}
	}()
}

// pause ends the writing and returns how many lines there are more.
func (w *way) pause() int {
	w.t.Helper()
	close(w.stop)
	must(w.t, <-w.done)
	before := w.lines
	w.lines = 0
	for _, f := range w.files {
		if data, err := os.ReadFile(f.path); err == nil {
			w.lines += bytes.Count(data, []byte("\n"))
		}
	}
	return w.lines - before
}

// check demands that the server has every line and that all that verifies finds nothing wrong. What was acknowledged
// and is lost would be there again by now, because the daemon compares and sends what the server lacks: so the daemon
// must never have seen a database with fewer writes than it acknowledged.
func (w *way) check() {
	w.t.Helper()
	w.look("", 0, "sync", "--wait", "--timeout", "8m")
	kit.Equal(w.t, fmt.Sprintf("%s: dead letters", w.name), w.status().Outbox.Dead, 0)
	for _, code := range []string{protocol.CodeStoreBehind, protocol.CodeOtherStore} {
		kit.Check(w.t, !strings.Contains(w.proc.Log.String(), "code="+code),
			"%s: the database lost what it had acknowledged: %s", w.name, code)
	}
	for _, f := range w.files {
		got, want := w.server.raw(f.session, ""), w.read(f.path)
		kit.Check(w.t, bytes.Equal(got, want), "%s: %s: %s", w.name, f.session, firstDifference(got, want))
	}
	for _, args := range [][]string{{"verify"}, {"verify", "--deep"}} {
		w.look("", 0, args...)
	}
	out := w.runProgram(kit.Program(w.t, "ccship-server"), "verify", "--store", w.server.store())
	kit.Check(w.t, out.code == 0, "%s: ccship-server verify: exit %d\n%s%s", w.name, out.code, out.stdout, out.stderr)
}

// TestPatroni: while lines come in, the primary of three nodes is killed with its Patroni, and the synchronous standby
// takes over; in every second round it takes over by request. The killed node comes back. After each round everything
// is there: through HAProxy, and through a connection that names all nodes.
func TestPatroni(t *testing.T) {
	rounds := kit.SettingNumber("rounds", 0)
	if rounds == 0 {
		t.Skip("lab patroni runs it")
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	c := newPatroni(t)
	c.database("one")
	c.database("two")
	ways := []*way{
		newWay(t, "through HAProxy", c.throughProxy("one"), seed),
		newWay(t, "all nodes named", c.throughNodes("two"), seed+1),
	}
	took := map[string][]float64{}
	for round := range 2 * rounds {
		what, trouble := "killed", c.killPrimary
		if round%2 == 1 {
			what, trouble = "switched over", c.switchPrimary
		}
		for _, w := range ways {
			w.write()
		}
		pass(2 * time.Second)
		seconds := trouble()
		took[what] = append(took[what], seconds)
		pass(time.Second)
		told := fmt.Sprintf("round %d: %s, another primary after %.1f s", round+1, what, seconds)
		for _, w := range ways {
			lines := w.pause()
			told += fmt.Sprintf("; %s: %d lines", w.name, lines)
			kit.Require(t, lines != 0, "%s: nothing was written meanwhile", w.name)
			w.check()
		}
		t.Log(told)
	}
	for what, seconds := range took {
		slices.Sort(seconds)
		t.Logf("%s %d times: another primary after %.1f s in the median, %.1f at most",
			what, len(seconds), seconds[len(seconds)/2], seconds[len(seconds)-1])
	}
	for _, w := range ways {
		st := w.status()
		t.Logf("%s: %d lines on disk, %d acknowledged in %d requests", w.name, w.lines, st.Sent.Entries, st.Sent.Requests)
	}
}

// killPrimary waits for the next primary and for the killed node, and returns how long there was none.
func (c *patroni) killPrimary() (seconds float64) {
	c.t.Helper()
	old, standby := c.settled()
	began := time.Now()
	c.kill(old)
	c.succeeded(old, standby)
	seconds = time.Since(began).Seconds()
	c.start(old)
	c.settled()
	return seconds
}

// switchPrimary asks Patroni for another primary.
func (c *patroni) switchPrimary() (seconds float64) {
	c.t.Helper()
	old, standby := c.settled()
	began := time.Now()
	c.switchover(old, standby)
	c.succeeded(old, standby)
	seconds = time.Since(began).Seconds()
	c.settled()
	return seconds
}

// succeeded waits until another node is primary: the synchronous standby, which has everything.
func (c *patroni) succeeded(old, standby *patroniNode) {
	c.t.Helper()
	var now *patroniNode
	eventually(c.t, "another primary", 3*time.Minute, func() bool { now = c.primary(); return now != nil && now != old })
	kit.Check(c.t, now == standby, "%s became primary, not the synchronous standby %s", now.name, standby.name)
}
