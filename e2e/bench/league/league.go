package league

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"slices"
)

// Table is everything measured in one form: in full, or quick.
type Table struct {
	Machine   map[string]string `json:"machine"`
	Skipped   map[string]string `json:"skipped,omitempty"` // contestants that were not measured, and why
	Scenarios []*Scenario       `json:"scenarios"`
}

// Scenario is something that all contestants do.
type Scenario struct {
	Key     string    `json:"key"`
	Title   string    `json:"title"`
	Text    string    `json:"text"` // what is done, and which part of the chain it is
	Figures []*Figure `json:"figures"`
	// Turned has contestants as columns: rows are what stands before the last colon of a column's name, and a cell has the
	// medians of all that begin so, divided by slashes.
	Turned bool `json:"turned,omitempty"`
	// Base is the contestant that ratios are to; "": the one that the table names.
	Base string `json:"base,omitempty"`
	// Measured says in what circumstances figures are added from now on.
	Measured string `json:"measured,omitempty"`
	// ByRow: rows are sizes of one contestant, and not compared with each other. A resumed run replaces its rows only.
	ByRow bool `json:"-"`
	// Skipped is what was left out, and why.
	Skipped map[string]string `json:"skipped,omitempty"`
}

// Figure is one contestant's values of one column, one for each round.
type Figure struct {
	Column string    `json:"column"`
	Unit   string    `json:"unit,omitempty"`
	By     string    `json:"by"`
	Values []float64 `json:"values"`
	// Held is a column that Worse compares: less is better, and rounds of one machine differ little.
	Held bool `json:"held,omitempty"`
	// Measured says in what circumstances.
	Measured string `json:"measured,omitempty"`

	old bool // of an earlier run: it goes with the first new value of its column
}

// Load reads a table from a file that has one for each form; one that is not there is empty.
func Load(file, form string) (*Table, error) {
	all, err := load(file)
	if err != nil {
		return nil, err
	}
	if t := all[form]; t != nil {
		return t, nil
	}
	return &Table{Machine: map[string]string{}, Skipped: map[string]string{}}, nil
}

func load(file string) (map[string]*Table, error) {
	all := map[string]*Table{}
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil {
		return nil, fmt.Errorf("read the figures %s: %w", file, err)
	}
	return all, nil
}

// Save writes the table in its form's place.
func (t *Table) Save(file, form string) error {
	all, err := load(file)
	if err != nil {
		return err
	}
	all[form] = t
	text, err := json.MarshalIndent(all, "", " ")
	if err == nil {
		err = os.WriteFile(file, append(text, '\n'), 0o644)
	}
	if err != nil {
		return fmt.Errorf("save the figures: %w", err)
	}
	return nil
}

// Begin takes a scenario in place of the one of the same key, or adds it.
func (t *Table) Begin(key, title, text string) *Scenario {
	s := &Scenario{Key: key, Title: title, Text: text}
	for i, old := range t.Scenarios {
		if old.Key == key {
			t.Scenarios[i] = s
			return s
		}
	}
	t.Scenarios = append(t.Scenarios, s)
	return s
}

// Resume is Begin for a run that measures some columns only: others stay as they were. A column that is measured anew
// loses all its old figures, since ratios are between figures of one run.
func (t *Table) Resume(key, title, text string) *Scenario {
	before := t.scenario(key)
	s := t.Begin(key, title, text)
	if before != nil {
		s.Figures, s.Skipped = before.Figures, before.Skipped
		for _, f := range s.Figures {
			f.old, f.Measured = true, cmp.Or(f.Measured, before.Measured)
		}
	}
	return s
}

// Only is the table with one scenario.
func (t *Table) Only(key string) *Table {
	if s := t.scenario(key); s != nil {
		return &Table{Scenarios: []*Scenario{s}}
	}
	return &Table{}
}

// Order puts scenarios into the order of keys; others come last.
func (t *Table) Order(keys []string) {
	place := func(s *Scenario) int {
		if at := slices.Index(keys, s.Key); at >= 0 {
			return at
		}
		return len(keys)
	}
	slices.SortStableFunc(t.Scenarios, func(a, b *Scenario) int { return place(a) - place(b) })
}

// Add adds a round's value.
func (s *Scenario) Add(by, column, unit string, value float64) *Figure {
	replaced := func(f *Figure) bool { return f.old && f.Column == column && (!s.ByRow || f.By == by) }
	at := slices.IndexFunc(s.Figures, replaced)
	s.Figures = slices.DeleteFunc(s.Figures, replaced)
	f := s.Figure(by, column)
	if f == nil {
		f = &Figure{Column: column, Unit: unit, By: by, Measured: s.Measured}
		if at < 0 {
			at = len(s.Figures)
		}
		s.Figures = slices.Insert(s.Figures, at, f)
	}
	f.Values = append(f.Values, value)
	return f
}

// Skip says why something is not measured.
func (s *Scenario) Skip(what, why string) {
	if s.Skipped == nil {
		s.Skipped = map[string]string{}
	}
	s.Skipped[what] = why
}

// Hold has Worse compare the figure.
func (f *Figure) Hold() { f.Held = true }

// Figure is a contestant's in a column; nil: none.
func (s *Scenario) Figure(by, column string) *Figure {
	for _, f := range s.Figures {
		if f.By == by && f.Column == column {
			return f
		}
	}
	return nil
}

// Columns are the names of the columns, in the order in which they came.
func (s *Scenario) Columns() (all []string) {
	for _, f := range s.Figures {
		if !slices.Contains(all, f.Column) {
			all = append(all, f.Column)
		}
	}
	return all
}

// Contestants are those that measured, in the order in which they came.
func (s *Scenario) Contestants() (all []string) {
	for _, f := range s.Figures {
		if !slices.Contains(all, f.By) {
			all = append(all, f.By)
		}
	}
	return all
}

// Spread is the middle of several values, and their ends.
type Spread struct{ Low, Median, High float64 }

// Of is the spread of values; of none it is NaN.
func Of(values []float64) Spread {
	if len(values) == 0 {
		return Spread{math.NaN(), math.NaN(), math.NaN()}
	}
	v := slices.Sorted(slices.Values(values))
	middle := v[len(v)/2]
	if len(v)%2 == 0 {
		middle = (v[len(v)/2-1] + middle) / 2
	}
	return Spread{v[0], middle, v[len(v)-1]}
}

// Ratio is the spread of a figure beside another, round by round: what disturbs a round disturbs both.
func Ratio(f, to *Figure) Spread {
	var all []float64
	for i := range min(len(f.Values), len(to.Values)) {
		if to.Values[i] > 0 {
			all = append(all, f.Values[i]/to.Values[i])
		}
	}
	return Of(all)
}
