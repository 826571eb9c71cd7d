package league

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Markdown is the table as text: each scenario's figures, those of a contestant in one row. The first number of a cell
// is the ratio to what to measured. After each scenario comes what more returns of it.
func (t *Table) Markdown(to string, more func(*Scenario) string) string {
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(t.Machine)) {
		fmt.Fprintf(&b, "- %s: %s\n", key, t.Machine[key])
	}
	for _, name := range slices.Sorted(maps.Keys(t.Skipped)) {
		fmt.Fprintf(&b, "- not measured: %s (%s)\n", name, t.Skipped[name])
	}
	for _, s := range t.Scenarios {
		fmt.Fprintf(&b, "\n### %s\n\n%s\n\n", s.Title, s.Text)
		s.write(&b, cmp.Or(s.Base, to))
		s.notes(&b)
		b.WriteString(more(s))
	}
	return b.String()
}

// notes are what stands below the table.
func (s *Scenario) notes(b *strings.Builder) {
	for _, what := range slices.Sorted(maps.Keys(s.Skipped)) {
		fmt.Fprintf(b, "\nNot measured: %s (%s).\n", what, s.Skipped[what])
	}
	order, sizes := s.circumstances()
	for _, m := range order {
		of := ""
		if len(order) > 1 {
			of = ", " + strings.Join(sizes[m], ", ")
		}
		fmt.Fprintf(b, "\nMeasured%s: %s.\n", of, m)
	}
}

// circumstances are those in which figures were measured, and the sizes that each is about: what stands before the
// colon of a column's name, or else the row.
func (s *Scenario) circumstances() (order []string, sizes map[string][]string) {
	sizes = map[string][]string{}
	for _, f := range s.Figures {
		m := cmp.Or(f.Measured, s.Measured)
		if m == "" {
			continue
		}
		size, _, ok := strings.Cut(f.Column, ": ")
		if !ok {
			size = f.By
		}
		if sizes[m] == nil {
			order = append(order, m)
		}
		if !slices.Contains(sizes[m], size) {
			sizes[m] = append(sizes[m], size)
		}
	}
	return order, sizes
}

func (s *Scenario) write(b *strings.Builder, to string) {
	if s.Turned {
		s.turned(b)
		return
	}
	columns := s.Columns()
	fmt.Fprintf(b, "| | %s |\n|---|%s\n", strings.Join(columns, " | "), strings.Repeat("---|", len(columns)))
	for _, by := range s.Contestants() {
		fmt.Fprintf(b, "| %s |", by)
		for _, column := range columns {
			b.WriteString(" " + s.cell(by, column, to) + " |")
		}
		b.WriteString("\n")
	}
}

func (s *Scenario) turned(b *strings.Builder) {
	all := s.Contestants()
	fmt.Fprintf(b, "| | %s |\n|---|%s\n", strings.Join(all, " | "), strings.Repeat("---|", len(all)))
	done := map[string]bool{}
	for _, column := range s.Columns() {
		row := column[:max(strings.LastIndex(column, ":"), 0)]
		if done[row] {
			continue
		}
		done[row] = true
		fmt.Fprintf(b, "| %s |", row)
		for _, by := range all {
			var parts []string
			for _, f := range s.Figures {
				if f.By == by && strings.HasPrefix(f.Column, row+":") {
					parts = append(parts, Number(Of(f.Values).Median, f.Unit))
				}
			}
			b.WriteString(" " + strings.Join(parts, " / ") + " |")
		}
		b.WriteString("\n")
	}
}

func (s *Scenario) cell(by, column, to string) string {
	f, base := s.Figure(by, column), s.Figure(to, column)
	if f == nil {
		return "–"
	}
	v := Of(f.Values)
	text := Number(v.Median, f.Unit)
	if low, high := Number(v.Low, ""), Number(v.High, ""); len(f.Values) > 1 && low != high {
		text += " [" + low + "–" + high + "]"
	}
	if by == to || base == nil || f.Unit == "" {
		return text
	}
	if r := Ratio(f, base).Median; !math.IsNaN(r) {
		return Number(r, "×") + " (" + text + ")"
	}
	return text
}

// Number writes a value with three digits that count.
func Number(v float64, unit string) string {
	text := strconv.FormatFloat(v, 'f', 0, 64)
	switch size := math.Abs(v); {
	case v == math.Trunc(v) && size < 1e6:
	case size < 0.0995:
		text = strconv.FormatFloat(v, 'g', 2, 64)
	case size < 10:
		text = strconv.FormatFloat(v, 'f', 2, 64)
	case size < 100:
		text = strconv.FormatFloat(v, 'f', 1, 64)
	}
	switch unit {
	case "", "×":
		return text + unit
	}
	return text + " " + unit
}

// Worse says which held figures of a contestant now stand further behind another's than then: when the best round's
// ratio now is worse than the worst one's then by more than margin. Of columns without a unit, which count what must
// not be, any more than then is worse.
func Worse(now, then *Table, by, to string, margin float64) (all []string) {
	for _, s := range now.Scenarios {
		old := then.scenario(s.Key)
		if old == nil {
			continue
		}
		for _, f := range s.Figures {
			was := old.Figure(by, f.Column)
			if f.By != by || !f.Held || was == nil {
				continue
			}
			if f.Unit == "" {
				if n, o := Of(f.Values).High, Of(was.Values).High; n > o {
					all = append(all, fmt.Sprintf("%s, %s: %g, was %g", s.Title, f.Column, n, o))
				}
				continue
			}
			base, wasBase := s.Figure(to, f.Column), old.Figure(to, f.Column)
			if base == nil || wasBase == nil {
				continue
			}
			n, o := Ratio(f, base), Ratio(was, wasBase)
			if n.Low > o.High*(1+margin) {
				all = append(all, fmt.Sprintf("%s, %s: %.2f× %s at best, was %.2f× at worst", s.Title, f.Column, n.Low, to, o.High))
			}
		}
	}
	return all
}

func (t *Table) scenario(key string) *Scenario {
	for _, s := range t.Scenarios {
		if s.Key == key {
			return s
		}
	}
	return nil
}
