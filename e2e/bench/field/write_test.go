//go:build linux

package field_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/bench/league"
	"github.com/ccship/ccship/e2e/bench/plot"
	"github.com/ccship/ccship/e2e/bench/report"
	"github.com/ccship/ccship/e2e/kit"
)

// mark is the name of the marks in docs/benchmarks.md between which the tables stand.
const mark = "bench-field"

// write writes the tables into the page, and the pictures beside it.
func (w *world) write(t *testing.T, table *league.Table) {
	t.Helper()
	text := table.Markdown(ccship, func(s *league.Scenario) string {
		svg, name := w.picture(s)
		if svg == "" {
			return ""
		}
		file := "bench-" + name + ".svg"
		kit.Must(t, os.WriteFile(filepath.Join(w.out, file), []byte(svg), 0o644))
		return fmt.Sprintf("\n![%s](%s)\n%s", s.Title, file, growth(s))
	})
	kit.Must(t, report.Include(filepath.Join(w.out, "benchmarks.md"), "Benchmarks", mark, text))
}

// picture draws a scenario; "": it has no picture.
func (w *world) picture(s *league.Scenario) (svg, name string) {
	first := func(suffix string) string {
		for _, column := range s.Columns() {
			if strings.HasSuffix(column, suffix) {
				return column
			}
		}
		return ""
	}
	switch s.Key {
	case "import":
		return bars(s, first(": CPU")), s.Key
	case "append", "active", "first":
		return bars(s, "p50"), s.Key
	case "idle":
		return bars(s, first(": CPU")), s.Key
	case "rewind":
		return lines(s, ": sent", "MB of the file", "kB sent"), s.Key
	case "prompt":
		return lines(s, ": CPU", "MB of the transcript", "ms of CPU a turn"), s.Key
	case "grow", "sessions", "bytes":
		return grown(s), s.Key
	}
	return "", ""
}

func bars(s *league.Scenario, column string) string {
	var all []plot.Bar
	unit := ""
	for _, by := range s.Contestants() {
		if f := s.Figure(by, column); f != nil {
			v := league.Of(f.Values)
			all, unit = append(all, plot.Bar{Name: by, Low: v.Low, Value: v.Median, High: v.High}), f.Unit
		}
	}
	if len(all) == 0 {
		return ""
	}
	return plot.Bars(s.Title+": "+column, unit, all)
}

// lines draws columns whose names begin with a size in MB.
func lines(s *league.Scenario, suffix, x, y string) string {
	var all []plot.Line
	for _, by := range s.Contestants() {
		l := plot.Line{Name: by}
		for _, f := range s.Figures {
			if mb, ok := strings.CutSuffix(f.Column, " MB"+suffix); ok && f.By == by {
				if n, err := strconv.ParseFloat(mb, 64); err == nil {
					l.X, l.Y = append(l.X, n), append(l.Y, league.Of(f.Values).Median)
				}
			}
		}
		all = append(all, l)
	}
	return plot.Lines(s.Title, x, y, all)
}

// grown draws columns by the number with which their rows begin.
func grown(s *league.Scenario) string {
	var all []plot.Line
	for _, column := range s.Columns() {
		x, y := series(s, column)
		all = append(all, plot.Line{Name: column, X: x, Y: y})
	}
	var units []string
	for _, f := range s.Figures {
		if !slices.Contains(units, f.Unit) {
			units = append(units, f.Unit)
		}
	}
	return plot.Lines(s.Title, of(s), strings.Join(units, ", "), all)
}

func series(s *league.Scenario, column string) (x, y []float64) {
	for _, f := range s.Figures {
		files, _, _ := strings.Cut(f.By, " ")
		if n, err := strconv.ParseFloat(files, 64); err == nil && f.Column == column {
			x, y = append(x, n), append(y, league.Of(f.Values).Median)
		}
	}
	return x, y
}

// of is what the rows of a scenario count; "": nothing.
func of(s *league.Scenario) string {
	return map[string]string{"grow": "files", "sessions": "sessions", "bytes": "MB"}[s.Key]
}

// growth says how columns grow with what rows count.
func growth(s *league.Scenario) string {
	what, step := of(s), 100
	switch what {
	case "":
		return ""
	case "files":
		step = 1000
	}
	var b strings.Builder
	for _, column := range s.Columns() {
		x, y := series(s, column)
		if len(x) < 2 {
			continue
		}
		fit := league.Grow(x, y)
		sign := "+"
		if fit.Each < 0 {
			sign = "−"
		}
		fmt.Fprintf(&b, "\nFitted: %s = %s %s %s for each %d %s; as a power of %s, %.2f.\n", column,
			league.Number(fit.Base, ""), sign, league.Number(math.Abs(fit.Each)*float64(step), ""), step, what, what, fit.Power)
	}
	return b.String()
}
