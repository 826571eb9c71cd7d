package proof_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/remote"
	"github.com/ccship/ccship/e2e/kit"
)

// history is two machines and a server that anything may happen to.
type history struct {
	t interface {
		Fatalf(format string, args ...any)
	}
	dir      string
	server   *modelServer
	machines []*modelMachine
	log      *trace
	lines    int
	clones   int // made so far
}

// modelSessions are mostly the same one, on mostly the same machine: what went wrong needs several deeds in a row.
var modelSessions = []string{"a", "a", "a", "b"}

// deeds are what may happen, by their names.
var deeds = map[string]deed{
	"write": func(h *history, m *modelMachine, r *rapid.T) {
		m.write(rapid.SampledFrom(modelSessions).Draw(r, "session"), rapid.IntRange(1, 4).Draw(r, "lines"))
	},
	"rewind": func(h *history, m *modelMachine, r *rapid.T) {
		m.rewind(rapid.SampledFrom(modelSessions).Draw(r, "session"), rapid.IntRange(0, 5).Draw(r, "keep"),
			rapid.IntRange(0, 4).Draw(r, "lines"))
	},
	"sync": func(h *history, m *modelMachine, r *rapid.T) {
		if m.stop != nil {
			_ = m.sync(200 * time.Millisecond)
		}
	},
	"deliver": func(h *history, m *modelMachine, r *rapid.T) {
		m.start()
		_ = m.sync(2 * time.Second)
	},
	"retry dead letters": func(h *history, m *modelMachine, r *rapid.T) {
		if m.stop != nil {
			_, _ = m.client().RetryDead(context.Background(), control.DeadRequest{All: true})
		}
	},
	"start":    func(h *history, m *modelMachine, r *rapid.T) { m.start() },
	"stop":     func(h *history, m *modelMachine, r *rapid.T) { m.halt() },
	"kill":     func(h *history, m *modelMachine, r *rapid.T) { m.kill() },
	"snapshot": func(h *history, m *modelMachine, r *rapid.T) { m.snapshot() },
	"restore": func(h *history, m *modelMachine, r *rapid.T) {
		if n := len(m.kept); n > 0 {
			m.restore(rapid.IntRange(0, n-1).Draw(r, "which"), rapid.Bool().Draw(r, "home"))
		}
	},
	"exchange state": func(h *history, m *modelMachine, r *rapid.T) { m.exchange() },
	"lose state":     func(h *history, m *modelMachine, r *rapid.T) { m.lose() },
	"clone": func(h *history, m *modelMachine, r *rapid.T) {
		other := h.machines[0]
		if m == other {
			other = h.machines[1]
		}
		h.clones++
		m.cloneTo(other, rapid.Bool().Draw(r, "home"))
	},
	"partition": func(h *history, m *modelMachine, r *rapid.T) {
		h.server.setCut("ccship/"+m.name, rapid.Bool().Draw(r, "cut"))
	},
	"lose answers": func(h *history, m *modelMachine, r *rapid.T) {
		h.server.loseAnswers("ccship/"+m.name, rapid.IntRange(1, 3).Draw(r, "answers"))
	},
	"server snapshot": func(h *history, m *modelMachine, r *rapid.T) { h.server.snapshot() },
	"server restore": func(h *history, m *modelMachine, r *rapid.T) {
		if n := len(h.server.kept); n > 0 {
			h.server.restore(rapid.IntRange(0, n-1).Draw(r, "which"), rapid.Bool().Draw(r, "renew"))
		}
	},
	"server swap": func(h *history, m *modelMachine, r *rapid.T) {
		if n := len(h.server.kept); n > 0 {
			h.server.swap(rapid.IntRange(0, n-1).Draw(r, "which"))
		}
	},
}

// likely names each deed as often as it is likely.
var likely = []string{
	"write", "write", "write", "write", "write", "rewind", "rewind", "deliver", "deliver", "deliver", "sync", "start",
	"stop", "kill", "snapshot", "snapshot", "restore", "restore", "exchange state", "lose state", "clone", "partition",
	"lose answers", "retry dead letters", "server snapshot", "server restore", "server swap", "server forgets",
	"server forgets", "machine forgets",
}

