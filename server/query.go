package server

import (
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
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

// WithFilter returns a search text with a filter added, once.
func WithFilter(text, name, value string) string {
	if slices.ContainsFunc(splitQuery(text), func(t queryToken) bool {
		return t.name == name && slices.Contains(t.values(),
			value)
	}) {
		return text
	}
	return strings.TrimSpace(strings.TrimSpace(text) + " " + FormatFilter(name, value))
}

// WithoutFilter returns a search text without a filter; with value "" it is one without any of that name.
func WithoutFilter(text, name, value string) string {
	var out []string
	for _, t := range splitQuery(text) {
		if t.name == name && !t.not {
			rest := slices.DeleteFunc(t.values(), func(v string) bool { return value == "" || v == value })
			if len(rest) == 0 {
				continue
			}
			t.raw = FormatFilter(name, strings.Join(rest, ","))
		}
		out = append(out, t.raw)
	}
	return strings.Join(out, " ")
}

// FormatFilter writes a filter as a search text has it.
func FormatFilter(name, value string) string {
	value = strings.ReplaceAll(value, `"`, "")
	if !startsValue(value) || strings.IndexFunc(value, unicode.IsSpace) >= 0 {
		value = `"` + value + `"`
	}
	return name + ":" + value
}

// queryToken is a part of a search text.
type queryToken struct {
	raw     string
	not     bool   // after -
	name    string // before a colon, in lower case; "": no filter
	text    string // without quotes, slashes and name
	quoted  bool
	open    bool // the quotation mark is not closed
	pattern bool
}

func (t queryToken) plain(word string) bool { return t.raw == word }

// quotes are what phones and editors make of a quotation mark, each by its bytes.
var quotes = strings.NewReplacer("“", `"`, "”", `"`, "„", `"`)

// splitQuery cuts a search text into its parts.
func splitQuery(text string) (out []queryToken) {
	text = quotes.Replace(text)
	for at := 0; at < len(text); {
		if rest := strings.TrimLeftFunc(text[at:], unicode.IsSpace); len(rest) < len(text)-at {
			at = len(text) - len(rest)
			continue
		}
		var t queryToken
		n := t.read(text[at:])
		t.raw = text[at : at+n]
		at += n
		out = append(out, t)
	}
	return out
}

// read reads a token from the beginning of a text: how many bytes it has.
func (t *queryToken) read(text string) int {
	n := 0
	if len(text) > 1 && text[0] == '-' && text[1] != '-' && !unicode.IsSpace(rune(text[1])) { // --flag is a word
		t.not, n = true, 1
	}
	if name, rest, ok := strings.Cut(text[n:], ":"); ok && isFilterName(name) && startsValue(rest) {
		t.name = strings.ToLower(name)
		n += len(name) + 1
		if text[n] == '"' {
			return n + t.phrase(text[n:])
		}
		end := wordEnd(text[n:])
		t.text = text[n : n+end]
		return n + end
	}
	switch {
	case text[n] == '"':
		return n + t.phrase(text[n:])
	case text[n] == '/' && t.expression(text[n:]) > 0:
		return n + t.expression(text[n:])
	}
	end := wordEnd(text[n:])
	t.text = text[n : n+end]
	return n + end
}

// phrase reads a text in quotation marks.
func (t *queryToken) phrase(text string) int {
	inner, _, closed := strings.Cut(text[1:], `"`)
	t.text, t.quoted, t.open = inner, closed, !closed
	if !closed {
		return len(text)
	}
	return len(inner) + 2
}

// expression reads a text between slashes: the second one ends a word, as it does not in a path. 0: there is none.
func (t *queryToken) expression(text string) int {
	for i := 1; i < len(text); i++ {
		switch {
		case text[i] == '\\':
			i++
		case text[i] == '/' && i > 1 && (i+1 == len(text) || unicode.IsSpace(rune(text[i+1]))):
			t.text, t.pattern = strings.ReplaceAll(text[1:i], `\/`, "/"), true
			return i + 1
		case text[i] == '/':
			return 0
		}
	}
	return 0
}

// wordEnd returns where a word ends: before white space or a quotation mark.
func wordEnd(text string) int {
	end := strings.IndexFunc(text, func(r rune) bool { return unicode.IsSpace(r) || r == '"' })
	if end < 0 {
		return len(text)
	}
	return max(end, 1)
}

// isFilterName reports whether a text before a colon is meant as a filter's name.
func isFilterName(name string) bool {
	return len(name) > 1 && strings.IndexFunc(name, func(r rune) bool { return !unicode.IsLetter(r) }) < 0
}

// startsValue reports whether a text after a colon begins with a value: neither space nor what follows in addresses and
// names of programs.
func startsValue(rest string) bool {
	return rest != "" && !strings.ContainsAny(rest[:1], " \t\r\n:/\\")
}

// wordsIn returns the runs of letters and digits of a text.
func wordsIn(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// values returns those of a filter: separated by commas where it takes only some.
func (t queryToken) values() []string {
	for _, f := range QueryFilters() {
		if f.Name == t.name && f.Values != nil {
			return strings.Split(strings.ToLower(t.text), ",")
		}
	}
	return []string{t.text}
}
