//go:build unix

package claude_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit/setting"
)

// busyLoops is how many processes compute along with Claude Code for nothing.
const busyLoops = 4

// TestRealClaudeHooks holds what hooks promise, without a second try, on a machine that is busy: the first request of
// each session has the introduction, each checkpoint is shown within three requests, and no notice is lost by a daemon
// that is killed.
func TestRealClaudeHooks(t *testing.T) {
	setting.Asked(t)
	n := setting.Number("rounds", 3)
	for _, version := range allVersions() {
		t.Run(version, func(t *testing.T) {
			program := installed(t, version)
			api := newStub(t, fillScript)
			api.keeps = true
			h := newHome(t, program, api)
			h.version = version
			w := newWorld(h)
			w.withPlugin()
			w.start()
			s := &tale{world: w, api: api}
			w.prompt("hello") // the first start sets things up
			t.Run("introductions", func(t *testing.T) {
				defer s.lend(t)()
				defer busy(t)()
				s.introductions(n)
			})
			t.Run("checkpoints", func(t *testing.T) {
				defer s.lend(t)()
				s.checkpointsInTime(n)
			})
			t.Run("kills", func(t *testing.T) {
				defer s.lend(t)()
				s.kills(n)
			})
			s.settled()
		})
	}
}

// busy starts the loops and returns what ends them.
func busy(t testing.TB) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var loops []*exec.Cmd
	for range busyLoops {
		loop := exec.CommandContext(ctx, "sh", "-c", "while :; do :; done")
		must(t, loop.Start())
		loops = append(loops, loop)
	}
	return func() {
		cancel()
		for _, loop := range loops {
			_ = loop.Wait() // killed
		}
	}
}

// introductions starts sessions: the first request of each has the introduction, once.
func (s *tale) introductions(n int) {
	missed := 0
	for i := range n {
		from := s.requests()
		text := fmt.Sprintf("hello, number %d", i)
		s.expect(s.prompt(text), text)
		if first := s.api.told(from)[0]; strings.Count(first, started) != 1 {
			missed++
			s.t.Errorf("session %d: the first request has the introduction %d times", i, strings.Count(first, started))
		}
	}
	s.t.Logf("the first request has the introduction in %d of %d sessions", n-missed, n)
}

// fillScript fills the context in one turn that makes a request about every third of a second.
var fillScript = script{when: "Fill it", says: slices.Concat(
	[]answer{{used: limit * 60 / 100, tools: wait("0.2")}},
	slices.Repeat([]answer{{used: limit * 82 / 100, tools: wait("0.2")}}, 4),
	slices.Repeat([]answer{{used: limit * 91 / 100, tools: wait("0.2")}}, 4),
	[]answer{{used: limit * 91 / 100, text: "It is full."}},
)}

// crossings are the answers of fillScript that exceed a mark.
var crossings = map[string]int{"auto_80": 1, "auto_90": 5}

// checkpointsInTime fills the context again and again: each of the two checkpoints is shown within three requests after
// the answer that exceeded its mark, once.
func (s *tale) checkpointsInTime(n int) {
	later := map[int]int{} // number of checkpoints, by how many requests later they were shown
	for range n {
		from := s.requests()
		session := s.expect(s.prompt("Fill it"), "It is full.").SessionID
		told := s.api.told(from)
		for _, c := range s.madeCheckpoints(session, "auto_90", "auto_80") {
			first := slices.IndexFunc(told, func(request string) bool { return strings.Contains(request, c.ID) })
			after := first - crossings[c.Trigger]
			later[after]++
			if first < 0 || after > 3 {
				s.t.Errorf("%s of %s is told in request %d of %d", c.Trigger, session, first, len(told))
			} else if times := strings.Count(told[len(told)-1], c.ID); times != 1 {
				s.t.Errorf("%s of %s is told %d times", c.Trigger, session, times)
			}
		}
	}
	s.t.Logf("checkpoints by the number of requests after which they were told: %v", later)
}

// kills kills the daemon while the context fills, at any moment, and starts it again: in the end the model was shown
// each checkpoint, at most twice.
func (s *tale) kills(n int) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	times := map[int]int{} // number of checkpoints, by how often they were shown
	for range n {
		d := s.converse(ctx)
		from := s.requests()
		filled := make(chan outcome, 1)
		go func() { filled <- d.prompt("Fill it") }()
		eventually(s.t, "the context fills", time.Minute, func() bool { return s.requests() > from+1 })
		<-time.After(rand.N(2 * time.Second)) // not to wait for anything: any moment will do
		s.daemon.Kill()
		s.start()
		o := s.expect(<-filled, "It is full.")
		list := s.madeCheckpoints(o.SessionID, "auto_90", "auto_80")
		var last string
		eventually(s.t, "the model is told of both", time.Minute, func() bool {
			from := s.requests()
			d.prompt(turnPrompt)
			told := s.api.told(from)
			last = told[len(told)-1]
			return !slices.ContainsFunc(list, func(c checkpoint) bool { return !strings.Contains(last, c.ID) })
		})
		d.end()
		for _, c := range list {
			k := strings.Count(last, c.ID)
			times[k]++
			if k > 2 {
				s.t.Errorf("the model is told of %s %d times", c.Trigger, k)
			}
		}
	}
	s.t.Logf("checkpoints by how often they were told over %d kills: %v", n, times)
}
