// Package table keeps measured values and prints them as tables. It does not know what is measured.
package table

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Table is what was measured of one thing: a row for each figure, a column for each program or size.
type Table struct {
	Title, Text string
	columns     []string
	rows        []*Row
	notes       []string
}

// Row is one figure of all columns.
type Row struct {
	Name, Unit string
	Target     string // what it should be; "": nothing is said
	values     map[string][]float64
}

// Add adds a value, one of several rounds, to a column's figure.
func (t *Table) Add(column, name, unit string, value float64) *Row {
	if !slices.Contains(t.columns, column) {
		t.columns = append(t.columns, column)
	}
	row := t.row(name)
	if row == nil {
		row = &Row{Name: name, Unit: unit, values: map[string][]float64{}}
		t.rows = append(t.rows, row)
	}
	row.values[column] = append(row.values[column], value)
	return row
}

// Note adds what is to be known about the figures, once.
func (t *Table) Note(text string) {
	if !slices.Contains(t.notes, text) {
		t.notes = append(t.notes, text)
	}
}

func (t *Table) row(name string) *Row {
	if i := slices.IndexFunc(t.rows, func(r *Row) bool { return r.Name == name }); i >= 0 {
		return t.rows[i]
	}
	return nil
}

// Print writes the table; one without figures has only its notes.
func (t *Table) Print(w io.Writer) {
	fmt.Fprintf(w, "\n## %s\n\n", t.Title)
	if t.Text != "" {
		fmt.Fprintf(w, "%s\n\n", t.Text)
	}
	if len(t.rows) > 0 {
		rule := strings.Repeat("---|", len(t.columns)+2)
		fmt.Fprintf(w, "| | %s | wanted |\n|%s\n", strings.Join(t.columns, " | "), rule)
	}
	for _, r := range t.rows {
		fmt.Fprintf(w, "| %s |", r.Name)
		for _, c := range t.columns {
			fmt.Fprintf(w, " %s |", r.cell(c))
		}
		fmt.Fprintf(w, " %s |\n", r.Target)
	}
	for _, n := range t.notes {
		fmt.Fprintf(w, "\n%s\n", n)
	}
}

// cell is the median with the least and the most of several rounds.
func (r *Row) cell(column string) string {
	v := r.values[column]
	if len(v) == 0 {
		return "–"
	}
	text := number(Median(v))
	if r.Unit != "" {
		text += " " + r.Unit
	}
	if low, high := number(slices.Min(v)), number(slices.Max(v)); low != high {
		text += " [" + low + "–" + high + "]"
	}
	return text
}

// Median is the middle of values; of none it is NaN.
func Median(values []float64) float64 {
	n := len(values)
	if n == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// number has three digits that count.
func number(v float64) string {
	size := math.Abs(v)
	switch {
	case v == math.Trunc(v) && size < 1e6:
	case size < 0.0995:
		return strconv.FormatFloat(v, 'g', 2, 64)
	case size < 10:
		return strconv.FormatFloat(v, 'f', 2, 64)
	case size < 100:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 0, 64)
}
