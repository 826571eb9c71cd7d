package server

import (
	"regexp"
	"time"
)

// Query is a parsed search. Its language is that of every search box: on the command line, in the terminal's screen, in
// the viewer and in what Claude asks.
//
//	rounding cart              words, in any of their forms
//	"off by one"               exactly this
//	/retr(y|ies) \d+/          a regular expression
//	cart OR basket, -docs      either of them; none with it
//	project:shop after:7d      filters, see QueryFilters; several of one name are alternatives
//
// What cannot be parsed is searched as words, and Notes say so.
type Query struct {
	Clauses []QueryClause       // a session should have each of them
	Not     []QueryTerm         // a session has none of them
	Only    map[string][]string // by filter: any of the values
	After   time.Time           // at or after
	Before  time.Time           // before
	Notes   []string            // what was not understood, in words
}

// QueryClause is alternatives: one of them is enough.
type QueryClause []QueryTerm

// QueryTerm is a word, a phrase or a regular expression.
type QueryTerm struct {
	Text   string
	Exact  bool           // Text is a phrase: case and kinds of space do not matter, anything else does
	Regexp *regexp.Regexp // ignores case; nil: none
}

// Empty reports whether nothing is looked for or filtered by.
func (q *Query) Empty() bool {
	return len(q.Clauses) == 0 && len(q.Not) == 0 && len(q.Only) == 0 && q.After.IsZero() && q.Before.IsZero()
}

// Words returns the texts of the clauses that are only words, in order, each clause by its first.
func (q *Query) Words() (out []string) {
	for _, c := range q.Clauses {
		if c.Fuzzy() {
			out = append(out, c[0].Text)
		}
	}
	return out
}

// Fuzzy reports whether every alternative is a word.
func (c QueryClause) Fuzzy() bool {
	for _, t := range c {
		if t.Exact || t.Regexp != nil {
			return false
		}
	}
	return true
}

// QueryFilter is a name that may stand before a colon.
type QueryFilter struct {
	Name, Help string
	Values     []string // all that it takes; nil: any
}

// QueryFilters returns all filters, in the order in which help shows them.
func QueryFilters() []QueryFilter {
	return []QueryFilter{
		{"project", "the project's name", nil},
		{"machine", "the machine's name", nil},
		{"user", "whose sessions", nil},
		{"session", "one session, by its id", nil},
		{"file", "a file that was read or changed, by its path or the end of it", nil},
		{"tool", "a tool that was called; * at the end: any that begins so", nil},
		{"kind", "what it is that was said or done", QueryKinds()},
		{"branch", "the Git branch", nil},
		{"model", "the model that answered", nil},
		{"before", "earlier than a day, a month, or how long ago: 2026-11-01, 2026-11, 7d", nil},
		{"after", "not earlier than that", nil},
		{"is", "sessions with errors, with a star, with lines that a rewind lost, or that run now", SessionStates()},
	}
}

// QueryKinds returns the values of the filter "kind": what was said, and what was done besides.
func QueryKinds() []string { return append(TextKinds(), "edit", "read", "command", "error") }

// SessionStates returns the values of the filter "is".
func SessionStates() []string { return []string{"error", "starred", "lost", "running"} }
