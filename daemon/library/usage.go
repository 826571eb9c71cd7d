package library

import (
	"cmp"
	"context"
	"hash/maphash"
	"math"
	"slices"
	"time"

	"github.com/ccship/ccship/daemon/remote"
	"github.com/ccship/ccship/transcript"
	"github.com/ccship/ccship/transcript/session"
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

// answers holds one entry for each answer: about a hundred bytes, whatever the transcripts' size.
//
// An answer is known by its message id and request id. Some gateways give neither request ids nor message ids of their
// own: then the message id counts within its session. Where one copy is a sidechain's, the message id within the
// session is enough: a side question repeats answers of the main conversation under request ids of its own.
type answers struct {
	seed maphash.Seed
	list []answer
	last map[uint64]int32 // 1 + number in list of the newest answer of a message
}

// answer is what counts of one answer.
type answer struct {
	message uint64 // hash of the message id
	request uint32 // hash of the request id, or of the session
	session uint32 // hash of the session's id
	group   int32  // of sums; -1: outside the query's time
	tokens  [6]uint32
	side    bool  // of a sidechain
	copied  bool  // out of another session's history
	before  int32 // 1 + number in list of the message's answer before; 0: none
}

// usage returns the tokens and searches as they are in lines.
func (a *answer) usage() transcript.Usage {
	return transcript.Usage{
		Input: int64(a.tokens[0]), Output: int64(a.tokens[1]), CacheRead: int64(a.tokens[2]),
		CacheWrite5m: int64(a.tokens[3]), CacheWrite1h: int64(a.tokens[4]), WebSearches: int64(a.tokens[5]),
	}
}

// newAnswer returns the answer that a sample is of. No model gives answers of more than four billion tokens.
func (t *answers) newAnswer(s *transcript.UsageSample, session string) answer {
	fit := func(n int64) uint32 { return uint32(min(n, math.MaxUint32)) }
	hash := func(kind, text string) uint64 { return maphash.String(t.seed, kind+text) }
	a := answer{
		message: hash("", s.Key()), request: uint32(hash("request ", s.RequestID)),
		session: uint32(hash("session ", session)), side: s.Sidechain,
		tokens: [6]uint32{fit(s.Usage.Input), fit(s.Usage.Output), fit(s.Usage.CacheRead), fit(s.Usage.CacheWrite5m),
			fit(s.Usage.CacheWrite1h), fit(s.Usage.WebSearches)},
	}
	if s.RequestID == "" {
		a.request = a.session
	}
	return a
}

// supersedes says whether of two copies a counts instead of b, which was found first: the main conversation's before a
// sidechain's, then the one with more output, then the one with more tokens, because earlier lines of an answer hold
// placeholders, then the original.
func (a *answer) supersedes(b *answer) bool {
	if a.side != b.side {
		return b.side
	}
	if a.tokens[1] != b.tokens[1] {
		return a.tokens[1] > b.tokens[1]
	}
	if x, y := a.usage().Total(), b.usage().Total(); x != y {
		return x > y
	}
	return b.copied && !a.copied
}

// add takes a copy of an answer. counts says that it counts, from now on instead of before, if that is not nil.
func (t *answers) add(a answer) (counts bool, before *answer) {
	found, exact := int32(0), false // the first that is the same answer
	for n := t.last[a.message]; n > 0; n = t.list[n-1].before {
		x := &t.list[n-1]
		if x.request == a.request || !exact && x.session == a.session && (x.side || a.side) {
			found, exact = n, x.request == a.request
		}
	}
	if found == 0 {
		a.before = t.last[a.message]
		t.list = append(t.list, a)
		t.last[a.message] = int32(len(t.list))
		return true, nil
	}
	x := &t.list[found-1]
	if !a.supersedes(x) {
		return false, nil
	}
	old := *x
	a.before = old.before
	*x = a
	return true, &old
}

// What is known of the numbers of an Item.
const (
	Complete = "complete"
	Reading  = "reading" // the server has not read all lines yet; the numbers are those of the lines it has read
	Unknown  = "unknown" // the session is only on disk, and too long to be read for a list; the numbers are 0
)

// countLimit is how long a transcript on disk may be for its messages and tokens to be counted in a list, in bytes.
const countLimit = 4 << 20

// moment is how many lines a server may be behind without a word: it reads them within a second.
const moment = 1000

// countsOf says whether a server has read a session's lines.
func countsOf(s *remote.Session) string {
	if behind := s.Lines - s.Summary.Lines; behind > moment || behind > 0 && s.Summary.Lines == 0 {
		return Reading
	}
	return Complete
}

// counted is what a session on disk and its agents' transcripts add up to.
type counted struct {
	session.Summary // of the session alone
	Lines           int64
	Tokens          int64 // of each answer once
	Cost            *float64
	Unpriced        int64 // tokens that are not in Cost
}

// count reads a session and its agents' transcripts.
func (l *Library) count(ctx context.Context, file File, agents []string) (c counted, err error) {
	answers := map[string]transcript.UsageSample{}
	c.Summary, c.Lines, err = fold(ctx, file.Path, answers, false)
	if err != nil {
		return c, err
	}
	for _, path := range agents {
		if _, _, err := fold(ctx, path, answers, true); err != nil {
			return c, err
		}
	}
	prices := l.Prices
	if prices == nil {
		prices = transcript.DefaultPrices()
	}
	var cost transcript.Cost
	for _, a := range answers {
		c.Tokens += a.Usage.Total()
		cost = cost.Plus(prices.Cost(a.Model, a.Usage, a.Usage.Context() > transcript.LongContext))
	}
	if cost.Known() && cost.Priced > 0 {
		c.Cost, c.Unpriced = &cost.USD, cost.Unpriced
	}
	return c, nil
}

// fold reads a transcript, and adds its answers to those that are known by key.
func fold(ctx context.Context, path string, answers map[string]transcript.UsageSample,
	agent bool) (sum session.Summary, lines int64, err error) {
	var s session.Fold
	err = eachLine(ctx, path, func(line []byte, whole bool) error {
		if !whole { // it is still being written
			return nil
		}
		for _, r := range transcript.Records(line) {
			for _, e := range s.Add(lines, r) {
				if e.Kind != session.UsageEvent {
					continue
				}
				u := *e.Usage
				u.Sidechain = u.Sidechain || agent
				if before, ok := answers[u.Key()]; !ok || u.Supersedes(before) {
					answers[u.Key()] = u
				}
			}
		}
		lines++
		return nil
	})
	return s.Summary(), lines, err
}
