package show

import (
	"strings"

	"github.com/ccship/ccship/cmd/ccship/term"
)

// unknown stands for a number that is not known: it is not 0.
const unknown = "–"

// leastLast is how many columns the last cell of a row is worth: for fewer, others give way.
const leastLast = 28

// squeezed leaves out columns, in the order that says which is needed least, until the last one has space for some
// words. columns 0 leaves all.
func squeezed(signs string, rows [][]string, columns int, order []int) (string, [][]string) {
	widths := widest(signs, rows)
	out := map[int]bool{}
	for _, next := range order {
		need := min(widths[len(widths)-1], leastLast)
		for i, width := range widths[:len(widths)-1] {
			if !out[i] {
				need += width + 2
			}
		}
		if columns == 0 || need <= columns {
			break
		}
		out[next] = true
	}
	left := make([][]string, len(rows))
	for i, row := range rows {
		left[i] = without(row, out)
	}
	return string(without([]byte(signs), out)), left
}

// widest returns the widths of columns.
func widest(signs string, rows [][]string) []int {
	widths := make([]int, len(signs))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], term.Width(cell))
		}
	}
	return widths
}

// rows writes what is known under a name, a line each.
func rows(b *strings.Builder) func(name, text string) {
	return func(name, text string) {
		if text = term.Printable(text); text != "" {
			b.WriteString(term.Pad(name, 12) + text + "\n")
		}
	}
}

// without returns the items whose place is not in out.
func without[T any](items []T, out map[int]bool) []T {
	var left []T
	for i, item := range items {
		if !out[i] {
			left = append(left, item)
		}
	}
	return left
}

// table writes rows, a line each, which end where the terminal does; see aligned.
func (v View) table(signs string, rows [][]string) string {
	var b strings.Builder
	for _, line := range aligned(signs, rows) {
		b.WriteString(v.fit(line) + "\n")
	}
	return b.String()
}

// aligned are rows of as many cells as signs has characters, each column as wide as its widest cell. '<' aligns a
// column left, '>' right.
func aligned(signs string, rows [][]string) []string {
	widths := widest(signs, rows)
	lines := make([]string, len(rows))
	for n, row := range rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			if cells[i] = term.Pad(cell, widths[i]); signs[i] == '>' {
				cells[i] = strings.Repeat(" ", widths[i]-term.Width(cell)) + cell
			}
		}
		lines[n] = strings.TrimRight(strings.Join(cells, "  "), " ")
	}
	return lines
}
