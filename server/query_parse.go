package server

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ccship/ccship/internal/amount"
)

const (
	maxTokens = 64
	maxText   = 256 // characters of a word, a phrase or an expression
)

// ParseQuery reads a search. Days begin at midnight where now is.
func ParseQuery(text string, now time.Time) Query {
	p := queryParser{q: Query{Only: map[string][]string{}}, now: now}
	tokens := splitQuery(text)
	if len(tokens) > maxTokens {
		p.note("only the first %d words count", maxTokens)
		tokens = tokens[:maxTokens]
	}
	for i, t := range tokens {
		if t.plain("OR") && i > 0 && i+1 < len(tokens) && p.joins(tokens[i-1]) && p.joins(tokens[i+1]) {
			p.or = true
			continue
		}
		p.token(t)
		p.or = false
	}
	if len(p.q.Only) == 0 {
		p.q.Only = nil
	}
	return p.q
}

type queryParser struct {
	q   Query
	now time.Time
	or  bool // the next term is an alternative to the one before
}

func (p *queryParser) note(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(p.q.Notes, text) {
		p.q.Notes = append(p.q.Notes, text)
	}
}

// joins reports whether OR may stand next to a token.
func (p *queryParser) joins(t queryToken) bool { return t.name == "" && !t.not && !t.plain("OR") }

func (p *queryParser) token(t queryToken) {
	switch {
	case t.name != "":
		p.filter(t)
	case t.open:
		p.note("the quotation mark before %q is never closed: its words are searched", shortened(t.text))
		for _, w := range strings.Fields(t.text) {
			p.term(t.not, QueryTerm{Text: w})
		}
	case t.pattern:
		re, err := regexp.Compile("(?i)" + t.text)
		if err != nil || len(t.text) > maxText {
			p.note("/%s/ is no regular expression that can be searched: its words are", shortened(t.text))
			p.words(t.not, t.text)
			return
		}
		p.term(t.not, QueryTerm{Text: t.text, Regexp: re})
	case t.quoted:
		p.term(t.not, QueryTerm{Text: t.text, Exact: true})
	default:
		if t.plain("OR") {
			p.note("OR stands between two words: here it is searched as a word")
		}
		p.term(t.not, QueryTerm{Text: t.text})
	}
}

// words adds what is letters and digits in a text that could not be read as something else.
func (p *queryParser) words(not bool, text string) {
	for _, w := range wordsIn(text) {
		p.term(not, QueryTerm{Text: w})
		p.or = false
	}
}

func (p *queryParser) term(not bool, t QueryTerm) {
	if r := []rune(t.Text); len(r) > maxText && t.Regexp == nil {
		t.Text = string(r[:maxText])
	}
	switch {
	case strings.TrimSpace(t.Text) == "":
	case not:
		p.q.Not = append(p.q.Not, t)
	case p.or:
		last := &p.q.Clauses[len(p.q.Clauses)-1]
		*last = append(*last, t)
	default:
		p.q.Clauses = append(p.q.Clauses, QueryClause{t})
	}
}

// filter reads a name with its value.
func (p *queryParser) filter(t queryToken) {
	i := slices.IndexFunc(QueryFilters(), func(f QueryFilter) bool { return f.Name == t.name })
	if i < 0 {
		names := make([]string, 0, len(QueryFilters()))
		for _, f := range QueryFilters() {
			names = append(names, f.Name)
		}
		p.note("%s: is no filter: %q is searched%s", t.name, shortened(t.raw), meant(t.name, names, "%s:"))
		p.words(t.not, t.raw)
		return
	}
	if t.not {
		p.note("a filter cannot be excluded: %q is searched", shortened(t.raw))
		p.words(false, t.raw)
		return
	}
	switch f := QueryFilters()[i]; f.Name {
	case "before", "after":
		at, err := queryMoment(t.text, p.now)
		if err != nil {
			p.note("%q is no time: write 2026-11-01, 2026-11, 36h or 7d", shortened(t.text))
			p.words(false, t.text)
			return
		}
		if f.Name == "before" {
			p.q.Before = at
		} else {
			p.q.After = at
		}
	default:
		p.values(f, t)
	}
}

// values keeps a filter's values.
func (p *queryParser) values(f QueryFilter, t queryToken) {
	for _, v := range t.values() {
		if f.Values != nil && !slices.Contains(f.Values, v) {
			hint := cmp.Or(meant(v, f.Values, f.Name+":%s"), "; there are "+strings.Join(f.Values, ", "))
			p.note("%s: has no %q, which is searched%s", f.Name, shortened(v), hint)
			p.words(false, v)
			continue
		}
		if !slices.Contains(p.q.Only[f.Name], v) {
			p.q.Only[f.Name] = append(p.q.Only[f.Name], v)
		}
	}
}

// queryMoment returns when a day, a month or a year begins, or so long ago.
func queryMoment(text string, now time.Time) (time.Time, error) {
	for _, layout := range []string{time.DateOnly, "2006-01", "2006", "2006-01-02T15:04", time.RFC3339Nano} {
		if t, err := time.ParseInLocation(layout, text, now.Location()); err == nil {
			return t, nil
		}
	}
	midnight := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, now.Location())
	switch strings.ToLower(text) {
	case "today":
		return midnight, nil
	case "yesterday":
		return midnight.AddDate(0, 0, -1), nil
	}
	if n := len(text) - 1; n > 0 {
		count, err := strconv.ParseFloat(text[:n], 64)
		unit := map[byte]time.Duration{'h': time.Hour, 'd': 24 * time.Hour, 'w': 7 * 24 * time.Hour}[text[n]]
		if err == nil && unit > 0 && count >= 0 && count < 10000 {
			return now.Add(-time.Duration(count * float64(unit))), nil
		}
	}
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	return time.Time{}, fmt.Errorf("invalid time %q", text)
}

// Unknown notes that a filter has a value which is none of those that are known.
func (q *Query) Unknown(filter, value string, known []string) {
	q.Notes = append(q.Notes, fmt.Sprintf("there is no %s %q%s", filter, shortened(value),
		meant(value, known, filter+":%s")))
}

// meant asks whether the nearest of some words was meant; "" when none is near.
func meant(word string, known []string, format string) string {
	if near := amount.Nearest(word, known); near != "" {
		return "; did you mean " + fmt.Sprintf(format, near) + "?"
	}
	return ""
}

func shortened(text string) string {
	if r := []rune(text); len(r) > 40 {
		return string(r[:39]) + "…"
	}
	return text
}
