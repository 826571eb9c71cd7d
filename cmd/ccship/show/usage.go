package show

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/daemon/library"
	"github.com/ccship/ccship/internal/amount"
)

// usageColumns are the columns of sums.
var usageColumns = []struct {
	head string
	of   func(library.Row) int64
}{
	{"responses", func(r library.Row) int64 { return r.Answers }},
	{"input", func(r library.Row) int64 { return r.Input }},
	{"output", func(r library.Row) int64 { return r.Output }},
	{"write 5m", func(r library.Row) int64 { return r.CacheWrite5m }},
	{"write 1h", func(r library.Row) int64 { return r.CacheWrite1h }},
	{"cache read", func(r library.Row) int64 { return r.CacheRead }},
	{"total", func(r library.Row) int64 { return r.Total }},
}

// Usage is a table of sums, with the total below.
func (v View) Usage(r library.Report) string {
	r = plain(r)
	if r.Total.Answers == 0 {
		return "no responses yet\n"
	}
	head := append([]string{}, r.By...)
	for _, c := range usageColumns {
		head = append(head, c.head)
	}
	table := [][]string{append(head, "cost")}
	for _, row := range r.Rows {
		table = append(table, usageCells(r.By, row))
	}
	if at := slices.Index(r.By, library.Session); at >= 0 {
		for i, id := range shortened(r.Rows, func(row *library.Row) string { return row.Session }) {
			table[i+1][at] = id
		}
	}
	total := usageCells(r.By, r.Total)
	total[0] = "total"
	all := append(table, total)
	first := len(r.By) // of the figures: kinds of cache use give way first, then what they are the sum of
	signs, shown := squeezed(strings.Repeat("<", first)+strings.Repeat(">", len(head)-first+1), all, v.Columns,
		[]int{first + 4, first + 3, first + 5, first + 1, first + 2, first})
	var b strings.Builder
	for n, line := range aligned(signs, shown) {
		text := v.fit(line)
		if n == 0 || n == len(all)-1 {
			text = v.paint(bold, text)
		}
		b.WriteString(text + "\n")
	}
	source := usageSource(r)
	if len(signs) < len(all[0]) {
		source += "\na wider terminal shows more columns"
	}
	b.WriteString(term.Hang(source, v.Columns, 2) + "\n")
	return b.String()
}

// usageSource says what the sums are of.
func usageSource(r library.Report) string {
	source := "your sessions on the server"
	if r.Source == library.FromDisk {
		source = amount.Counted(int64(r.Files), "transcript", "transcripts") + " on this disk"
	}
	return source + "; list prices of " + r.Prices
}

// usageCells are a row's cells.
func usageCells(by []string, row library.Row) []string {
	var cells []string
	for _, name := range by {
		cell := map[string]string{
			library.Day: row.Day, library.Project: row.Project, library.Model: row.Model,
			library.Machine: cmp.Or(row.Host, row.Machine), library.Session: row.Session,
		}[name]
		cells = append(cells, term.Cut(term.Printable(cell), 40))
	}
	for _, c := range usageColumns {
		cells = append(cells, amount.Count(c.of(row)))
	}
	return append(cells, usageCost(row))
}

// usageCost is what a row's tokens cost.
func usageCost(row library.Row) string {
	text := money(row.Cost)
	if row.Cost != nil && row.Unpriced > 0 {
		text += "+"
	}
	return text
}

// UsageFault says in one line what could not be read.
func UsageFault(f library.Fault) string {
	where := f.Path
	if f.Line > 0 {
		where += ":" + strconv.FormatInt(f.Line, 10)
	}
	more := ""
	if f.Lines > 1 {
		more = fmt.Sprintf(" (and %s)", amount.Counted(f.Lines-1, "more line", "more lines"))
	}
	return term.Printable(where + ": " + f.Why + more)
}
