package store_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
)

// Copies of a session are one session in a listing, with its cost, and in a search.
func (s suite) copies(t *testing.T) {
	st := s.open(t)
	line := object(0, says("answer", "once and only"))
	for i, name := range []string{"x~2", "x", "x", "fork", "x 3"} { // a copy may come first
		put(t, st, batch(name, line), func(b *server.Batch) { b.Head.Machine = []string{"m", "m", "n", "m", "m"}[i] })
		origin := "x/1"
		if name == "fork" {
			origin = "fork/1"
		}
		d := server.Derivation{Texts: said(line, start), Summary: server.Summary{
			Origin: origin, Copy: name != "x" && name != "fork", Lines: 1, Started: start, Ended: start.Add(time.Minute),
		}}
		if name != "fork" {
			d.Answers = []server.Answer{{Key: "a", Model: "m", Time: start, Tokens: server.Tokens{Output: 7}}}
		}
		for _, task := range lease(t, st) {
			save(t, st, task, d)
		}
	}
	listed := func(q server.SessionQuery) (out []string) {
		t.Helper()
		q.Limit = 100
		found := kit.Try(st.Find(t.Context(), all, q)).Must(t)
		for _, x := range found.List {
			tokens := int64(0)
			for _, u := range x.Usage {
				tokens += u.Tokens.Output
			}
			out = append(out, fmt.Sprint(x.SessionID, "@", x.Machine, " ", tokens))
		}
		kit.Gives(t, fmt.Sprintf("counted, %d listed", len(out)), int64(len(out)))(st.Count(t.Context(), all, q, 1000))
		slices.Sort(out)
		return out
	}
	same := func(what string, got []string, want ...string) {
		t.Helper()
		kit.Equal(t, what, got, want)
	}
	other := "n"
	same("all", listed(server.SessionQuery{}), "fork@m 0", "x@m 7")
	same("of the other machine", listed(server.SessionQuery{Machine: &other}), "x@n 0")
	kit.Equal(t, "streams", len(listed(server.SessionQuery{Page: server.Page{}, Agents: true})), 5)
	same("search", searched(t, st, all, server.SearchQuery{Text: "once only"}), "fork", "x")
	var pages []string
	for after := ""; ; {
		hits := kit.Try(st.Search(t.Context(), all, server.SearchQuery{Text: "once only", Limit: 1, After: after})).Must(t)
		for _, h := range hits.List {
			pages = append(pages, h.Session.SessionID)
		}
		if after = hits.Next; after == "" {
			break
		}
	}
	slices.Sort(pages)
	same("search by pages", pages, "fork", "x")

	for _, name := range []string{"x~2", "x 3"} {
		kit.Gives(t, name+" is a fork", "")(openSession(t, st, name).CopiedFrom(t.Context()))
	}

	// One that goes on elsewhere has more, and takes the place of what it continues, with its cost.
	put(t, st, batch("x", line, object(1, says("answer", "later"))), func(b *server.Batch) { b.Head.Machine = "n" })
	for _, task := range lease(t, st) {
		save(t, st, task, server.Derivation{Texts: said(line, start), Summary: server.Summary{
			Origin: "x/1", Lines: 2, Started: start, Ended: start.Add(time.Hour),
		}})
	}
	same("continued", listed(server.SessionQuery{}), "fork@m 0", "x@n 7")
}
