//go:build linux

package field_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/lab/bench/table"
)

// afterwards is how long a contestant may work on, behind what it has sent, before what it used is read.
const afterwards = 2 * time.Second

// importPart is the first import of conversations: from the start of the program until the server has every line.
func (w *world) importPart() part {
	return part{
		title: "First import",
		text: "From the program's start until the server has every line. CPU is the program's alone: no server, no index. " +
			"The hook, which sends 100 lines a call, is called again and again.",
		run: func(t *testing.T, s *table.Table, c *contestant) {
			for _, mb := range w.imports {
				if mb > w.hookMB && c.name == theHook {
					s.Note(theHook + " is not measured above " + size(w.hookMB) + ": each call reads the whole file again and sends 100 lines of it")
					continue
				}
				w.imported(t, s, c, w.history(t, mb), size(mb))
			}
		},
	}
}

// filesPart is the same of many short files.
func (w *world) filesPart() part {
	return part{
		title: "First import of many files",
		text:  fmt.Sprintf("The same of %d sessions of two short turns.", w.many),
		who:   func(c *contestant) bool { return c.name != theHook },
		run: func(t *testing.T, s *table.Table, c *contestant) {
			w.imported(t, s, c, w.sessions(t, w.many), fmt.Sprintf("%d files", w.many))
		},
	}
}

func (w *world) imported(t *testing.T, s *table.Table, c *contestant, l *workload, what string) {
	p := w.newPlace(t, c, l)
	began := time.Now()
	p.start()
	if !p.deliver(l.lines, w.limit) {
		say("    %s: %d of %d lines in %s", c.name, p.sink.Lines.Load(), l.lines, time.Since(began).Round(time.Second))
		s.Note(fmt.Sprintf("%s, %s: %d of %d lines came within %s", c.name, what, p.sink.Lines.Load(), l.lines, w.limit))
		failOurs(t, c, "not every line came")
		return
	}
	took := time.Since(began)
	kit.Pass(afterwards)
	cpu := p.cpu().Seconds()
	s.Add(c.name, what+": CPU", "s", cpu)
	s.Add(c.name, what+": MB per CPU-second", "MB/s", float64(l.bytes)/1e6/cpu)
	s.Add(c.name, what+": time", "s", took.Seconds())
	if c.follows { // of others the system counts what they were before they began, too
		s.Add(c.name, what+": peak memory", "MiB", float64(p.highest())/(1<<20))
	}
	p.kill()
}

// failOurs fails the test when it is ccship that cannot do something; others are only not measured.
func failOurs(t *testing.T, c *contestant, why string) {
	t.Helper()
	if c.name == ccship {
		t.Error(why)
	}
}

func size(mb int) string {
	if mb >= 1000 {
		return fmt.Sprintf("%g GB", float64(mb)/1000)
	}
	return fmt.Sprintf("%d MB", mb)
}
