package kit

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// Outcome is what one kind of fault came to in all its runs.
type Outcome struct {
	Group, Fault string
	Runs         int
	Lost         int       // lines on disk that the server lacks
	Wrong        int       // lines that it has with other bytes, and failures of verify
	Hung         int       // programs that neither answered nor ended
	Recovery     []float64 // seconds from the end of the trouble to everything being there

	told map[string]int // what people could read meanwhile, and in how many runs
}

// OutcomeHead is the head of the table that the lines of Record make.
const OutcomeHead = "| fault | runs | lost | wrong | hung | recovery, median and most, s | people read |\n" +
	"|---|--:|--:|--:|--:|--:|---|\n"

// Record logs an outcome at the end of t as a row of a table.
func Record(t testing.TB, o *Outcome) {
	t.Helper()
	t.Cleanup(func() {
		if o.Runs > 0 {
			t.Log(o)
		}
	})
}

// Hear counts something that a person could read.
func (o *Outcome) Hear(text string) {
	if text == "" {
		return
	}
	if o.told == nil {
		o.told = map[string]int{}
	}
	o.told[Plain(text)]++
}

// String returns the row of a table, with the most frequent text that people read.
func (o *Outcome) String() string {
	recovery, told := "", ""
	if n := len(o.Recovery); n > 0 {
		sorted := slices.Sorted(slices.Values(o.Recovery))
		recovery = fmt.Sprintf("%.1f, %.1f", sorted[(n-1)/2], sorted[n-1])
	}
	for text, n := range o.told {
		if n > o.told[told] || n == o.told[told] && text < told {
			told = text
		}
	}
	return fmt.Sprintf("| %s: %s | %d | %d | %d | %d | %s | %s |",
		o.Group, o.Fault, o.Runs, o.Lost, o.Wrong, o.Hung, recovery, strings.NewReplacer("|", "\\|", "\n", " ").Replace(told))
}
