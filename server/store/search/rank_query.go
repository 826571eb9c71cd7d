package search

import (
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store/sqlstore"
)

const (
	minTime = math.MinInt64
	maxTime = math.MaxInt64
	// maxTerms is how many words a search looks for.
	maxTerms = 64
)

// wanted is what a query wants found.
type wanted struct {
	clauses   []clause
	not       []clause
	terms     []term // of all words, each once
	strict    bool   // some clause has a phrase or an expression
	linesOnly bool   // only lines are found: calls of a tool, what touched a file, errors, commands
	fields    uint8  // in which words count
	inClauses uint64 // terms that are not excluded
	kinds     []string
}

// clause is alternatives.
type clause struct {
	text string
	alts []alternative
}

// alternative is a word with its terms, or a text that must be found as it is.
type alternative struct {
	terms  []int    // of wanted.terms, all of them
	exact  string   // in its searchable form
	word   string   // the same of a word with terms: parts of words are found too where no word is
	stems  []string // what every form of a word's parts begins with
	regexp *regexp.Regexp
}

func (a *alternative) fuzzy() bool { return len(a.terms) > 0 }

func (c *clause) fuzzy() bool {
	return !slices.ContainsFunc(c.alts, func(a alternative) bool { return !a.fuzzy() })
}

func (c *clause) hasWord() bool {
	return slices.ContainsFunc(c.alts, func(a alternative) bool { return a.fuzzy() })
}

// readQuery reads a query.
func readQuery(q server.Query) wanted {
	l := wanted{fields: math.MaxUint8, kinds: q.Only["kind"]}
	for _, c := range q.Clauses {
		if x := l.clause(c); len(x.alts) > 0 {
			l.clauses = append(l.clauses, x)
			l.strict = l.strict || !x.fuzzy() && !c.Fuzzy()
		}
	}
	l.inClauses = 1<<len(l.terms) - 1
	for _, t := range q.Not {
		if x := l.clause(server.QueryClause{t}); len(x.alts) > 0 {
			l.not = append(l.not, x)
		}
	}
	l.linesOnly = len(q.Only["tool"])+len(q.Only["file"]) > 0 ||
		slices.ContainsFunc(l.kinds, func(k string) bool { return slices.Contains(server.PlaceKinds(), k) })
	if len(l.kinds) > 0 {
		l.fields = 0
		for _, k := range l.kinds {
			if f, ok := fieldOf(k); ok {
				l.fields |= 1 << f
				if f == inAnswer || f == inPrompt {
					l.fields |= 1 << (f + 1)
				}
			}
		}
	}
	return l
}

func (l *wanted) clause(c server.QueryClause) clause {
	x := clause{text: c[0].Text}
	for _, t := range c {
		a := alternative{regexp: t.Regexp}
		if !t.Exact && t.Regexp == nil {
			a.word = sqlstore.FoldText(t.Text)
			eachPart(t.Text, func(w []byte, x term) {
				a.terms = append(a.terms, l.term(x))
				a.stems = append(a.stems, strings.TrimSuffix(string(stem(slices.Clone(w))), "y"))
			})
		}
		if a.regexp == nil && len(a.terms) == 0 {
			a.exact = sqlstore.FoldText(t.Text)
		}
		if a.regexp != nil || a.fuzzy() || a.exact != "" {
			x.alts = append(x.alts, a)
		}
	}
	return x
}

// eachPart calls yield with the terms of a word: of a name in camel case its parts, without the whole.
func eachPart(word string, yield func([]byte, term)) {
	var before string
	eachWord(word, func(w []byte, t term) {
		if s := string(w); len(before) < len(s) || !strings.HasSuffix(before, s) {
			before += s
			yield(w, t)
		}
	})
}

func (l *wanted) term(t term) int {
	i := slices.Index(l.terms, t)
	if i < 0 && len(l.terms) < maxTerms {
		l.terms = append(l.terms, t)
		i = len(l.terms) - 1
	}
	return max(i, 0)
}

// has returns which terms a text has. It calls each for every word that is one: with the number of words before it, the
// term, and the word as it is written.
func (l *wanted) has(text string, each func(n, i int, word []byte)) (mask uint64) {
	n := 0
	eachWord(text, func(w []byte, t term) {
		if i := slices.Index(l.terms, t); i >= 0 {
			mask |= 1 << i
			each(n, i, w)
		}
		n++
	})
	return mask
}

// in reports whether a text has an alternative; folded is its searchable form, mask its terms.
func (a *alternative) in(text, folded string, mask uint64) bool {
	switch {
	case a.regexp != nil:
		return a.regexp.MatchString(text)
	case a.exact != "":
		return strings.Contains(folded, a.exact)
	}
	for _, t := range a.terms {
		if mask>>t&1 == 0 {
			return false
		}
	}
	return true
}
