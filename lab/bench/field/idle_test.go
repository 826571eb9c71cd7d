//go:build linux

package field_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/lab/bench/gauge"
	"github.com/ccship/ccship/lab/bench/table"
)

// idlePart is what it costs to watch files to which nothing happens.
func (w *world) idlePart() part {
	return part{
		title: "Idle",
		text: fmt.Sprintf("%s in which nothing happens, %s after every line is stored. The files were written during the last three months.",
			w.idle, w.quiet),
		who: func(c *contestant) bool { return c.follows },
		run: func(t *testing.T, s *table.Table, c *contestant) {
			for _, n := range w.files {
				if i, ok := w.idles(t, c, n, w.idle); ok {
					what := fmt.Sprintf("%d files: ", n)
					s.Add(c.name, what+"CPU", "% of a core", i.cpu)
					if i.wakes >= 0 { // threads that ended meanwhile took their counts with them
						s.Add(c.name, what+"wake-ups", "/s", i.wakes)
					}
					s.Add(c.name, what+"written", "kB/s", i.written/1000)
					s.Add(c.name, what+"RSS", "MiB", i.rss)
					s.Add(c.name, what+"PSS", "MiB", i.pss)
				}
			}
		},
	}
}

// idling is what a contestant uses while nothing happens.
type idling struct{ cpu, wakes, written, rss, pss, peak float64 }

// idles imports n files and then measures for a while.
func (w *world) idles(t *testing.T, c *contestant, n int, d time.Duration) (i idling, ok bool) {
	t.Helper()
	l := w.sessions(t, n)
	p := w.newPlace(t, c, l)
	p.start()
	if !p.deliver(l.lines, w.limit) {
		say("    %s: %d of %d lines", c.name, p.sink.Lines.Load(), l.lines)
		failOurs(t, c, "not every line came")
		return i, false
	}
	kit.Pass(w.quiet)
	pid := p.proc.Cmd.Process.Pid
	before, err := gauge.Tree(pid)
	kit.Must(t, err)
	woken, err := gauge.Look(pid)
	kit.Must(t, err)
	began := time.Now()
	kit.Pass(d)
	seconds := time.Since(began).Seconds()
	after, err := gauge.Tree(pid)
	kit.Must(t, err)
	now, err := gauge.Look(pid)
	kit.Must(t, err)
	p.kill()
	return idling{
		cpu: (after.CPU - before.CPU).Seconds() / seconds * 100, wakes: float64(now.Wakes-woken.Wakes) / seconds,
		written: float64(after.Written-before.Written) / seconds, rss: float64(after.RSS) / (1 << 20),
		pss: float64(now.PSS) / (1 << 20), peak: float64(p.peak) / (1 << 20),
	}, true
}
