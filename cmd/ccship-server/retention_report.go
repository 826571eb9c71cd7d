package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/internal/amount"
	"github.com/ccship/ccship/server"
)

// users are names by number.
type users map[int64]string

// count is a server.RetentionCount for programs.
type count struct {
	Rule        int64  `json:"rule"`
	Says        string `json:"says"`
	User        string `json:"user"`
	Sessions    int64  `json:"sessions"`
	Generations int64  `json:"generations"`
	Lines       int64  `json:"lines"`
	Bytes       int64  `json:"bytes"`
	Files       int64  `json:"files"`
}

// kept is a server.KeptCount for programs.
type kept struct {
	Rule     int64  `json:"rule"`
	Why      string `json:"why"`
	Sessions int64  `json:"sessions"`
}

// retentionReport is what was done, or would be.
type retentionReport struct {
	Schema  int     `json:"schema_version"`
	Applied bool    `json:"applied"`
	Rules   int     `json:"rules"`
	Counts  []count `json:"counts"`
	Kept    []kept  `json:"kept"`
}

// newRetentionReport returns a report of rules.
func newRetentionReport(rules []server.RetentionRule, done server.RetentionReport, who users,
	applied bool) *retentionReport {
	says := map[int64]string{}
	for i := range rules {
		says[rules[i].ID] = rules[i].Says()
	}
	r := &retentionReport{Schema: schemaVersion, Applied: applied, Rules: len(rules), Counts: []count{},
		Kept: []kept{}}
	for _, n := range done.Counts {
		r.Counts = append(r.Counts, count{n.Rule, says[n.Rule], who[n.User], n.Sessions, n.Generations, n.Lines, n.Bytes,
			n.Files})
	}
	for _, k := range done.Kept {
		r.Kept = append(r.Kept, kept(k))
	}
	slices.SortStableFunc(r.Counts, func(a, b count) int { return cmp.Compare(a.Rule, b.Rule) })
	return r
}

// Print writes a report for people: what counts to out, what to do next to words.
func (r *retentionReport) Print(out, words io.Writer) error {
	if len(r.Counts) > 0 {
		t := term.NewTable(out, "RULE", "USER", "SESSIONS", "GENERATIONS", "LINES", "FILES", "BYTES", "THE RULE SAYS")
		for _, n := range r.Counts {
			t.Row(n.Rule, n.User, n.Sessions, n.Generations, n.Lines, n.Files, amount.Size(n.Bytes), n.Says)
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	for _, k := range r.Kept {
		term.Printf(out, "rule %d keeps %s: %s\n", k.Rule, amount.Counted(k.Sessions, "session", "sessions"), k.Why)
	}
	next := "nothing was done; add --yes to apply the rules"
	switch {
	case r.Rules == 0:
		next = "everything is kept for ever: there are no rules; see ccship-server retention add --help"
	case r.Applied:
		next = "the rules are applied; ccship-server vacuum gives the space back to the disk"
	case len(r.Counts) == 0:
		next = "the rules take nothing now"
	}
	return term.Printf(words, "%s\n", next)
}

// log writes what was applied to which sessions.
func log(out io.Writer, list []server.RetentionEntry, who users) error {
	t := term.NewTable(out, "AT", "BY", "USER", "SESSION", "GENERATIONS", "LINES", "FILES", "BYTES", "RULE")
	for _, e := range list {
		t.Row(e.At.Format(time.RFC3339), e.By, who[e.User], e.SessionID, e.Generations, e.Lines, e.Files,
			amount.Size(e.Bytes), fmt.Sprintf("%d: %s", e.Rule, e.Says))
	}
	return t.Flush()
}

// logDocument returns what Log writes, for programs.
func logDocument(list []server.RetentionEntry, who users) any {
	type entry struct {
		At      time.Time `json:"at"`
		Run     time.Time `json:"run"`
		By      string    `json:"by"`
		Machine string    `json:"machine"`
		Session string    `json:"session_id"`
		Action  string    `json:"action"`
		count
	}
	all := []entry{}
	for _, e := range list {
		all = append(all, entry{e.At, e.Run, e.By, e.Machine, e.SessionID, e.Action,
			count{e.Rule, e.Says, who[e.User], 1, e.Generations, e.Lines, e.Bytes, e.Files}})
	}
	return struct {
		Schema int     `json:"schema_version"`
		Log    []entry `json:"log"`
	}{schemaVersion, all}
}

// rules writes the rules in force.
func rules(out io.Writer, list []server.RetentionRule, who users) error {
	t := term.NewTable(out, "RULE", "USER", "SINCE", "BY", "SAYS")
	for i := range list {
		r := &list[i]
		t.Row(r.ID, who.all(r.User), r.At.Format(time.RFC3339), r.By, r.Says())
	}
	return t.Flush()
}

// holds writes the holds in force.
func holds(out io.Writer, list []server.Hold, who users) error {
	t := term.NewTable(out, "HOLD", "SESSION", "USER", "PROJECT", "SINCE", "BY", "WHY")
	for _, h := range list {
		t.Row(h.ID, cmp.Or(h.Session, "all"), who.all(h.User), cmp.Or(h.Project, "all"),
			h.At.Format(time.RFC3339), h.By, h.Why)
	}
	return t.Flush()
}

// all returns a user's name; "all" where none is meant.
func (u users) all(id int64) string {
	if id == 0 {
		return "all"
	}
	return u[id]
}