// deed is one of deeds.
type deed func(h *history, m *modelMachine, r *rapid.T)

// forgetting is a deed in which one side goes back to a moment ago, and something is written then: what takes many
// deeds to come about by chance.
func forgetting(keep func(h *history, m *modelMachine), restore func(h *history, m *modelMachine, r *rapid.T)) deed {
	return func(h *history, m *modelMachine, r *rapid.T) {
		m.start()
		_ = m.sync(2 * time.Second)
		keep(h, m)
		for range rapid.IntRange(1, 3).Draw(r, "deeds in between") {
			deeds[rapid.SampledFrom([]string{"write", "rewind", "deliver"}).Draw(r, "deed in between")](h, m, r)
		}
		_ = m.sync(2 * time.Second)
		restore(h, m, r)
		deeds[rapid.SampledFrom([]string{"write", "rewind", "stop"}).Draw(r, "then")](h, m, r)
	}
}

func init() { // they use the other deeds
	deeds["server forgets"] = forgetting(
		func(h *history, _ *modelMachine) { h.server.snapshot() },
		func(h *history, _ *modelMachine, r *rapid.T) {
			h.server.restore(len(h.server.kept)-1, rapid.Bool().Draw(r, "renew"))
		})
	deeds["machine forgets"] = forgetting(
		func(_ *history, m *modelMachine) { m.snapshot() },
		func(_ *history, m *modelMachine, r *rapid.T) { m.restore(len(m.kept)-1, rapid.Bool().Draw(r, "home")) })
}

// TestMain lets more histories run at once than there are processors: they wait most of the time.
func TestMain(m *testing.M) {
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		must(flag.Set("test.parallel", itoa(parallel)))
	}
	os.Exit(m.Run())
}

// parallel is how many histories are tried at once.
const parallel = 16

// TestModel: whatever happens to two machines and a server, once all of them are well and synchronised the server shows
// what is on their disks, verify says so, all that was acknowledged can be read, and nobody has anything to send.
//
// CCSHIP_TEST=histories=N is how many histories are tried.
func TestModel(t *testing.T) {
	t.Parallel()
	n := kit.SettingNumber("histories", 100)
	if f := flag.Lookup("rapid.checks"); f.Value.String() == f.DefValue {
		must(flag.Set("rapid.checks", itoa(max(n/parallel, 1))))
	}
	o := &kit.Outcome{Group: "identity", Fault: "histories of two machines and a server that are restored, cloned, swapped and cut off"}
	kit.Record(t, o)
	o.Runs += max(n/parallel, 1) * parallel
	for i := range parallel {
		t.Run(itoa(i), func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, oneHistory)
		})
	}
}

func oneHistory(rt *rapid.T) {
	h := newHistory(rt)
	defer h.end()
	for range rapid.IntRange(2, 24).Draw(rt, "deeds") {
		m := h.machines[rapid.SampledFrom([]int{0, 0, 1}).Draw(rt, "machine")]
		what := rapid.SampledFrom(likely).Draw(rt, "deed")
		h.log.say("== %s %s", m.name, what)
		deeds[what](h, m, rt)
	}
	h.heal()
	h.check()
}

func newHistory(t interface {
	Fatalf(format string, args ...any)
}) *history {
	dir, err := os.MkdirTemp("", "ccship") // short: sockets lie in it
	must(err)
	h := &history{t: t, dir: dir, log: &trace{}, server: newModelServer(dir)}
	for _, name := range []string{"A", "B"} {
		h.machines = append(h.machines, newModelMachine(dir, name, h.server, h.log, &h.lines))
	}
	return h
}

// end stops everything.
func (h *history) end() {
	for _, m := range h.machines {
		m.halt()
	}
	h.server.close()
	must(os.RemoveAll(h.dir))
}

// fail ends the history, with what led here.
func (h *history) fail(format string, args ...any) {
	h.log.mu.Lock()
	text := h.log.text.String()
	h.log.mu.Unlock()
	h.t.Fatalf("%s\n%s", fmt.Sprintf(format, args...), text)
}

