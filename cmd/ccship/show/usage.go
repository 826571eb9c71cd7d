package show

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/daemon/library"
	"github.com/ccship/ccship/internal/amount"
)

// usageColumns are the columns of sums, with what they are called in a table and in comma-separated values.
var usageColumns = []struct {
	head, name string
	of         func(library.Row) int64
}{
	{"responses", "answers", func(r library.Row) int64 { return r.Answers }},
	{"input", "input_tokens", func(r library.Row) int64 { return r.Input }},
	{"output", "output_tokens", func(r library.Row) int64 { return r.Output }},
	{"write 5m", "cache_write_5m_tokens", func(r library.Row) int64 { return r.CacheWrite5m }},
	{"write 1h", "cache_write_1h_tokens", func(r library.Row) int64 { return r.CacheWrite1h }},
	{"cache read", "cache_read_tokens", func(r library.Row) int64 { return r.CacheRead }},
	{"total", "total_tokens", func(r library.Row) int64 { return r.Total }},
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
		table = append(table, usageCells(r.By, row, false))
	}
	if at := slices.Index(r.By, library.Session); at >= 0 {
		for i, id := range shortened(r.Rows, func(row *library.Row) string { return row.Session }) {
			table[i+1][at] = id
		}
	}
	total := usageCells(r.By, r.Total, false)
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

// usageCells are a row's cells. exact is for programs: names in full, numbers without spaces.
func usageCells(by []string, row library.Row, exact bool) []string {
	var cells []string
	for _, name := range by {
		cell := map[string]string{
			library.Day: row.Day, library.Project: row.Project, library.Model: row.Model, library.Machine: row.Machine,
			library.Session: row.Session,
		}[name]
		if name == library.Machine && row.Host != "" && !exact {
			cell = row.Host
		}
		if !exact {
			cell = term.Cut(term.Printable(cell), 40)
		}
		cells = append(cells, cell)
	}
	for _, c := range usageColumns {
		if exact {
			cells = append(cells, strconv.FormatInt(c.of(row), 10))
		} else {
			cells = append(cells, amount.Count(c.of(row)))
		}
	}
	cost := usageCost(row)
	if exact {
		cost = ""
		if row.Cost != nil {
			cost = strconv.FormatFloat(*row.Cost, 'f', 6, 64)
		}
	}
	return append(cells, cost)
}

// usageCost is what a row's tokens cost.
func usageCost(row library.Row) string {
	text := money(row.Cost)
	if row.Cost != nil && row.Unpriced > 0 {
		text += "+"
	}
	return text
}

// UsageCSV writes the rows as comma-separated values, without the total. A name that a spreadsheet would take for a
// formula begins with an apostrophe: others chose it.
func UsageCSV(w io.Writer, r library.Report) error {
	out := csv.NewWriter(w)
	head := append([]string{}, r.By...)
	for _, c := range usageColumns {
		head = append(head, c.name)
	}
	rows := [][]string{append(head, "cost_usd", "unpriced_tokens")}
	for _, row := range r.Rows {
		cells := usageCells(r.By, row, true)
		for i := range r.By {
			if cells[i] = term.Printable(cells[i]); strings.ContainsAny(cells[i][:min(1, len(cells[i]))], "=+-@") {
				cells[i] = "'" + cells[i]
			}
		}
		rows = append(rows, append(cells, strconv.FormatInt(row.Unpriced, 10)))
	}
	if err := out.WriteAll(rows); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
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
