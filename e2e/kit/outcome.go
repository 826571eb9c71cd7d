package kit

import (
	"fmt"
	"regexp"
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

// LastWords returns the line of a log in which a program that has ended says why.
func LastWords(log string) string {
	lines := strings.Split(strings.TrimSpace(log), "\n")
	for i := len(lines) - 1; i >= 0; i-- {
		if said, ours := strings.CutPrefix(lines[i], "ccship: "); ours {
			return said
		}
	}
	for _, line := range lines { // the runtime's own words stand before its traces
		if strings.HasPrefix(line, "fatal error: ") || strings.HasPrefix(line, "panic: ") {
			return line
		}
	}
	return lines[len(lines)-1]
}

// Headline returns the first line of what `ccship status` prints, without its mark and its process.
func Headline(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	line, _, _ = strings.Cut(line, " (up ")
	_, said, found := strings.Cut(line, "ccship: ")
	if !found {
		return line
	}
	return said
}

var varying = []struct {
	what *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]+Z|\d{8}T[0-9.]+Z`), "…"},
	{regexp.MustCompile(`(since|at) \d{4}-\d\d-\d\d \d\d:\d\d`), "$1 …"},
	{regexp.MustCompile(`127\.0\.0\.1:\d+(->127\.0\.0\.1:\d+)?`), "127.0.0.1"},
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "SESSION"},
	{regexp.MustCompile(`pid \d+`), "pid N"},
	{regexp.MustCompile(`\b\d+ (d|h|min)( \d+ (h|min|s))?\b`), "N $1"},
	{regexp.MustCompile(`\b\d+(\.\d+)?( ?[kMG]i?B| ms|ms| s|s)\b`), "N$2"},
	{regexp.MustCompile(`\b[1-9]\d* (entries|lines|transcripts|sessions|folders|failures|waiting)\b`), "N $1"},
	{regexp.MustCompile(`\b1 (entry|line|transcript|session|folder|failure)\b`), "N $1"},
	{regexp.MustCompile(`(page|transaction) (\d+|N)( to \d+)?`), "$1 N"},
	{regexp.MustCompile(`(to be:|identifies as|row) \d+`), "$1 N"},
	{regexp.MustCompile(`-work-\d`), "-work-N"},
	{regexp.MustCompile(`; (doctor: )?(a rewrite took [^;]* at …|\d+ more rewrites? took lines out)`), ""}, // by a test
	{regexp.MustCompile(`at byte \d+`), "at byte N"},
}

// Plain takes out of a text what differs from run to run.
func Plain(text string) string {
	for _, v := range varying {
		text = v.what.ReplaceAllString(text, v.with)
	}
	return text
}
