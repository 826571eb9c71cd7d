//go:build linux

package server_test

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/lab/bench/corpus"
	"github.com/ccship/ccship/lab/bench/table"
)

func TestMain(m *testing.M) { os.Exit(kit.Main(m, "ccb")) }

// world is what all measurements share, and what is asked for.
type world struct {
	sizes   []float64 // GB of raw bytes
	stores  []string
	before  string // another ccship-server, measured along with
	folder  string // of transcripts to take instead of invented ones
	parts   []string
	daemons []int // that write at once
	seconds int   // for how long they write
	pages   []int // MB of the sessions whose pages are opened
	source  *corpus.Source
	now     string // the program of this checkout
	tables  []*table.Table
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{stores: kit.SettingWords("stores", "SQLite", "PostgreSQL"), before: kit.Setting("before", ""),
		folder: kit.Setting("folder", ""), parts: kit.SettingWords("parts", "reads", "live"),
		daemons: kit.SettingNumbers("daemons", 1000, 100), seconds: 30, pages: []int{5, 100}, now: kit.Program(t, "ccship-server")}
	sizes := "0.1,1"
	if kit.IsQuick() {
		sizes, w.daemons, w.seconds, w.pages = "0.02", []int{20}, 5, []int{2}
	}
	for word := range strings.SplitSeq(kit.Setting("sizes", sizes), ",") {
		size := kit.Try(strconv.ParseFloat(word, 64)).Must(t)
		w.sizes = append(w.sizes, size)
	}
	var err error
	w.source, err = corpus.Standard()
	kit.Must(t, err)
	fmt.Printf("%s, %d processors, %s\n", runtime.GOARCH, runtime.NumCPU(), runtime.Version())
	t.Cleanup(func() {
		for _, found := range w.tables {
			found.Print(os.Stdout)
		}
	})
	return w
}

// sessions are the transcripts of a size, or those of the folder.
func (w *world) sessions(t *testing.T, size float64) (corpus.Plan, []corpus.Session) {
	t.Helper()
	plan := corpus.Plan{Seed: 1, Bytes: int64(size * 1e9)}
	if w.folder == "" {
		return plan, plan.Sessions()
	}
	all := kit.Try(plan.Folder(w.folder)).Must(t)
	return plan, all
}

// TestServer measures what is asked for, one store after the other, and prints a table for each subject.
func TestServer(t *testing.T) {
	kit.OnlyInLab(t)
	w := newWorld(t)
	for _, size := range w.sizes {
		for _, store := range w.stores {
			for _, program := range []string{w.before, w.now} {
				if program != "" {
					w.measure(t, program, store, size)
				}
			}
		}
	}
}

// measure measures a program on one store that has all of a size's sessions.
func (w *world) measure(t *testing.T, program, store string, size float64) {
	f := &figures{w, fmt.Sprintf("%s, %g GB", store, size)}
	if program == w.before {
		f.column += ", before"
	}
	t.Run(f.column, func(t *testing.T) {
		say("%s, %s", f.column, strings.TrimSpace(execute(t, nil, program, "--version")))
		b := newBench(t, w, program, store)
		plan, all := w.sessions(t, size)
		b.imports(f, plan, all)
		if slices.Contains(w.parts, "reads") {
			b.reads(f, plan)
		}
		if slices.Contains(w.parts, "live") {
			for _, n := range w.daemons {
				b.lives(f, n)
			}
		}
		b.stop()
	})
}

// figures are those of one program on one store at one size: a column of each table.
type figures struct {
	w      *world
	column string
}

// Add adds a figure to the table of a group, which is made when there is none.
func (f *figures) Add(group, name string, value float64, unit string) *table.Row {
	i := slices.IndexFunc(f.w.tables, func(t *table.Table) bool { return t.Title == group })
	if i < 0 {
		i = len(f.w.tables)
		f.w.tables = append(f.w.tables, &table.Table{Title: group})
	}
	return f.w.tables[i].Add(f.column, name, unit, value)
}

// say shows progress.
func say(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }
