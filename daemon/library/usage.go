package library

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/ccship/ccship/transcript"
)

// Columns are what rows can be grouped by.
func Columns() []string { return []string{Day, Project, Model, Machine, Session} }

// The columns.
const (
	Day     = "day"
	Project = "project"
	Model   = "model"
	Machine = "machine"
	Session = "session"
)

// Where sums come from.
const (
	FromDisk   = "disk"
	fromServer = "server"
)

// Query says which answers are summed, and how.
type Query struct {
	By    []string // columns; none: only the total
	Since time.Time
	Until time.Time      // exclusive; the zero time is no limit
	Zone  *time.Location // of days
}

func (q Query) by(column string) bool { return slices.Contains(q.By, column) }

// takes says whether an answer of a time is summed.
func (q Query) takes(t time.Time) bool {
	return (q.Since.IsZero() || !t.Before(q.Since)) && (q.Until.IsZero() || t.Before(q.Until))
}

// Report is the result of a query.
type Report struct {
	Source  string   `json:"source"` // FromDisk or FromServer
	By      []string `json:"by"`
	Rows    []Row    `json:"rows"`
	Total   Row      `json:"total"`
	Prices  string   `json:"prices_as_of"` // the day that the price list is of
	Files   int      `json:"files"`        // that were read
	Skipped int64    `json:"skipped_lines"`
	Faults  []Fault  `json:"faults"` // what could not be read, the first of them
	Zone    string   `json:"zone"`   // of days
}

// Row is one sum. Columns that the query does not name are empty.
type Row struct {
	Day         string `json:"day,omitempty"` // 2026-11-21
	ProjectHash string `json:"project_hash,omitempty"`
	Project     string `json:"project,omitempty"` // its name
	Model       string `json:"model,omitempty"`
	Machine     string `json:"machine,omitempty"`
	Host        string `json:"host,omitempty"`
	Session     string `json:"session,omitempty"`

	Answers      int64    `json:"answers"`
	Input        int64    `json:"input_tokens"`
	Output       int64    `json:"output_tokens"`
	CacheRead    int64    `json:"cache_read_tokens"`
	CacheWrite5m int64    `json:"cache_write_5m_tokens"`
	CacheWrite1h int64    `json:"cache_write_1h_tokens"`
	Total        int64    `json:"total_tokens"`
	Cost         *float64 `json:"cost_usd"`        // null: no price is known for any of them
	Unpriced     int64    `json:"unpriced_tokens"` // tokens that cost_usd leaves out
}

// Fault is something that could not be read.
type Fault struct {
	Path  string `json:"path"`
	Line  int64  `json:"line,omitempty"`  // the first one, from 1; 0: the whole file
	Lines int64  `json:"lines,omitempty"` // how many lines of the file
	Why   string `json:"why"`             // of the first one
}

// maxFaults is how many faults a report names.
const maxFaults = 20

// add adds tokens and what they cost.
func (r *Row) add(answers int64, u transcript.Usage, c transcript.Cost) {
	r.Answers += answers
	r.Input += u.Input
	r.Output += u.Output
	r.CacheRead += u.CacheRead
	r.CacheWrite5m += u.CacheWrite5m
	r.CacheWrite1h += u.CacheWrite1h
	r.Total += u.Total()
	r.Unpriced += c.Unpriced
	if c.Priced > 0 {
		usd := c.USD
		if r.Cost != nil {
			usd += *r.Cost
		}
		r.Cost = &usd
	}
}

// row is the row with these names, which is new if there is none. One project's clones may have several names: the
// greatest is shown.
func (r *Report) row(at map[Row]int, names Row) *Row {
	key := names
	key.Project = ""
	n, ok := at[key]
	if !ok {
		n = len(r.Rows)
		at[key] = n
		r.Rows = append(r.Rows, names)
	}
	r.Rows[n].Project = max(r.Rows[n].Project, names.Project)
	return &r.Rows[n]
}

// finish gives rows without tokens the cost 0, and sorts: by day if that is the first column, otherwise the rows with
// most tokens first.
func (r *Report) finish() {
	if len(r.By) == 0 {
		r.Rows = []Row{}
	}
	for i := range r.Rows {
		r.Rows[i].settle()
	}
	r.Total.settle()
	byDay := len(r.By) > 0 && r.By[0] == Day
	slices.SortFunc(r.Rows, func(a, b Row) int {
		if !byDay && a.Total != b.Total {
			return cmp.Compare(b.Total, a.Total)
		}
		return cmp.Or(cmp.Compare(a.Day, b.Day), cmp.Compare(b.Total, a.Total), cmp.Compare(a.Project, b.Project),
			cmp.Compare(a.ProjectHash, b.ProjectHash), cmp.Compare(a.Model, b.Model), cmp.Compare(a.Machine, b.Machine),
			cmp.Compare(a.Session, b.Session))
	})
}

// settle sets the cost of nothing, which is known, and rounds costs to a millionth of a dollar, as the server does.
func (r *Row) settle() {
	if r.Cost == nil && r.Unpriced == 0 {
		r.Cost = new(float64)
	}
	if r.Cost != nil {
		usd := math.Round(*r.Cost*1e6) / 1e6
		r.Cost = &usd
	}
}
