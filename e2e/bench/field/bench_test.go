//go:build linux

package field_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/bench/corpus"
	"github.com/ccship/ccship/e2e/bench/floor"
	"github.com/ccship/ccship/e2e/bench/league"
	"github.com/ccship/ccship/e2e/kit"
)

// TestMain: as the floor the test binary is its own second program.
func TestMain(m *testing.M) {
	if url, dir, ok := strings.Cut(os.Getenv(floorEnv), " "); ok {
		if err := floor.Run(url, dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(kit.Main(m, "ccf"))
}

// margin is by how much a ratio may be worse than the worst of the committed ones: what two runs of the same program on
// a busy machine differ by.
const margin = 0.25

// TestBenchField measures what `make bench-field` asks for, and writes figures down as soon as they are there. With
// CCSHIP_FIELD_CHECK it writes nothing and compares with those that are committed.
func TestBenchField(t *testing.T) {
	check := os.Getenv("CCSHIP_FIELD_CHECK") != ""
	if os.Getenv("CCSHIP_BENCH_FIELD") == "" && !check {
		t.Skip("it takes from ten minutes to hours: make bench-field")
	}
	w := &world{settings: newSettings(t), made: map[string]*workload{}}
	var err error
	w.source, err = corpus.Standard()
	kit.Must(t, err)
	file := filepath.Join(w.out, "benchmarks.json")
	table, err := league.Load(file, w.form)
	kit.Must(t, err)
	dated(table)
	if w.parts[0] == "page" {
		w.write(t, table) // of the figures that are there
		return
	}
	if check {
		table = &league.Table{Machine: map[string]string{}}
	}
	table.Machine = machine(w)
	w.find(table)
	w.checks = check
	if check && len(w.parts) == len(scenarios) {
		w.parts = held
	}
	for _, key := range w.parts {
		say("%s", key)
		w.scenario(t, table, key)
		if !check {
			table.Order(scenarios)
			kit.Must(t, table.Save(file, w.form))
			if w.form == "full" {
				w.write(t, table)
			}
		}
	}
	if check {
		w.compare(t, table, file)
	}
}

// compare fails the test where ccship stands further behind others than the committed figures say. A part that does is
// measured again first: what other programs on the machine did to it does not come twice.
func (w *world) compare(t *testing.T, table *league.Table, file string) {
	t.Helper()
	then, err := league.Load(file, w.form)
	kit.Must(t, err)
	for _, key := range w.parts {
		for again := range 2 {
			worse := w.worse(table.Only(key), then)
			if len(worse) == 0 {
				break
			}
			if again == 0 {
				say("%s: measured again, since it seems worse: %s", key, strings.Join(worse, "; "))
				w.scenario(t, table, key)
				continue
			}
			for _, text := range worse {
				t.Errorf("%s: worse than %s says", text, file)
			}
		}
	}
}

// worse is where ccship stands further behind each of three others than then.
func (w *world) worse(now, then *league.Table) (all []string) {
	for _, to := range []string{theFloor, theHook, collector} {
		for _, text := range league.Worse(now, then, ccship, to, margin) {
			if !slices.Contains(all, text) {
				all = append(all, text)
			}
		}
	}
	return all
}

// machine says where figures come from.
func machine(w *world) map[string]string {
	work := "invented conversations, the same at each run"
	if w.folder != "" {
		work = "a folder of transcripts"
	}
	return map[string]string{"processors": fmt.Sprint(runtime.NumCPU()), "system": runtime.GOOS + "/" + runtime.GOARCH,
		"Go": runtime.Version(), "workload": work}
}

// busy is how many threads wanted to run during the last minute, on average.
func busy() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "not known"
	}
	return strings.Fields(string(text))[0]
}

// dated writes what one run noted of all its scenarios at each of them: they are measured one by one since then.
func dated(table *league.Table) {
	load := table.Machine["load when it began"]
	for _, s := range table.Scenarios {
		rounds := 0
		for _, f := range s.Figures {
			rounds = max(rounds, len(f.Values))
		}
		if s.Measured == "" && load != "" {
			s.Measured = fmt.Sprintf("rounds: %d; load when it began: %s", rounds, load)
		}
	}
	delete(table.Machine, "rounds")
	delete(table.Machine, "load when it began")
}

// find finds or builds the contestants that are asked for; those that are missing are named in the table.
func (w *world) find(table *league.Table) {
	if table.Skipped == nil {
		table.Skipped = map[string]string{}
	}
	for _, c := range contestants() {
		if !w.takes(c.name) || c.chain && !slices.Contains(w.parts, "chain") {
			continue
		}
		say("looking for %s", c.name)
		delete(table.Skipped, c.name)
		program, err := c.find()
		if err != nil {
			table.Skipped[c.name] = err.Error()
			continue
		}
		c.program = program
		w.all = append(w.all, c)
	}
}

// scenario measures one part: in each round every contestant after the other.
func (w *world) scenario(t *testing.T, table *league.Table, key string) {
	part := w.part(key)
	begin := table.Begin
	if w.narrow {
		begin = table.Resume
	}
	s := begin(key, part.title, part.text)
	rounds := w.rounds
	if part.once {
		rounds = 1
	}
	s.Base, s.ByRow = part.base, of(s) != ""
	s.Measured = fmt.Sprintf("rounds: %d; load when it began: %s", rounds, busy())
	for what, why := range part.skipped {
		s.Skip(what, why)
	}
	for round := range rounds {
		for _, c := range w.all {
			if part.who != nil && !part.who(c) || c.chain && key != "chain" {
				continue
			}
			if w.checks && part.counts && c.name != ccship {
				continue
			}
			say("  %s, round %d: %s", key, round+1, c.name)
			t.Run(fmt.Sprintf("%s/%d/%s", key, round, c.name), func(t *testing.T) { part.run(t, s, c) })
		}
	}
	w.drop(t)
}

// part is how a scenario is measured.
type part struct {
	title, text string
	who         func(*contestant) bool // nil: all
	once        bool                   // it counts, or has a spread of its own: one round says as much as several
	counts      bool                   // it counts what must not be: nobody else is needed to judge that
	base        string                 // what ratios are to; "": ccship
	skipped     map[string]string      // what is left out, and why
	run         func(t *testing.T, s *league.Scenario, c *contestant)
}

func (w *world) part(key string) part {
	switch key {
	case "import":
		return w.importPart()
	case "files":
		return w.filesPart()
	case "append":
		return w.appendPart()
	case "active":
		return w.activePart()
	case "first":
		return w.firstPart()
	case "idle":
		return w.idlePart()
	case "rewind":
		return w.rewindPart()
	case "probes":
		return w.probesPart()
	case "outage":
		return w.outagePart()
	case "prompt":
		return w.promptPart()
	case "chain":
		return w.chainPart()
	case "verify":
		return w.verifyPart()
	case "sessions":
		return w.activeGrowth()
	case "bytes":
		return w.bytesGrowth()
	}
	return w.growPart()
}
