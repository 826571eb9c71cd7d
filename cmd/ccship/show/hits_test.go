package show

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/cmd/ccship/showtest"
	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/library"
	"github.com/ccship/ccship/daemon/remote"
	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/protocol"
)

var (
	hitsNow = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	cart    = remote.Session{SessionID: "3f2a9c01-0000-4000-8000-000000000001", Project: "shop", Machine: "0c", Host: "laptop", Last: hitsNow.Add(-time.Hour)}
	twin    = remote.Session{SessionID: "3f2a9c01-0000-4000-8000-000000000002", Project: "장바구니", Machine: "0d", Last: hitsNow.AddDate(0, -2, 0)}
)

// foundIn is a hit whose last word matched, minutes ago.
func foundIn(line int64, kind, before, match string) protocol.Hit {
	at := hitsNow.Add(-time.Duration(line) * time.Minute)
	return protocol.Hit{Line: line, Time: &at, Kind: kind, Current: true,
		Snippet: []protocol.Piece{{Text: before}, {Text: match, Match: true}}}
}

// someFound are three sessions, with all that is hostile or odd.
func someFound() remote.Ranked {
	old := foundIn(40, "tool", "\x1b[2Jcat\n", "cart.go")
	old.Generation, old.Current, old.Time = 2, false, nil
	gone, next := "9d0c\x1b[31m", "20"
	return remote.Ranked{Total: 30, Next: &next, Missing: []string{"gift\x1b[0m"}, Notes: []string{"projekt: is no filter"},
		Sessions: []remote.RankedSession{
			{Session: cart, Title: "Fix \x1b[31mthe\ncart", Hits: []protocol.Hit{
				foundIn(22, "prompt", strings.Repeat("please ", 20)+"fix the ", "cart"), foundIn(21, "answer", "I round the ", "cart"),
				foundIn(20, "result", "8 tests of the ", "cart"), foundIn(23, "thinking", "the ", "cart"),
				foundIn(0, "title", "Fix the ", "cart")}},
			{Session: twin, Prompt: "장바구니를 고쳐\n주세요", Missing: []string{"round"}, Hits: []protocol.Hit{old}},
			{Session: twin, Gone: &gone, Hits: []protocol.Hit{foundIn(3, "history", "the ", "cart")}},
		}}
}

func TestFoundText(t *testing.T) {
	v := View{Now: hitsNow, Zone: time.UTC}
	narrow, colours := v, v
	narrow.Columns, colours.Columns, colours.Colours = 70, 100, true
	some := someFound()
	some.More = true
	showtest.Golden(t, "hits.txt", strings.Join([]string{
		v.Found(someFound()), narrow.Found(some), colours.Found(someFound()), v.Found(remote.Ranked{})}, "---\n"))
}

// TestHitsFitAndShowTheMatch: however narrow the terminal, no line is longer, and each shows what matched.
func TestHitsFitAndShowTheMatch(t *testing.T) {
	for _, columns := range []int{60, 80, 100, 200} {
		t.Run(fmt.Sprint(columns), func(t *testing.T) {
			out := (View{Now: hitsNow, Zone: time.UTC, Columns: columns, Colours: true}).Found(someFound())
			matches := 0
			for line := range strings.Lines(out) {
				kit.Check(t, term.Width(strings.TrimSuffix(line, "\n")) <= columns, "%d columns: %q", term.Width(line), line)
				if strings.Contains(line, "\x1b[33mcart") {
					matches++
				}
			}
			kit.Check(t, matches == 7, "%d of 7 lines show what matched:\n%s", matches, out)
		})
	}
}

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
