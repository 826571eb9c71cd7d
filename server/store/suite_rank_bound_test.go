package store_test

import (
	"fmt"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store/search"
)

// Of more turns that have a frequent word than a search reads, it reads those that match best: a session with a rarer
// word is first, and what is chosen or left out is so among all of them.
func (s suite) rankBound(t *testing.T) {
	st := s.open(t)
	talk(t, st, 0, "small-old", 1, "prompt:return the zeppelin", "answer:it returned", "prompt:return the wombat")
	for i := range 4 {
		var lines []string
		for k := range search.MostTurns / 3 {
			lines = append(lines, fmt.Sprintf("prompt:return the cart number %d", k))
		}
		talk(t, st, 0, fmt.Sprint("large-", i), 2+i, lines...)
	}
	for text, want := range map[string]struct {
		first string
		all   bool
	}{
		"cart":                         {"large-3", false},
		"return":                       {"small-old", false}, // twice
		"return zeppelin":              {"small-old", false},
		"return zeppelin -wombat":      {"large-3", false},
		"return project:small":         {"small-old", true},
		"return session:small-old":     {"small-old", true},
		"zeppelin":                     {"small-old", true},
		`"return the zeppelin" return`: {"small-old", true},
	} {
		r := kit.Try(st.Rank(t.Context(), all, server.RankQuery{Query: server.ParseQuery(text, start), Limit: 1, Facets: true})).Must(t)
		kit.Check(t, r.Turns >= 1 && r.Turns <= search.MostTurns && r.More != want.all && (!want.all || r.Total == 1),
			"%s: %d turns read, more %v, %d sessions", text, r.Turns, r.More, r.Total)
		kit.Check(t, len(r.List) == 1 && r.List[0].SessionID == want.first, "%s: %+v, want %s", text, r.List, want.first)
	}
}
