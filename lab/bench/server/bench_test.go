//go:build linux

package server_test

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/e2e/kit/setting"
	"github.com/ccship/ccship/lab/bench/corpus"
	"github.com/ccship/ccship/lab/bench/table"
)

// TestServer measures what is asked for, one store after the other, and prints a table for each subject.
func TestServer(t *testing.T) {
	setting.Asked(t)
	now, err := kit.BuildAs("ccship-server", setting.Text("version", ""))
	kit.Must(t, err)
	w := &world{settings: newSettings(t), now: now}
	w.source, err = corpus.Standard()
	kit.Must(t, err)
	average, err := os.ReadFile("/proc/loadavg")
	kit.Must(t, err)
	fmt.Printf("%s/%s, %d processors, %s, load %s", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version(), average)
	t.Cleanup(w.print)
	for _, size := range w.sizes {
		for _, store := range w.stores {
			for _, program := range []string{w.before, w.now} {
				if program != "" {
					w.one(t, program, store, size)
				}
			}
		}
	}
}

// figures are those of one program on one store at one size: a column of each table.
type figures struct {
	w       *world
	column  string
	store   string
	size    float64
	program string
	last    *table.Row
}

// Add adds a figure to the table of a group.
func (f *figures) Add(group, name string, value float64, unit string) {
	f.last = f.w.table(group).Add(f.column, name, unit, value)
}

// Aim says what the figure added last should be.
func (f *figures) Aim(target string) { f.last.Target = target }

// note says what is no figure.
func (f *figures) note(format string, args ...any) { say("    "+format, args...) }

// table is that of a group; it is made when there is none.
func (w *world) table(group string) *table.Table {
	for _, t := range w.tables {
		if t.Title == group {
			return t
		}
	}
	w.tables = append(w.tables, &table.Table{Title: group})
	return w.tables[len(w.tables)-1]
}

func (w *world) print() {
	for _, t := range w.tables {
		t.Print(os.Stdout)
	}
}

// one measures a program on one store at one size.
func (w *world) one(t *testing.T, program, store string, size float64) {
	f := &figures{w: w, column: fmt.Sprintf("%s, %g GB", store, size), store: store, size: size, program: program}
	if program == w.before {
		f.column += ", before"
	}
	t.Run(f.column, func(t *testing.T) {
		say("%s, %s", f.column, strings.TrimSpace(execute(t, program, "version")))
		w.filled(t, f)
	})
}

// filled measures on a store that has all of a size's sessions.
func (w *world) filled(t *testing.T, f *figures) {
	b := newBench(t, w, f.program, f.store)
	plan, all := w.sessions(t, f.size)
	b.imports(f, plan, all)
	if w.has("reads") {
		b.reads(f, plan)
	}
	if w.has("live") {
		for _, n := range w.daemons {
			b.lives(f, n)
		}
	}
	if w.has("keep") {
		b.keeps(f)
	}
	b.stop()
}
