//go:build linux

package field_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/lab/bench/table"
)

// running are those that notice by themselves, or are notified at a prompt.
func running(c *contestant) bool { return c.follows || c.name == theHook }

// notice is how long a line may take before it counts as never seen.
const notice = 20 * time.Second

// appendPart is one line after the other in one file.
func (w *world) appendPart() part {
	return part{
		title: "Line appended → stored, one active file",
		text: fmt.Sprintf("From the write of one line of 1.5 kB until the server has acknowledged it: %d lines, one after the other. "+
			"The hook is called right after each line, as if every line were a prompt.", w.appends),
		who: running,
		run: func(t *testing.T, s *table.Table, c *contestant) {
			p := w.newPlace(t, c, nil)
			path := p.path("-work", session(1))
			if !p.settled(path) {
				failOurs(t, c, "the first lines did not come")
				return
			}
			before := p.cpu()
			var took []float64
			for n := range w.appends {
				at := time.Now()
				p.add(path, p.lines(1000+n, 1001+n, 1500))
				ms, ok := p.stored(1000+n, at, path)
				if !ok {
					failOurs(t, c, "a line did not come")
					return
				}
				took = append(took, ms)
				kit.Pass(time.Duration(20+rand.IntN(30)) * time.Millisecond) // as if typed: not in step with anything
			}
			latencies(s, c, took)
			s.Add(c.name, "CPU a line", "ms", (p.cpu()-before).Seconds()*1000/float64(len(took)))
		},
	}
}

// settled starts the contestant with a file of some lines and waits until they are stored and it has nothing to do.
func (p *place) settled(paths ...string) bool {
	p.t.Helper()
	for i, path := range paths {
		p.add(path, p.lines(20*i, 20*i+20, 1500))
	}
	p.start()
	if !p.deliver(int64(20*len(paths)), time.Minute) {
		return false
	}
	kit.Pass(2 * time.Second)
	return true
}

// stored waits for a line's mark, calling what must be called, and returns how many ms it took since at.
func (p *place) stored(n int, at time.Time, path string) (float64, bool) {
	p.t.Helper()
	if !p.c.follows {
		if err := p.hook(path); err != nil {
			say("    %v", err)
			return 0, false
		}
	}
	ok := p.sink.Until(notice, func() bool { return !p.sink.Marked(n).IsZero() })
	return p.sink.Marked(n).Sub(at).Seconds() * 1000, ok
}

func latencies(s *table.Table, c *contestant, ms []float64) {
	slices.Sort(ms)
	s.Add(c.name, "p50", "ms", ms[len(ms)/2])
	s.Add(c.name, "p99", "ms", ms[(len(ms)*99-1)/100])
	s.Add(c.name, "max", "ms", ms[len(ms)-1])
}

// activePart is lines that come to many files, without waiting for the one before.
func (w *world) activePart() part {
	const files = 50
	return part{
		title: fmt.Sprintf("Line appended → stored, %d active files", files),
		text: fmt.Sprintf("%d lines, 50 a second, each to one of %d files, whether or not those before are stored.",
			5*w.appends, files),
		who: func(c *contestant) bool { return c.follows },
		run: func(t *testing.T, s *table.Table, c *contestant) {
			p := w.newPlace(t, c, nil)
			var paths []string
			for i := range files {
				paths = append(paths, p.path(fmt.Sprintf("-work-%d", i%7), session(i)))
			}
			if !p.settled(paths...) {
				failOurs(t, c, "the first lines did not come")
				return
			}
			took, cpu, ok := p.spread(paths, 5*w.appends)
			if !ok {
				failOurs(t, c, "a line did not come")
				return
			}
			latencies(s, c, took)
			s.Add(c.name, "CPU a line", "ms", cpu.Seconds()*1000/float64(len(took)))
		},
	}
}

// firstPart is the first line of sessions that begin: a file that is new, every second one in a folder that is new.
func (w *world) firstPart() part {
	return part{
		title: "First line of a new session → stored",
		text:  "A new file, every second one in a new folder; from the write of its first line.",
		who:   running,
		run: func(t *testing.T, s *table.Table, c *contestant) {
			p := w.newPlace(t, c, nil)
			if !p.settled(p.path("-work", session(1))) {
				failOurs(t, c, "the first lines did not come")
				return
			}
			var took []float64
			for n := range max(w.appends/4, 5) {
				folder := "-work"
				if n%2 == 1 {
					folder = fmt.Sprintf("-work-%d", n)
				}
				path := filepath.Join(p.projects, folder, session(100+n)+".jsonl")
				at := time.Now()
				kit.Must(t, os.MkdirAll(filepath.Dir(path), 0o755))
				p.add(path, p.lines(1000+n, 1001+n, 1500))
				ms, ok := p.stored(1000+n, at, path)
				if !ok {
					say("    %s: session %d was not seen", c.name, n)
					failOurs(t, c, "a session was not seen")
					return
				}
				took = append(took, ms)
				kit.Pass(time.Duration(100+rand.IntN(100)) * time.Millisecond)
			}
			latencies(s, c, took)
		},
	}
}
