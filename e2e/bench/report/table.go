package report

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// Ratio is the group of which tables show the quotient of the largest size and the next smaller one.
type Ratio string

// Markdown is the report as tables, one a group and store; those in ratios have a column that compares sizes.
func (r *Report) Markdown(ratios ...Ratio) string {
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(r.Machine)) {
		fmt.Fprintf(&b, "- %s: %s\n", key, r.Machine[key])
	}
	if len(r.Shared) > 0 {
		b.WriteString("\n")
		r.shared(&b)
	}
	for _, group := range r.groups() {
		fmt.Fprintf(&b, "\n### %s\n", group)
		for _, store := range r.stores() {
			t := r.table(group, store)
			if len(t.rows) > 0 {
				fmt.Fprintf(&b, "\n%s\n\n", store)
				t.write(&b, slices.Contains(ratios, Ratio(group)))
			}
		}
	}
	r.texts(&b)
	return b.String()
}

func (r *Report) shared(b *strings.Builder) {
	var columns, rows []string
	cells := map[[2]string]string{}
	for _, f := range r.Shared {
		if !slices.Contains(columns, f.Group) {
			columns = append(columns, f.Group)
		}
		if !slices.Contains(rows, f.Name) {
			rows = append(rows, f.Name)
		}
		cells[[2]string{f.Name, f.Group}] = number(f.Value, f.Unit)
	}
	fmt.Fprintf(b, "| | %s |\n|---|%s\n", strings.Join(columns, " | "), strings.Repeat("---|", len(columns)))
	for _, row := range rows {
		fmt.Fprintf(b, "| %s |", row)
		for _, c := range columns {
			fmt.Fprintf(b, " %s |", cells[[2]string{row, c}])
		}
		b.WriteString("\n")
	}
}

// texts leaves out those of the version before: they are in the file.
func (r *Report) texts(b *strings.Builder) {
	for _, run := range r.Runs {
		if run.Before {
			continue
		}
		for _, t := range run.Texts {
			fmt.Fprintf(b, "\n<details><summary>%s, %s: %s</summary>\n\n```\n%s\n```\n\n</details>\n",
				run.Store, run.column(), t.Title, strings.TrimSpace(t.Body))
		}
	}
}

func (r *Report) groups() (all []string) {
	for _, run := range r.Runs {
		for _, f := range run.Figures {
			if !slices.Contains(all, f.Group) {
				all = append(all, f.Group)
			}
		}
	}
	return all
}

func (r *Report) stores() (all []string) {
	for _, run := range r.Runs {
		if !slices.Contains(all, run.Store) {
			all = append(all, run.Store)
		}
	}
	return all
}

func (r *Run) column() string {
	name := fmt.Sprintf("%g GB", r.Size)
	if r.Before {
		name += ", before"
	}
	return name
}

// table is one group's figures on one store.
type table struct {
	runs  []*Run
	rows  []Figure // name, unit and target
	cells map[string]map[*Run]float64
}

func (r *Report) table(group, store string) table {
	t := table{cells: map[string]map[*Run]float64{}}
	for _, run := range r.Runs {
		if run.Store != store {
			continue
		}
		there := false
		for _, f := range run.Figures {
			if f.Group != group {
				continue
			}
			there = true
			if t.cells[f.Name] == nil {
				t.cells[f.Name] = map[*Run]float64{}
				t.rows = append(t.rows, f)
			}
			t.cells[f.Name][run] = f.Value
		}
		if there {
			t.runs = append(t.runs, run)
		}
	}
	return t
}

func (t *table) write(b *strings.Builder, ratio bool) {
	small, large := t.sizes()
	ratio = ratio && small != nil
	b.WriteString("| |")
	for _, run := range t.runs {
		fmt.Fprintf(b, " %s |", run.column())
	}
	if ratio {
		fmt.Fprintf(b, " %g ÷ %g GB |", large.Size, small.Size)
	}
	b.WriteString(" target |\n|---|" + strings.Repeat("---|", len(t.runs)+1))
	if ratio {
		b.WriteString("---|")
	}
	b.WriteString("\n")
	for _, row := range t.rows {
		fmt.Fprintf(b, "| %s |", row.Name)
		for _, run := range t.runs {
			v, ok := t.cells[row.Name][run]
			b.WriteString(" " + cell(v, ok, row.Unit) + " |")
		}
		if ratio {
			a, okA := t.cells[row.Name][small]
			z, okZ := t.cells[row.Name][large]
			b.WriteString(" " + cell(z/a, okA && okZ && a > 0, "") + " |")
		}
		fmt.Fprintf(b, " %s |\n", row.Target)
	}
}

// sizes are the two largest of the newest program; nil when there is one only.
func (t *table) sizes() (small, large *Run) {
	for _, run := range t.runs {
		if !run.Before {
			small, large = large, run
		}
	}
	return small, large
}

func cell(v float64, there bool, unit string) string {
	if !there {
		return "–"
	}
	return number(v, unit)
}

// number has three significant digits.
func number(v float64, unit string) string {
	digits := 0
	if a := math.Abs(v); a > 0 && a < 100 && v != math.Trunc(v) {
		digits = max(0, 2-int(math.Floor(math.Log10(a))))
	}
	text := fmt.Sprintf("%.*f", min(digits, 4), v)
	if unit != "" {
		text += " " + unit
	}
	return text
}
