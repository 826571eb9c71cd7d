package show

import (
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/cmd/ccship/showtest"
	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/library"
	"github.com/ccship/ccship/e2e/kit"
)

// A narrow terminal shows what matters: of sessions the title, of sums the cost. No line is cut where columns can go.
func TestNarrow(t *testing.T) {
	cost := 921.99
	row := library.Row{
		Day: "2026-11-20", Session: "3f2a9c01-0000-4000-8000-000000000001", Answers: 1234, Input: 1_234_567, Output: 345_678, CacheWrite5m: 9_876_543,
		CacheRead: 123_456_789, Total: 134_913_577, Cost: &cost,
	}
	at := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	items := []library.Item{{Session: row.Session, State: library.OnBoth, Title: "Fix the rounding of the cart total", Project: "shop", ChangedAt: at, Messages: 34, Tokens: 1e6, Cost: &cost}}
	for _, columns := range []int{60, 80, 120} {
		v := View{Now: at, Zone: time.UTC, Columns: columns}
		sums := v.Usage(library.Report{By: []string{library.Day}, Rows: []library.Row{row}, Total: row, Prices: "2026-11-21"})
		kit.Check(t, strings.Contains(sums, "$921.99") && strings.Contains(sums, "134 913 577") && !strings.Contains(sums, "…"),
			"%d columns:\n%s", columns, sums)
		all := strings.Contains(sums, "write 1h")
		kit.Check(t, all != strings.Contains(sums, "a wider terminal shows more columns"), "%d columns: whether all are shown is not said:\n%s", columns, sums)
		list := v.Sessions(items, false)
		kit.Check(t, strings.Contains(list, "Fix the rounding of the c"), "%d columns:\n%s", columns, list)
	}
	by := View{Now: at, Zone: time.UTC}.Usage(library.Report{By: []string{library.Session}, Rows: []library.Row{row}, Total: row})
	kit.Check(t, strings.Contains(by, "\n3f2a9c01  "), "a session's id is not short:\n%s", by)
}

// The census breaks between words, and says of each project the size that puts it first.
func TestCensusNarrow(t *testing.T) {
	c := &control.Census{Projects: 12, Sessions: 345, Agents: 67, Bytes: 89e6, Largest: []control.ProjectTotal{
		{Project: "orchard", Sessions: 2, Bytes: 40e6}, {Project: "greenhouse", Sessions: 90, Bytes: 30e6}, {Project: "shed", Sessions: 5, Bytes: 9e6}}}
	text := View{Columns: 60}.Census(c)
	for line := range strings.Lines(text) {
		kit.Check(t, term.Width(strings.TrimSuffix(line, "\n")) <= 60, "too long: %q", line)
	}
	words := strings.Join(strings.Fields(text), " ")
	kit.Check(t, strings.HasSuffix(words, "; most of it in orchard (40 MB), greenhouse (30 MB), shed (9.0 MB)"), "%q", words)
}

// What a hostile server says of sums makes no long lines: neither a cost of hundreds of digits nor marks without a width.
func TestUsageOfHostileServer(t *testing.T) {
	for _, cost := range []float64{1e300, -1e300, 1e12} {
		row := library.Row{Project: "z" + strings.Repeat("\u0301", 500) + "y", Answers: 1, Cost: &cost}
		sums := View{Zone: time.UTC}.Usage(library.Report{By: []string{library.Project}, Rows: []library.Row{row}, Total: row})
		for line := range strings.Lines(sums) {
			kit.Check(t, len(line) < 200, "%d bytes: %q", len(line), line)
		}
		kit.Check(t, strings.Contains(sums, "\u0301y"), "the name is cut: %q", sums)
	}
}

// The status fits a narrow terminal: lines break between words, below where their text begins.
func TestStatusNarrow(t *testing.T) {
	for name, status := range showtest.Statuses() {
		for line := range strings.Lines(View{Now: showtest.Moment(), Columns: 60}.Status(status)) {
			line = strings.TrimSuffix(line, "\n")
			kit.Check(t, term.Width(line) <= 60 || len(strings.Fields(line)) <= 2 || strings.Contains(line, "`"),
				"%s: %q", name, line)
		}
	}
}
