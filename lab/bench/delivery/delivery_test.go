//go:build linux

package delivery_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/lab/bench/corpus"
	"github.com/ccship/ccship/lab/bench/table"
)

// TestMain: as the floor the test binary is its own second program.
func TestMain(m *testing.M) {
	if url, dir, ok := strings.Cut(os.Getenv(floorEnv), " "); ok {
		if err := kit.PostFloor(url, dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(kit.Main(m, "ccd"))
}

// world is what all measurements share. What is not given is as the form says: quick, or in full.
type world struct {
	rounds  int
	imports []int // MB
	appends int
	limit   time.Duration
	all     []*contestant
	made    map[int]*workload // by MB
}

// workload is a folder of transcripts, made once for all contestants.
type workload struct {
	dir          string // a projects folder
	lines, bytes int64
}

// TestDelivery measures what is asked for, each part of every contestant in turn, and prints a table for each part.
func TestDelivery(t *testing.T) {
	kit.OnlyInLab(t)
	w := &world{rounds: 3, imports: []int{100, 1000}, appends: 100, limit: 10 * time.Minute, made: map[int]*workload{}}
	if kit.IsQuick() {
		w.rounds, w.imports, w.appends = 2, []int{20}, 20
	}
	w.rounds, w.imports = kit.SettingNumber("rounds", w.rounds), kit.SettingNumbers("imports", w.imports...)
	w.find()
	fmt.Printf("%s, %d processors, %s\n", runtime.GOARCH, runtime.NumCPU(), runtime.Version())
	for _, name := range kit.SettingWords("parts", "import", "append", "probes") {
		p := parts[name]
		s := &table.Table{Title: p.title, Text: p.text}
		for round := range w.rounds {
			for _, c := range w.all {
				if (c.follows || !p.follows) && (round == 0 || !p.once) {
					say("  %s, round %d: %s", name, round+1, c.name)
					t.Run(fmt.Sprintf("%s/%d/%s", name, round, c.short), func(t *testing.T) { p.run(w, t, s, c) })
				}
			}
		}
		s.Print(os.Stdout)
	}
}

// find finds or builds the contestants that are asked for, and says which are missing.
func (w *world) find() {
	only := kit.SettingWords("only")
	for _, c := range contestants() {
		if len(only) > 0 && !slices.Contains(only, c.short) {
			continue
		}
		var err error
		if c.program, err = c.find(); err != nil {
			say("not measured: %s (%v)", c.name, err)
			continue
		}
		w.all = append(w.all, c)
	}
}

// part is how something is measured.
type part struct {
	title, text string
	follows     bool // only those are measured that notice by themselves
	once        bool // it counts: one round says as much as several
	run         func(w *world, t *testing.T, s *table.Table, c *contestant)
}

var parts = map[string]part{
	"import": {title: "First import", run: (*world).imported,
		text: "From the program's start until the server has every line. CPU is the program's alone: no server, no index."},
	"append": {title: "Line appended → stored", follows: true, run: (*world).appended,
		text: "From the write of one line of 1.5 kB until the server has acknowledged it, one line after the other in one file."},
	"probes": {title: "Correctness", follows: true, once: true, run: (*world).probed,
		text: "Lines that were whole in a file and never came, those that came more than once, and those that came and were never " +
			"in a file. A server that knows lines by their number drops those that come again; what is lost stays lost."},
}

// history is a workload of so many MB of conversations.
func (w *world) history(t *testing.T, mb int) *workload {
	t.Helper()
	if w.made[mb] == nil {
		source, err := corpus.Standard()
		kit.Must(t, err)
		l := &workload{dir: filepath.Join(kit.Workshop(), fmt.Sprintf("history-%d", mb))}
		l.lines, l.bytes, err = corpus.Write(l.dir, corpus.Plan{Seed: 1, Bytes: int64(mb) * 1e6}.Sessions(), source)
		kit.Must(t, err)
		w.made[mb] = l
	}
	return w.made[mb]
}

func (w *world) imported(t *testing.T, s *table.Table, c *contestant) {
	for _, mb := range w.imports {
		l := w.history(t, mb)
		p := newPlace(t, c, l.dir)
		began := time.Now()
		p.start()
		if !p.deliver(l.lines, w.limit) {
			s.Note(fmt.Sprintf("%s: %d of %d lines of %d MB came within %s", c.name, p.sink.Lines.Load(), l.lines, mb, w.limit))
			failOurs(t, c, "not every line came")
			return
		}
		took := time.Since(began)
		kit.Pass(2 * time.Second) // it may work on, behind what it has sent
		s.Add(c.name, fmt.Sprintf("%d MB: CPU", mb), "s", p.cpu().Seconds())
		s.Add(c.name, fmt.Sprintf("%d MB: MB per CPU-second", mb), "MB/s", float64(l.bytes)/1e6/p.cpu().Seconds())
		s.Add(c.name, fmt.Sprintf("%d MB: time", mb), "s", took.Seconds())
		p.kill()
	}
}

func (w *world) appended(t *testing.T, s *table.Table, c *contestant) {
	p := newPlace(t, c, "")
	path := p.path("-work", session(1))
	p.add(path, p.lines(0, 20, 1500))
	p.start()
	if !p.deliver(20, time.Minute) {
		failOurs(t, c, "the first lines did not come")
		return
	}
	kit.Pass(2 * time.Second)
	before := p.cpu()
	var took []float64
	for n := 1000; n < 1000+w.appends; n++ {
		at := time.Now()
		p.add(path, p.lines(n, n+1, 1500))
		if !p.sink.Until(w.limit, func() bool { return !p.sink.Marked(n).IsZero() }) {
			failOurs(t, c, "a line did not come")
			return
		}
		took = append(took, p.sink.Marked(n).Sub(at).Seconds()*1000)
		kit.Pass(time.Duration(20+rand.IntN(30)) * time.Millisecond) // as if typed: not in step with anything
	}
	slices.Sort(took)
	s.Add(c.name, "p50", "ms", took[len(took)/2])
	s.Add(c.name, "p99", "ms", took[(len(took)*99-1)/100])
	s.Add(c.name, "CPU a line", "ms", (p.cpu()-before).Seconds()*1000/float64(len(took)))
	p.kill()
}

// failOurs fails the test when it is ccship that cannot do something; others are only not measured.
func failOurs(t *testing.T, c *contestant, why string) {
	t.Helper()
	kit.Check(t, c.name != ccship, "%v", why)
}

// say shows progress.
func say(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }
