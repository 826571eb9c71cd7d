//go:build unix

package chaos

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

// TestProcesses: programs are killed, stopped and started twice.
func TestProcesses(t *testing.T) {
	t.Parallel()
	const group = "programs"
	rows(t, []row{
		{group: group, fault: "kill -9 of the daemon at any time", short: 6, long: 500, do: func(r *room) {
			r.busy(func() {
				r.soon(120 * time.Millisecond)
				r.d.Kill()
			})
			r.heard("killed; its service manager starts it again")
		}},
		{group: group, fault: "kill -9 of the daemon while it starts", short: 4, long: 200, do: func(r *room) {
			r.stop()
			r.write(10)
			for range 3 {
				r.launch()
				r.soon(60 * time.Millisecond)
				r.d.Kill()
			}
			r.heard("killed; its service manager starts it again")
		}},
		{group: group, fault: "kill -9 of the daemon when a request is out", long: 100, do: func(r *room) {
			r.killedAt(func(d *kit.Process, pass func()) { d.Signal(os.Kill); <-d.Done(); pass() })
		}},
		{group: group, fault: "kill -9 of the daemon when a request is stored", short: 2, long: 100, do: func(r *room) {
			r.killedAt(func(d *kit.Process, pass func()) { pass(); d.Signal(os.Kill) })
		}},
		{group: group, fault: "kill -9 of the server at any time", short: 3, long: 300, do: func(r *room) {
			r.busy(func() {
				r.soon(80 * time.Millisecond)
				r.s.p.Kill()
			})
			r.tell()
			r.s.start()
		}},
		{group: group, fault: "kill -9 of the server while it starts", long: 50, do: func(r *room) {
			r.s.p.Kill()
			for range 3 {
				r.s.launch()
				r.soon(80 * time.Millisecond)
				r.s.p.Kill()
			}
			r.write(5)
			r.tell()
			r.s.start()
		}},
		{group: group, fault: "kill -9 of both at once", short: 2, long: 100, do: func(r *room) {
			r.busy(func() {
				r.soon(80 * time.Millisecond)
				r.s.p.Signal(os.Kill)
				r.d.Kill()
				<-r.s.p.Done()
			})
			r.heard("killed; its service manager starts it again")
			r.s.start()
		}},
		{group: group, fault: "daemon frozen by SIGSTOP", short: 1, long: 30, do: func(r *room) {
			r.d.Pause()
			r.write(10)
			frozen := r.ccship("status")
			r.out.Hear(r.plain(kit.Headline(frozen.text())))
			r.d.Resume()
		}},
		{group: group, fault: "server frozen by SIGSTOP", long: 30, do: func(r *room) {
			r.s.p.Pause()
			r.meanwhile(2 * time.Second)
			r.s.p.Resume()
		}},
		{group: group, fault: "SIGTERM in the middle of an import", short: 2, long: 50, do: func(r *room) {
			r.stop()
			r.newTalk(150)
			r.launch()
			r.soon(200 * time.Millisecond)
			r.d.Signal(syscall.SIGTERM)
			r.stop()
			r.heard("stopped")
		}},
		{group: group, fault: "a second daemon", short: 1, long: 20, do: secondDaemon},
	})
}

// heard records words that no program says.
func (r *room) heard(words string) { r.out.Hear(words) }

// busy has lines written, an import among them, while something is done.
func (r *room) busy(do func()) {
	r.t.Helper()
	r.newFrom(60)
	done := make(chan struct{})
	go func() { defer close(done); do() }()
	for {
		select {
		case <-done:
			return
		default:
			r.write(1)
		}
	}
}

// newFrom adds a transcript of n lines at once, or to one that is there when there are many.
func (r *room) newFrom(n int) {
	if len(r.talks) < 40 {
		r.newTalk(n)
		return
	}
	r.talks[r.rng.IntN(len(r.talks))].add(r, n)
}

// killedAt kills the daemon from within the server, at one of its next requests.
func (r *room) killedAt(how func(d *kit.Process, pass func())) {
	r.t.Helper()
	d, left := r.d, &atomic.Int64{}
	left.Store(int64(1 + r.rng.IntN(3)))
	r.door.set(func(_ http.ResponseWriter, q *http.Request, pass func()) {
		if q.Method == http.MethodPost && strings.HasSuffix(q.URL.Path, "/api/conversations") && left.Add(-1) == 0 {
			how(d, pass)
			return
		}
		pass()
	})
	for begin := time.Now(); !d.Ended() && time.Since(begin) < verbLimit; {
		r.write(1)
		r.soon(5 * time.Millisecond)
	}
	kit.Require(r.t, d.Ended(), "the server was not asked often enough")
	r.door.set(nil)
	r.heard("killed; its service manager starts it again")
}

// secondDaemon starts another one on the same transcripts, with a state of its own.
func secondDaemon(r *room) {
	r.t.Helper()
	second := r.command(context.Background(), r.program("ccship"), "run", "--state-dir", r.dir+"/other")
	p := kit.Launch(r.t, second)
	r.write(5)
	if !kit.Within(verbLimit, p.Ended) {
		r.hung("the second daemon neither ends nor delivers")
		return
	}
	kit.Equal(r.t, fmt.Sprintf("the second daemon's exit: %s", p.Log), p.Code(), 1)
	r.out.Hear(r.plain("the second: " + kit.LastWords(strings.Split(p.Log.String(), "\nhint")[0])))
}
