package api

import (
	"cmp"
	"math"
	"net/http"
	"slices"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/derive"
	"github.com/ccship/ccship/transcript"
)

// costAnswer is what tokens cost. CostUSD is null when no price is known for any of them.
type costAnswer struct {
	CostUSD  *float64 `json:"cost_usd"`
	Unpriced int64    `json:"unpriced_tokens"` // not in cost_usd
}

func answerCost(c transcript.Cost) costAnswer {
	if !c.Known() {
		return costAnswer{nil, c.Unpriced}
	}
	usd := math.Round(c.USD*1e6) / 1e6
	return costAnswer{&usd, c.Unpriced}
}

// usageAnswer is one sum. Only columns that it is grouped by are present.
type usageAnswer struct {
	Day         *string `json:"day,omitempty"`
	Hour        *int    `json:"hour,omitempty"`
	ProjectHash *string `json:"project_hash,omitempty"`
	Project     *string `json:"project,omitempty"`
	Model       *string `json:"model,omitempty"`
	Machine     *string `json:"machine,omitempty"`
	User        *string `json:"user,omitempty"`
	SessionID   *string `json:"session_id,omitempty"`
	server.Tokens
	costAnswer
}

// answerUsage makes the response of a sum grouped by certain columns.
func answerUsage(x *sum, by []string, names namesOf) usageAnswer {
	row := x.row
	a := usageAnswer{Tokens: row.Tokens, costAnswer: answerCost(x.cost)}
	for _, b := range by {
		switch b {
		case "day":
			a.Day = &row.Day
		case "hour":
			a.Hour = &row.Hour
		case "project":
			a.ProjectHash, a.Project = &row.Project, &row.Name
		case "model":
			a.Model = &row.Model
		case "machine":
			a.Machine = &row.Machine
		case "user":
			name := names[row.User]
			a.User = &name
		case "session":
			a.SessionID = &row.Session
		}
	}
	return a
}

// usage is GET /api/usage?by&since&until&zone&project&machine&user&model&session&agents: tokens, each answer counted
// once, and what they cost.
func (s *Server) usage(r *http.Request, who server.Key) (any, error) {
	f := s.filter(r)
	by := f.List("by", "day", "hour", "project", "model", "machine", "user", "session")
	q := server.UsageQuery{
		By: by, Since: f.Moment("since"), Until: f.Moment("until"), Zone: f.Zone(), Project: f.Text("project"),
		Machine: f.Machine(), Model: f.Text("model"), Session: f.Text("session"),
		Agents: f.Flag("agents", true),
	}
	if f.Err != nil {
		return nil, f.Err
	}
	var err error
	if q.User, err = s.userOf(r, who, f, q.Session); err != nil {
		return nil, err
	}
	// Prices are by model and context, whatever the rows are grouped by.
	q.By = append(slices.Clone(by), "long")
	if !slices.Contains(by, "model") {
		q.By = append(q.By, "model")
	}
	projects, err := s.projects(r, who, &q.Project)
	if err != nil {
		return nil, err
	}
	rows, err := s.store.search.Usage(r.Context(), server.ScopeOf(who.User), q)
	if err != nil {
		return nil, err
	}
	for i := range rows {
		rows[i].Name = cmp.Or(projects.Name(rows[i].Project), rows[i].Name)
	}
	names, err := ownersOf(r, s.store.users, rows, func(x *server.UsageRow) int64 { return x.User })
	if err != nil {
		return nil, err
	}
	a := struct {
		Rows   []usageAnswer `json:"rows"`
		Total  usageAnswer   `json:"total"`
		Prices string        `json:"prices_as_of"`
	}{Rows: []usageAnswer{}, Prices: s.Prices.AsOf}
	var all sum
	for _, part := range s.join(rows, by) {
		all.add(part.row.Tokens, part.cost)
		a.Rows = append(a.Rows, answerUsage(part, by, names))
	}
	a.Total = answerUsage(&all, nil, names)
	return a, nil
}

// sum is a row with the cost of the models in it.
type sum struct {
	row  server.UsageRow
	cost transcript.Cost
}

func (s *sum) add(t server.Tokens, c transcript.Cost) {
	s.row.Tokens = s.row.Tokens.Add(t)
	s.cost = s.cost.Plus(c)
}

// join sums rows that differ only in what by does not name, in the order of the first of each.
func (s *Server) join(rows []server.UsageRow, by []string) []*sum {
	var out []*sum
	at := map[server.UsageRow]*sum{}
	for _, row := range rows {
		key := row
		key.Tokens, key.Long = server.Tokens{}, false
		if !slices.Contains(by, "model") {
			key.Model = ""
		}
		x := at[key]
		if x == nil {
			x = &sum{row: key}
			at[key] = x
			out = append(out, x)
		}
		x.add(row.Tokens, derive.Cost(s.Prices, row))
	}
	return out
}
