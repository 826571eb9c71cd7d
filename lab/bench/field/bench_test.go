//go:build linux

package field_test

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/floor"
	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/e2e/kit/setting"
	"github.com/ccship/ccship/lab/bench/corpus"
	"github.com/ccship/ccship/lab/bench/table"
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

// TestField measures what is asked for, and prints a table for each part.
func TestField(t *testing.T) {
	setting.Asked(t)
	w := &world{settings: newSettings(), made: map[string]*workload{}}
	var err error
	w.source, err = corpus.Standard()
	kit.Must(t, err)
	fmt.Printf("%s/%s, %d processors, %s, load %s\n", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version(), busy())
	w.find()
	for _, key := range w.parts {
		w.measure(t, key).Print(os.Stdout)
	}
}

// busy is how many threads wanted to run during the last minute, on average.
func busy() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "not known"
	}
	return strings.Fields(string(text))[0]
}

// find finds or builds the contestants that are asked for, and says which are missing.
func (w *world) find() {
	for _, c := range contestants() {
		if len(w.only) > 0 && !slices.Contains(w.only, c.short) {
			continue
		}
		program, err := c.find()
		if err != nil {
			say("not measured: %s (%v)", c.name, err)
			continue
		}
		c.program = program
		w.all = append(w.all, c)
	}
}

// measure measures one part: in each round every contestant after the other.
func (w *world) measure(t *testing.T, key string) *table.Table {
	part := w.part(key)
	s := &table.Table{Title: part.title, Text: part.text}
	rounds := w.rounds
	if part.once {
		rounds = 1
	}
	for round := range rounds {
		for _, c := range w.all {
			if part.who != nil && !part.who(c) {
				continue
			}
			say("  %s, round %d: %s", key, round+1, c.name)
			t.Run(fmt.Sprintf("%s/%d/%s", key, round, c.short), func(t *testing.T) { part.run(t, s, c) })
		}
	}
	w.drop(t)
	return s
}

// part is how something is measured.
type part struct {
	title, text string
	who         func(*contestant) bool // nil: all
	once        bool                   // it counts, or has a spread of its own: one round says as much as several
	run         func(t *testing.T, s *table.Table, c *contestant)
}

func (w *world) part(key string) part {
	return map[string]func() part{
		"import": w.importPart, "files": w.filesPart, "append": w.appendPart, "active": w.activePart, "first": w.firstPart,
		"idle": w.idlePart, "rewind": w.rewindPart, "probes": w.probesPart, "outage": w.outagePart, "prompt": w.promptPart,
		"chain": w.chainPart, "verify": w.verifyPart, "grow": w.growPart, "sessions": w.activeGrowth,
	}[key]()
}
