//go:build linux

package field_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/lab/bench/table"
)

// rewindPart is what a rewind costs, by the size of the file.
func (w *world) rewindPart() part {
	return part{
		title: "Cost of a rewind",
		text: "A file is cut by 10 lines and 5 others are appended; until those are stored. Bytes are those of all requests: " +
			"what is sent again grows with the file, or does not.",
		who: running,
		run: func(t *testing.T, s *table.Table, c *contestant) {
			for _, mb := range w.rewinds {
				if c.name == theHook && mb > 10 {
					continue
				}
				w.rewound(t, s, c, mb)
			}
		},
	}
}

func (w *world) rewound(t *testing.T, s *table.Table, c *contestant, mb int) {
	const each = 4000
	p := w.newPlace(t, c, nil)
	path := p.path("-work", session(1))
	n := mb * 1e6 / each
	p.add(path, p.lines(1e6, 1e6+n, each))
	p.start()
	if !p.deliver(int64(n), w.limit) {
		failOurs(t, c, "the first lines did not come")
		return
	}
	p.calmCount(3 * time.Second)
	cpu, sent := p.cpu(), p.sink.Bytes.Load()
	p.rewrite(path, n-10, p.lines(1, 6, each))
	p.poke()
	came := p.sink.Until(notice, func() bool { return !p.sink.Marked(5).IsZero() })
	p.calmCount(time.Second)
	if !came {
		failOurs(t, c, "the new lines did not come")
		say("    %s, %d MB: the new lines never come", c.name, mb)
		return
	}
	s.Add(c.name, size(mb)+": sent", "kB", float64(p.sink.Bytes.Load()-sent)/1000)
	s.Add(c.name, size(mb)+": CPU", "ms", (p.cpu()-cpu).Seconds()*1000)
	p.kill()
}

// calmCount waits until nothing has come for a while, without comparing.
func (p *place) calmCount(quiet time.Duration) {
	for end := time.Now().Add(90 * time.Second); time.Now().Before(end) && p.sink.Quiet() < quiet; {
		kit.Pass(100 * time.Millisecond)
	}
}

// outagePart is a server that is away while lines are written.
func (w *world) outagePart() part {
	return part{
		title: "After an outage",
		text: fmt.Sprintf("The server answers 503 for %s, a day in short, while %d MB are written to ten files; then until everything is "+
			"stored.", w.away, w.outage),
		who: func(c *contestant) bool { return c.follows },
		run: func(t *testing.T, s *table.Table, c *contestant) {
			p := w.newPlace(t, c, nil)
			if !p.settled(p.path("-work", session(1))) {
				failOurs(t, c, "the first lines did not come")
				return
			}
			p.sink.Keep()
			p.ever = map[string]bool{}
			p.sink.Down(true)
			cpu := p.cpu()
			const each, pieces = 4000, 10
			n := w.outage * 1e6 / each / pieces / 10
			for piece := range pieces {
				for file := range 10 {
					at := 1000 + (piece*10+file)*n
					p.add(p.path("-work", session(10+file)), p.lines(at, at+n, each))
				}
				kit.Pass(w.away / pieces)
			}
			p.sink.Down(false)
			back := time.Now()
			p.sink.Until(w.limit, func() bool {
				lost, _, _ := p.sink.Compare(p.ever)
				return lost == 0 || p.ended() || p.sink.Quiet() > time.Minute
			})
			took := time.Since(back)
			lost, again, wrong := p.sink.Compare(p.ever)
			s.Add(c.name, "time", "s", took.Seconds())
			s.Add(c.name, "CPU", "s", (p.cpu() - cpu).Seconds())
			s.Add(c.name, "lost", "", float64(lost))
			s.Add(c.name, "again", "", float64(again))
			s.Add(c.name, "wrong", "", float64(wrong))
			p.kill()
		},
	}
}

// promptPart is what one prompt costs when its transcript is already long.
func (w *world) promptPart() part {
	return part{
		title: "Cost of a prompt",
		text: "A turn of 10 lines is appended to a transcript. For the hook, how long it runs, which is how long a prompt waits, and what " +
			"it uses; the others are not called, and use CPU beside the prompt.",
		who: running,
		run: func(t *testing.T, s *table.Table, c *contestant) {
			for _, mb := range w.rewinds {
				w.prompts(t, s, c, mb)
			}
		},
	}
}

func (w *world) prompts(t *testing.T, s *table.Table, c *contestant, mb int) {
	const each, turns = 4000, 10
	p := w.newPlace(t, c, nil)
	path := p.path("-work", session(1))
	n := mb * 1e6 / each
	p.add(path, p.lines(1e6, 1e6+n, each))
	if c.follows {
		p.start()
		if !p.deliver(int64(n), w.limit) {
			failOurs(t, c, "the first lines did not come")
			return
		}
	} else {
		kit.Must(t, p.hook(path)) // makes the folders
		place := fmt.Sprintf(`{"files":{},"transcript":{"session_id":%q,"last_sent_line":%d}}`, session(1), n-1)
		kit.Must(t, os.MkdirAll(p.state+"/cwd/"+session(1)+"/.codetracker/cache", 0o755))
		kit.Must(t, os.WriteFile(p.state+"/cwd/"+session(1)+"/.codetracker/cache/last_snapshot.json", []byte(place), 0o600))
	}
	kit.Pass(2 * time.Second)
	cpu := p.cpu()
	var waited time.Duration
	for turn := range turns {
		p.add(path, p.lines(10*turn, 10*turn+10, each))
		if began := time.Now(); !c.follows {
			kit.Must(t, p.hook(path))
			waited += time.Since(began)
		}
		if !p.sink.Until(notice, func() bool { return !p.sink.Marked(10*turn + 9).IsZero() }) {
			failOurs(t, c, "a turn did not come")
			say("    %s: turn %d did not come", c.name, turn)
			return
		}
	}
	s.Add(c.name, size(mb)+": waits", "ms", waited.Seconds()*1000/turns)
	s.Add(c.name, size(mb)+": CPU", "ms", (p.cpu()-cpu).Seconds()*1000/turns)
	p.kill()
}
