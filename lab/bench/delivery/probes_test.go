//go:build linux

package delivery_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/lab/bench/table"
)

// probe is something that happens to files, programs or servers. It is begun when the first lines are stored.
type probe struct {
	name string
	do   func(p *place, path string)
}

// lengths of lines in probes: usual ones, shorter ones and longer ones.
const (
	usual   = 400
	shorter = 200
	longer  = 800
)

// probes are what happens to transcripts, and to machines.
var probes = []probe{
	{"rewound by 10 of 150 lines, then 5 shorter", func(p *place, path string) {
		p.rewrite(path, 140, p.lines(1000, 1005, shorter))
	}},
	{"rewound by 50 lines and regrown by 60 longer, unseen", func(p *place, path string) {
		p.rewrite(path, 100, p.lines(1000, 1060, longer))
	}},
	{"emptied, then 20 lines", func(p *place, path string) {
		kit.Must(p.t, os.Truncate(path, 0))
		p.add(path, p.lines(1000, 1020, usual))
	}},
	{"replaced by a file of 50 of its lines and 20 others", func(p *place, path string) {
		text := append(firstLines(p, path, 50), p.lines(1000, 1020, usual)...)
		kit.Must(p.t, errors.Join(os.WriteFile(path+".new", text, 0o600), os.Rename(path+".new", path)))
	}},
	{"moved to another folder, then 5 lines", func(p *place, path string) {
		to := p.path("-moved", strings.TrimSuffix(path[len(path)-len("00000000-0000-4000-8000-000000000001.jsonl"):], ".jsonl"))
		kit.Must(p.t, os.Rename(path, to))
		p.add(to, p.lines(1000, 1005, usual))
	}},
	{"half a line, a pause, its end", func(p *place, path string) {
		text := p.lines(1000, 1001, usual)
		p.add(path, text[:100])
		kit.Pass(3 * time.Second)
		p.add(path, text[100:])
	}},
	{"killed three times while 20 000 lines are read", func(p *place, path string) {
		p.add(p.path("-work", session(2)), p.lines(1000, 21_000, usual))
		for range 3 {
			kit.Pass(300 * time.Millisecond)
			if p.c.follows {
				p.kill()
				p.start()
			}
		}
	}},
	{"server away for 4 s, 500 lines meanwhile, killed", func(p *place, path string) {
		p.sink.Down(true)
		p.add(path, p.lines(1000, 1500, usual))
		p.poke()
		kit.Pass(4 * time.Second)
		if p.c.follows {
			p.kill()
			p.start()
		}
		p.sink.Down(false)
	}},
}

// probed compares what came with what was ever in the files, of all probes at once: it is counted, not timed.
func (w *world) probed(t *testing.T, s *table.Table, c *contestant) {
	type count struct{ lost, again, wrong int }
	found := make([]*count, len(probes))
	t.Run("all", func(t *testing.T) {
		for i, one := range probes {
			t.Run(one.name, func(t *testing.T) {
				t.Parallel()
				if lost, again, wrong, ok := one.count(t, c); ok {
					found[i] = &count{lost, again, wrong}
				}
			})
		}
	})
	for i, one := range probes {
		if n := found[i]; n != nil {
			s.Add(c.name, one.name+": lost", "", float64(n.lost))
			s.Add(c.name, one.name+": again", "", float64(n.again))
			s.Add(c.name, one.name+": wrong", "", float64(n.wrong))
		}
	}
}

func (x probe) count(t *testing.T, c *contestant) (lost, again, wrong int, ok bool) {
	t.Helper()
	p := newPlace(t, c, "")
	p.sink.Keep()
	path := p.path("-work", session(1))
	p.add(path, p.lines(0, 150, usual))
	p.start()
	if !p.deliver(100, time.Minute) {
		failOurs(t, c, "the first lines did not come")
		return 0, 0, 0, false
	}
	p.calm(3 * time.Second)
	x.do(p, path)
	p.calm(4 * time.Second)
	lost, again, wrong = p.sink.Compare(p.ever)
	kit.Check(t, c.name != ccship || lost+wrong <= 0, "%d lines are lost, %d are wrong", lost, wrong)
	p.kill()
	return lost, again, wrong, true
}

// TestProbeSees: a contestant that sends everything anew at each call sends lines again, and one that is never called
// loses them.
func TestProbeSees(t *testing.T) {
	self := kit.Try(os.Executable()).Must(t)
	calls := 0
	forgetful := &contestant{name: "test", program: self, deliver: func(p *place) error {
		if calls++; calls > 1 {
			return nil
		}
		return floorOnce(p)
	}}
	if lost, again, wrong, ok := probes[0].count(t, forgetful); !ok || lost != 5 || again != 0 || wrong != 0 {
		t.Errorf("never called again: %d lost, %d again, %d wrong, %t", lost, again, wrong, ok)
	}
	forgetful.deliver = floorOnce
	if lost, again, wrong, ok := probes[0].count(t, forgetful); !ok || lost != 0 || again < 140 || wrong != 0 {
		t.Errorf("all anew: %d lost, %d again, %d wrong, %t", lost, again, wrong, ok)
	}
}

// calm waits until nothing has come for a while, or everything has.
func (p *place) calm(quiet time.Duration) {
	p.t.Helper()
	p.poke()
	for end := time.Now().Add(90 * time.Second); time.Now().Before(end); kit.Pass(100 * time.Millisecond) {
		if p.sink.Quiet() > quiet {
			lost, _, _ := p.sink.Compare(p.ever)
			if lost == 0 || p.sink.Quiet() > 3*quiet {
				return
			}
		}
	}
}

// rewrite cuts a file after so many lines and appends others, as one change: nobody can look in between.
func (p *place) rewrite(path string, keep int, more []byte) {
	p.t.Helper()
	text := append(firstLines(p, path, keep), more...)
	if proc := p.proc; proc != nil {
		proc.Pause()
		defer proc.Resume()
		kit.Eventually(p.t, "the contestant stands still", 12*time.Minute, func() bool { return still(proc.Cmd.Process.Pid) })
	}
	kit.Must(p.t, os.WriteFile(path, text, 0o600))
}

// still reports whether every thread of a process is stopped.
func still(pid int) bool {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	for _, file := range files {
		if text, err := os.ReadFile(file); err == nil && !bytes.Contains(text, []byte("State:\tT")) {
			return false
		}
	}
	return err == nil && len(files) > 0
}

func firstLines(p *place, path string, n int) []byte {
	p.t.Helper()
	text := kit.Try(os.ReadFile(path)).Must(p.t)
	lines := bytes.SplitAfter(text, []byte("\n"))
	return bytes.Join(lines[:min(n, len(lines))], nil)
}
