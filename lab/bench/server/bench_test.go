//go:build linux

package server_test

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/lab/bench/corpus"
	"github.com/ccship/ccship/lab/bench/load"
	"github.com/ccship/ccship/lab/bench/table"
	"github.com/ccship/ccship/lab/setting"
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
	if w.has("shape") {
		w.shape(t)
	}
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
		if w.has("import") || w.has("reads") || w.has("live") || w.has("keep") {
			w.filled(t, f)
		}
		if w.has("many") && size == w.sizes[0] {
			newBench(t, w, program, store).lists(f)
		}
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
	if w.has("plans") {
		b.plans()
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

// shape compares the invented conversations with real ones, where a folder of them is given.
func (w *world) shape(t *testing.T) {
	t.Helper()
	const most = 50_000_000
	plan := corpus.Plan{Seed: 1, Bytes: most}
	add := func(column string, s corpus.Shape) {
		f := &figures{w: w, column: column}
		const group = "Conversations"
		f.Add(group, "half of the lines are shorter than", float64(s.P50), "bytes")
		f.Add(group, "nine of ten lines are shorter than", float64(s.P90), "bytes")
		f.Add(group, "99 of 100 lines are shorter than", float64(s.P99), "bytes")
		f.Add(group, "lines above 64 KiB", 100*s.Long, "%")
		f.Add(group, "bytes of tools' results", 100*s.Share["user/tool_result"], "%")
		f.Add(group, "bytes of thinking and its signatures", 100*s.Share["assistant/thinking"], "%")
		f.Add(group, "text to search", 100*s.Text, "%")
		f.Add(group, "128 KiB compressed by zstd's fastest level", s.PackedToRawPct, "%")
		f.Add(group, "different three-character pieces in 4 KiB of text", s.DocGrams, "")
		f.Add(group, "… in 2 MiB", float64(s.GramsAtMB[2]), "")
		f.Add(group, "… of them in one piece of 4 KiB only", 100*s.Once, "%")
	}
	add("invented", corpus.Measure(plan.Sessions(), w.source, most, load.Pack))
	if w.folder != "" {
		real, err := corpus.Plan{Seed: 1}.Folder(w.folder)
		kit.Must(t, err)
		add("real", corpus.Measure(real, w.source, most, load.Pack))
	}
}
