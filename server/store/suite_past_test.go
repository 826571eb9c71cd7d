package store_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
)

// Prompts that only the prompt history has are found as such: not those of sessions that are stored, or were forgotten.
func (s suite) pastPrompts(t *testing.T) {
	st := s.open(t)
	line := func(i int64, session string) server.Line {
		return object(i, fmt.Sprintf(`{"display":"fix rounding in %s","timestamp":%d,"project":"/p","sessionId":%q}`, session, start.UnixMilli(), session))
	}
	put(t, st, batch("stored", object(0, says("prompt", "fix rounding in stored"))))
	put(t, st, batch("forgotten", object(0, says("prompt", "fix rounding in forgotten"))))
	h := batch("history~m", line(0, "swept"), line(1, "stored"), line(2, "forgotten"))
	put(t, st, h)
	for name, task := range lease(t, st) {
		d := server.Derivation{Texts: said(object(0, says("prompt", "fix rounding in "+name)), start)}
		if name == "history~m" {
			d.Texts = nil
			for _, l := range h.Lines {
				d.Texts = append(d.Texts, said(l, start)...)
			}
		}
		save(t, st, task, d)
	}
	kit.Try(st.Forget(t.Context(), all, "forgotten", 0, start)).Must(t)
	hits := kit.Try(st.Search(t.Context(), all, server.SearchQuery{Text: "rounding", Limit: 10})).Must(t)
	got := map[string]string{}
	for _, x := range hits.List {
		got[x.Kind+" of "+x.Session.SessionID] += x.Snippet
	}
	kit.Check(t, len(got) == 2 && strings.Contains(got["history of history~m"], "swept") && got["prompt of stored"] != "", "found: %q", got)
}

// pastPages: sessions that one prompt history has of one moment stand in one order, so that pages show each once.
func (s suite) pastPages(t *testing.T) {
	st := s.open(t)
	h := batch("history~m")
	for i := range int64(8) {
		h.Lines = append(h.Lines, object(i, fmt.Sprintf(`{"display":"fix rounding","timestamp":%d,"project":"/p","sessionId":"s-%d"}`,
			start.UnixMilli(), i)))
	}
	h.Head.EndLine = 8
	put(t, st, h)
	for _, task := range lease(t, st) {
		var d server.Derivation
		for _, l := range h.Lines {
			text := said(l, start)
			text[0].Turn = l.Index
			d.Texts = append(d.Texts, text...)
		}
		save(t, st, task, d)
	}
	got, next := map[string]bool{}, ""
	for range 8 {
		r := kit.Try(st.Rank(t.Context(), all, server.RankQuery{Query: server.ParseQuery("rounding", start.Add(time.Hour)),
			Limit: 1, Each: 1, After: next})).Must(t)
		got[r.List[0].Gone], next = true, r.Next
	}
	kit.Equal(t, "sessions on 8 pages", len(got), 8)
}
