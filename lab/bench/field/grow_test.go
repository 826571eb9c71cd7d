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

// ours is ccship alone.
func ours(c *contestant) bool { return c.name == ccship }

// growPart is how ccship's memory and idle time grow with files.
func (w *world) growPart() part {
	return part{
		title: "Growth with files",
		text:  "ccship alone: idle for a while with more and more files, and the most memory that their import took.",
		once:  true,
		who:   ours,
		run: func(t *testing.T, s *table.Table, c *contestant) {
			for _, n := range w.grow {
				if i, ok := w.idles(t, c, n, w.idle); ok {
					row := fmt.Sprintf("%d files", n)
					s.Add(row, "idle CPU", "% of a core", i.cpu)
					s.Add(row, "wake-ups", "/s", i.wakes)
					s.Add(row, "RSS", "MiB", i.rss)
					s.Add(row, "peak of the import", "MiB", i.peak)
				}
				w.drop(t)
			}
		},
	}
}

// activeGrowth is how the cost of a line grows with the sessions that are written to at the same time.
func (w *world) activeGrowth() part {
	return part{
		title: "Growth with sessions",
		text: fmt.Sprintf("ccship alone: %d lines, 50 a second, spread over more and more sessions that are all in use. Memory is read "+
			"right after the last line.", 5*w.appends),
		once: true,
		who:  ours,
		run: func(t *testing.T, s *table.Table, c *contestant) {
			for _, n := range w.active {
				w.inUse(t, s, c, n)
			}
		},
	}
}

func (w *world) inUse(t *testing.T, s *table.Table, c *contestant, sessions int) {
	p := w.newPlace(t, c, nil)
	var paths []string
	for i := range sessions {
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
	use, err := gauge.Tree(p.proc.Cmd.Process.Pid)
	kit.Must(t, err)
	row := fmt.Sprintf("%d sessions", sessions)
	s.Add(row, "CPU a line", "ms", cpu.Seconds()*1000/float64(len(took)))
	s.Add(row, "p50", "ms", table.Median(took))
	s.Add(row, "RSS", "MiB", float64(use.RSS)/(1<<20))
	p.kill()
}

// spread appends lines to files, 50 a second, and returns how long each took until it was stored, in ms.
func (p *place) spread(paths []string, lines int) (took []float64, cpu time.Duration, ok bool) {
	p.t.Helper()
	const first = 100_000 // marks above those of settled
	before := p.cpu()
	written := make([]time.Time, lines)
	for n := range lines {
		written[n] = time.Now()
		p.add(paths[n*7919%len(paths)], p.lines(first+n, first+n+1, 1500))
		kit.Pass(20 * time.Millisecond)
	}
	for n, at := range written {
		if !p.sink.Until(notice, func() bool { return !p.sink.Marked(first + n).IsZero() }) {
			say("    %s: line %d did not come", p.c.name, n)
			return nil, 0, false
		}
		took = append(took, p.sink.Marked(first+n).Sub(at).Seconds()*1000)
	}
	return took, p.cpu() - before, true
}
