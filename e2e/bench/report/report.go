package report

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
)

// Figure is one measured value.
type Figure struct {
	Group  string  `json:"group"` // the table it stands in
	Name   string  `json:"name"`  // its row
	Value  float64 `json:"value"`
	Unit   string  `json:"unit,omitempty"`
	Target string  `json:"target,omitempty"` // what it should be; "": nothing is said
}

// Run is the figures of one program on one store at one size.
type Run struct {
	Store   string   `json:"store"`
	Size    float64  `json:"size"` // GB of raw bytes
	Before  bool     `json:"before,omitempty"`
	Program string   `json:"program"` // its version
	Figures []Figure `json:"figures"`
	Texts   []Text   `json:"texts,omitempty"`
}

// Text is a finding that is no number: a plan of a query.
type Text struct {
	Title string `json:"title"`
	Body  string `json:"body"`
}

// Add appends a figure.
func (r *Run) Add(group, name string, value float64, unit string) {
	r.Figures = append(r.Figures, Figure{Group: group, Name: name, Value: value, Unit: unit})
}

// Aim says what the figure added last should be.
func (r *Run) Aim(target string) { r.Figures[len(r.Figures)-1].Target = target }

// same reports whether two runs measured the same thing.
func (r *Run) same(o *Run) bool {
	return r.Store == o.Store && r.Size == o.Size && r.Before == o.Before
}

// Report is all runs that are known.
type Report struct {
	Machine map[string]string `json:"machine"`
	Shared  []Figure          `json:"shared,omitempty"` // of no run: of the data
	Runs    []*Run            `json:"runs"`
}

// Load reads a report; one that is not there is empty.
func Load(file string) (*Report, error) {
	r := &Report{Machine: map[string]string{}}
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err == nil {
		err = json.Unmarshal(text, r)
	}
	if err != nil {
		return nil, fmt.Errorf("read the report %s: %w", file, err)
	}
	return r, nil
}

// Put takes a run in place of the one that measured the same before. Figures of groups that were not measured now stay.
func (r *Report) Put(run *Run) {
	for i, old := range r.Runs {
		if !old.same(run) {
			continue
		}
		merged := *run
		merged.Figures, merged.Texts = nil, run.Texts
		for _, f := range old.Figures {
			if !slices.ContainsFunc(run.Figures, func(n Figure) bool { return n.Group == f.Group }) {
				merged.Figures = append(merged.Figures, f)
			}
		}
		merged.Figures = append(merged.Figures, run.Figures...)
		if len(merged.Texts) == 0 {
			merged.Texts = old.Texts
		}
		r.Runs[i] = &merged
		return
	}
	r.Runs = append(r.Runs, run)
	slices.SortStableFunc(r.Runs, func(a, b *Run) int {
		return cmp.Or(-cmp.Compare(a.Store, b.Store), cmp.Compare(a.Size, b.Size), cmp.Compare(order(a), order(b)))
	})
}

func order(r *Run) int {
	if r.Before {
		return 0
	}
	return 1
}

// Save writes the report.
func (r *Report) Save(file string) error {
	text, err := json.MarshalIndent(r, "", " ")
	if err == nil {
		err = os.WriteFile(file, append(text, '\n'), 0o644)
	}
	if err != nil {
		return fmt.Errorf("save the report: %w", err)
	}
	return nil
}

// Include writes text between the marks of a name in a page, "<!-- NAME:begin -->" and "<!-- NAME:end -->". A page that
// is not there is made, with a title.
func Include(page, title, name, text string) error {
	begin, end := []byte("<!-- "+name+":begin -->\n"), []byte("<!-- "+name+":end -->\n")
	old, err := os.ReadFile(page)
	if errors.Is(err, fs.ErrNotExist) {
		old, err = []byte("# "+title+"\n\n"), nil
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", page, err)
	}
	from, to := bytes.Index(old, begin), bytes.Index(old, end)
	switch {
	case from < 0 && to < 0:
		old = append(append(bytes.TrimRight(old, "\n"), "\n\n"...), append(begin, end...)...)
		from, to = bytes.Index(old, begin), bytes.Index(old, end)
	case from < 0 || to < from:
		return fmt.Errorf("%s: the marks of %s do not enclose anything", page, name)
	}
	var b bytes.Buffer
	b.Write(old[:from+len(begin)])
	b.WriteString("\n" + strings.TrimSpace(text) + "\n\n")
	b.Write(old[to:])
	if err := os.WriteFile(page, b.Bytes(), 0o644); err != nil {
		return fmt.Errorf("write %s: %w", page, err)
	}
	return nil
}