// heal makes everything reach everything, and synchronises until nothing changes.
func (h *history) heal() {
	h.log.say("== heal")
	for _, m := range h.machines {
		h.server.setCut("ccship/"+m.name, false)
		h.server.loseAnswers("ccship/"+m.name, 0)
		m.start()
	}
	const rounds = 8
	for range rounds {
		_, before := h.server.counts()
		for _, m := range h.machines {
			h.syncOne(m)
		}
		if _, after := h.server.counts(); before == after {
			return
		}
	}
	h.fail("after %d rounds the machines still send", rounds)
}

// syncOne waits until a machine has delivered everything. Each try cuts waiting times short.
func (h *history) syncOne(m *modelMachine) {
	var err error
	for began := time.Now(); time.Since(began) < 5*reconcilePatience; {
		if err = m.sync(3 * time.Second); err == nil {
			return
		}
	}
	h.fail("%s: sync: %v", m.name, err)
}

// check holds everything that must be so once all is healed.
func (h *history) check() {
	requests, writes := h.server.counts()
	for _, m := range h.machines {
		h.checkViews(m)
		h.checkVerify(m, false)
	}
	h.checkMemory()
	again, more := h.server.counts()
	if more != writes {
		h.fail("%d more requests with lines", more-writes)
	}
	if limit := 40; again-requests > limit {
		h.fail("%d more requests, most %d are expected", again-requests, limit)
	}
	for _, m := range h.machines {
		if !h.server.older && h.clones < 2 { // only the last former name is known
			h.checkVerify(m, true)
		}
	}
}

// checkViews: the server shows what is on disk.
func (h *history) checkViews(m *modelMachine) {
	for _, session := range m.sessions() {
		disk, err := os.ReadFile(m.path(session))
		must(err)
		status, shown := h.server.answer("/api/sessions/"+session+"/raw", url.Values{"machine": {m.identity().Name}})
		if status != http.StatusOK || !bytes.Equal(disk, shown) {
			h.fail("%s (%s): %s: the server answers %d\n%son disk is\n%s", m.name, m.identity().Name, session, status, shown, disk)
		}
	}
}

// checkVerify: verify agrees. A deep one agrees unless the server went back: it names the past that was lost then.
func (h *history) checkVerify(m *modelMachine, deep bool) {
	r, err := m.verify(deep)
	if err != nil {
		h.fail("%s: verify: %v", m.name, err)
	}
	if len(r.Differences) > 0 || r.Dead > 0 || r.Withheld > 0 || r.Waiting > 0 {
		h.fail("%s: verify: %+v", m.name, r)
	}
}

// checkMemory: everything that the database acknowledged can be read.
func (h *history) checkMemory() {
	for at, lines := range h.server.now.acked {
		readable := h.readable(at)
		for l := range lines {
			if !readable[l] {
				h.fail("%s of %s: %s was acknowledged and cannot be read", at.session, at.machine, l)
			}
		}
	}
}

// readable are the lines of all generations of all epochs of a transcript, and those that others replaced.
func (h *history) readable(at reconcilePlace) map[string]bool {
	found := map[string]bool{}
	ref := remote.Ref{Session: at.session, Machine: &at.machine}
	list, err := h.server.reader().Digests(context.Background(), []remote.Ref{ref}, true)
	must(err)
	for _, e := range list[0].Epochs {
		for _, g := range e.Generations {
			q := url.Values{"machine": {at.machine}, "epoch": {e.Epoch}, "generation": {fmt.Sprint(g.Generation)},
				"partial": {"1"}}
			for l := range strings.Lines(string(h.server.get("/api/sessions/"+at.session+"/raw", q))) {
				found[strings.TrimSuffix(l, "\n")] = true
			}
		}
	}
	return found
}

// tellApart lets a machine and its copy write until one of them takes a name of its own, and returns that one.
func (h *history) tellApart(a, b *modelMachine) *modelMachine {
	was := a.identity().Name
	for began := time.Now(); time.Since(began) < reconcilePatience; {
		for _, m := range []*modelMachine{b, a} {
			if h.send(m, "a", 1); m.identity().Name != was {
				return m
			}
		}
	}
	h.fail("both have one name")
	return nil
}
