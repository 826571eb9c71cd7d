//go:build linux

package server_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/bench/corpus"
	"github.com/ccship/ccship/e2e/bench/load"
	"github.com/ccship/ccship/e2e/bench/report"
	"github.com/ccship/ccship/e2e/kit"
)

// mark is the name of the marks in docs/scale.md between which the tables stand.
const mark = "bench-server"

// TestBenchServer measures what `make bench-server` asks for, one store after the other, and writes figures down as soon
// as they are there.
func TestBenchServer(t *testing.T) {
	if os.Getenv("CCSHIP_BENCH_SERVER") == "" {
		t.Skip("it takes from minutes to hours: make bench-server")
	}
	now, err := kit.BuildAs("ccship-server", setting("VERSION", ""))
	kit.Must(t, err)
	w := &world{settings: newSettings(t), now: now}
	w.source, err = corpus.Standard()
	kit.Must(t, err)
	r, err := report.Load(filepath.Join(w.out, "scale.json"))
	kit.Must(t, err)
	r.Machine = map[string]string{"Go": runtime.Version(), "processors": fmt.Sprint(runtime.NumCPU()),
		"system": runtime.GOOS + "/" + runtime.GOARCH, "load when it began": loadAverage()}
	if w.has("shape") {
		w.shape(t, r)
	}
	for _, size := range w.sizes {
		for _, store := range w.stores {
			for _, program := range []string{w.before, w.now} {
				if program != "" {
					w.one(t, r, program, &report.Run{Store: store, Size: size, Before: program == w.before})
				}
			}
		}
	}
}

// loadAverage tells a quiet machine from a busy one.
func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "not known"
	}
	return strings.Fields(string(text))[0]
}

// one measures a program on one store at one size.
func (w *world) one(t *testing.T, r *report.Report, program string, to *report.Run) {
	t.Run(fmt.Sprintf("%s/%g/before=%t", to.Store, to.Size, to.Before), func(t *testing.T) {
		to.Program = version(t, program)
		done := func(part string) {
			r.Put(to)
			w.save(t, r)
			say("  %s is measured", part)
		}
		say("%s, %g GB, %s", to.Store, to.Size, to.Program)
		if w.has("import") || w.has("reads") || w.has("live") || w.has("keep") {
			w.filled(t, program, to, done)
		}
		if w.has("many") && to.Size == w.sizes[0] {
			newBench(t, w, program, to.Store).lists(to)
			done("many")
		}
	})
}

// filled measures on a store that has all of a size's sessions.
func (w *world) filled(t *testing.T, program string, to *report.Run, done func(part string)) {
	b := newBench(t, w, program, to.Store)
	plan, all := w.sessions(t, to.Size)
	b.imports(to, plan, all)
	done("import")
	if w.has("reads") {
		b.reads(to, plan)
		done("reads")
	}
	if w.has("plans") {
		b.plans(to, plan)
		done("plans")
	}
	if w.has("live") {
		for _, n := range w.daemons {
			b.lives(to, n)
		}
		done("live")
	}
	if w.has("keep") {
		b.keeps(to)
		done("keep")
	}
	b.stop()
}

// save writes the figures down, and the tables into the page.
func (w *world) save(t *testing.T, r *report.Report) {
	t.Helper()
	kit.Must(t, r.Save(filepath.Join(w.out, "scale.json")))
	kit.Must(t, report.Include(filepath.Join(w.out, "scale.md"), "The server at scale", mark, r.Markdown(readsCPU)))
}

// shape compares the invented conversations with real ones, where a folder of them is given.
func (w *world) shape(t *testing.T, r *report.Report) {
	t.Helper()
	const most = 50_000_000
	plan := corpus.Plan{Seed: 1, Bytes: most}
	r.Shared = nil
	add := func(column string, s corpus.Shape) {
		row := func(name string, v float64, unit string) {
			r.Shared = append(r.Shared, report.Figure{Group: column, Name: name, Value: v, Unit: unit})
		}
		row("half of the lines are shorter than", float64(s.P50), "bytes")
		row("nine of ten lines are shorter than", float64(s.P90), "bytes")
		row("99 of 100 lines are shorter than", float64(s.P99), "bytes")
		row("lines above 64 KiB", 100*s.Long, "%")
		row("bytes of tools' results", 100*s.Share["user/tool_result"], "%")
		row("bytes of thinking and its signatures", 100*s.Share["assistant/thinking"], "%")
		row("text to search", 100*s.Text, "%")
		row("128 KiB compressed by zstd's fastest level", s.PackedToRawPct, "%")
		row("different three-character pieces in 4 KiB of text", s.DocGrams, "")
		row("… in 2 MiB", float64(s.GramsAtMB[2]), "")
		row("… of them in one piece of 4 KiB only", 100*s.Once, "%")
	}
	add("invented", corpus.Measure(plan.Sessions(), w.source, most, load.Pack))
	if dir := strings.TrimSpace(os.Getenv("CCSHIP_CORPUS")); dir != "" {
		real, err := corpus.Plan{Seed: 1}.Folder(dir)
		kit.Must(t, err)
		add("real", corpus.Measure(real, w.source, most, load.Pack))
	}
	w.save(t, r)
}
