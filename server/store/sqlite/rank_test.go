package sqlite

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store/search"
)

// TestRankBound: a ranking that may read as many turns as have words answers what one without a bound does, and one that
// may read few reads no more, and finds a rare word's session first.
func TestRankBound(t *testing.T) {
	s := openTexts(t)
	random := rand.New(rand.NewPCG(7, 7))
	words := strings.Fields("return error cart price round fix the file parseRequest test")
	n := 0
	for i := range 6 {
		var texts []string
		for range 8 + random.IntN(8) {
			var text []string
			for range 3 + random.IntN(6) {
				text = append(text, words[min(random.IntN(len(words)), random.IntN(len(words)))])
			}
			texts = append(texts, strings.Join(text, " "))
		}
		say(t, s, int64(i%2), fmt.Sprint("s", i), texts...)
		n += len(texts)
	}
	say(t, s, 0, "rare", "return the zeppelin")
	ask := func(text string, turns int) server.Ranked {
		x := search.NewWithin(of(s), s.lines, &s.Finder, search.Bounds{Bytes: 24 << 20, Turns: turns, Segments: 56 << 20})
		r := kit.Try(x.Rank(t.Context(), everyone, server.RankQuery{Query: server.ParseQuery(text, said), Limit: 5, Each: 3, Facets: true})).Must(t)
		return r
	}
	for _, when := range []string{"before segments are merged", "after"} {
		for _, text := range []string{"return", "return error", "round -test", "parse cart OR price", `"the file" fix`, "absent return",
			"return kind:prompt", "project:none error"} {
			if got, want := ask(text, n+1), ask(text, 1<<40); !reflect.DeepEqual(got, want) || got.More {
				t.Errorf("%s, %s: %+v, without a bound %+v", when, text, got, want)
			}
			if got := ask(text, 5); got.Turns > 5 {
				t.Errorf("%s, %s: %d turns are read", when, text, got.Turns)
			}
			got := ask(text+" zeppelin", 5)
			kit.Check(t, strings.ContainsAny(text, `":`) || len(got.List) != 0 && got.List[0].SessionID == "rare",
				"%s, %s: a rare word's session is not first: %+v", when, text, got.List)
		}
		for _, owner := range []int64{0, 1} {
			kit.Must(t, index(s, of(s)).Merge(t.Context(), owner))
		}
	}
}

// TestRankBoundSegments: a ranking that may read few bytes of segments reads the newest, however many small ones there are.
func TestRankBoundSegments(t *testing.T) {
	s := openTexts(t)
	say(t, s, 0, "old", "the wombat")
	texts := slices.Repeat([]string{"please return"}, 80)
	texts = append(texts, "the quokka")
	say(t, s, 0, "new", texts...)
	x := search.NewWithin(of(s), s.lines, &s.Finder, search.Bounds{Bytes: 24 << 20, Turns: 100, Segments: 1000})
	for text, turns := range map[string]int{"quokka": 1, "return": 1, "wombat": 0} {
		r := kit.Try(x.Rank(t.Context(), everyone, server.RankQuery{Query: server.ParseQuery(text, said), Limit: 5, Each: 3})).Must(t)
		kit.Check(t, r.Turns == turns && r.More && len(r.List) == 1,
			"%s: %d turns of %d sessions, more %v, want %d of one", text, r.Turns, len(r.List), r.More, turns)
	}
}

// TestRankBoundSessions: with a bound, a ranking finds the same sessions for what must not, or must, be in them: also in
// segments that are older than enough turns, and in the transcript of an agent.
func TestRankBoundSessions(t *testing.T) {
	s := openTexts(t)
	say(t, s, 0, "old", slices.Concat([]string{"the wombat"}, slices.Repeat([]string{"please return"}, 90))...)
	say(t, s, 0, "plain", slices.Repeat([]string{"please return"}, 91)...)
	say(t, s, 0, "main", "the cart rounds")
	say(t, s, 0, "lone", "the cart rounds")
	for i := range int64(8) {
		l := server.Line{Index: i, Raw: []byte(`{"type":"user","message":{"role":"user","content":"a quokka and a zeppelin"}}`)}
		kit.Must(t, s.Put(t.Context(), &server.Batch{Received: said, Lines: []server.Line{l}, Head: server.Head{
			SessionID: "agent", Parent: "main", Machine: "m", Epoch: "e", EndLine: i + 1}}))
		tasks := kit.Try(s.Lagging(t.Context(), 1)).Must(t)
		kit.Must(t, s.SaveDerived(t.Context(), derivationOf(t, s, tasks[0], l)))
	}
	for text, want := range map[string]string{
		"return -wombat":           "plain",
		`"the cart" -quokka`:       "lone",
		`"the cart" zeppelin`:      "main, lone without zeppelin",
		`"the cart" zeppelin -bar`: "main, lone without zeppelin",
	} {
		for _, turns := range []int{1 << 40, 5} {
			x := search.NewWithin(of(s), s.lines, &s.Finder, search.Bounds{Bytes: 24 << 20, Turns: turns, Segments: 56 << 20})
			r := kit.Try(x.Rank(t.Context(), everyone, server.RankQuery{Query: server.ParseQuery(text, said), Limit: 9, Each: 3})).Must(t)
			var got []string
			for _, x := range r.List {
				got = append(got, strings.TrimSpace(fmt.Sprint(x.SessionID, " ", strings.TrimSpace("without "+strings.Join(x.Missing, " ")))))
			}
			all := strings.ReplaceAll(strings.Join(got, ", ")+",", " without,", ",")
			kit.Equal(t, fmt.Sprintf("%s, of %d turns, %s", text, turns, want), all, want+",")
		}
	}
}

// TestRankGoneBoundSessions: of sessions that only a prompt history has, those are left out that have what is excluded, and
// the others are found: of few turns as of more than a ranking reads.
func TestRankGoneBoundSessions(t *testing.T) {
	s := openTexts(t)
	var lines []server.Line
	for _, x := range slices.Concat(slices.Repeat([][2]string{{"far", "an alpaca"}}, 8), [][2]string{{"kept", "fix the llama"},
		{"left", "fix the llama"}, {"left", "and the alpaca"}}) {
		lines = append(lines, server.Line{Index: int64(len(lines)), Raw: fmt.Appendf(nil,
			`{"display":%q,"timestamp":%d,"project":"/p","sessionId":%q}`, x[1], said.UnixMilli(), x[0])})
	}
	for i, l := range lines {
		kit.Must(t, s.Put(t.Context(), &server.Batch{Received: said, Lines: lines[i : i+1], Head: server.Head{
			SessionID: "history", Machine: "m", Epoch: "e", EndLine: l.Index + 1}}))
		tasks := kit.Try(s.Lagging(t.Context(), 1)).Must(t)
		d := derivationOf(t, s, tasks[0], l)
		for k := range d.Texts {
			d.Texts[k].Turn, d.Texts[k].Time = l.Index, said.Add(time.Duration(i)*time.Second)
		}
		kit.Must(t, s.SaveDerived(t.Context(), d))
	}
	for text, want := range map[string]string{
		"llama": "kept, left", "llama -alpaca": "kept", `llama -"the alpaca"`: "kept", `"the llama" -alpaca`: "kept",
		`"the llama" -"the alpaca"`: "kept", `"the llama"`: "kept, left",
	} {
		for _, turns := range []int{1 << 40, 5} {
			x := search.NewWithin(of(s), s.lines, &s.Finder, search.Bounds{Bytes: 24 << 20, Turns: turns, Segments: 56 << 20})
			r := kit.Try(x.Rank(t.Context(), everyone, server.RankQuery{Query: server.ParseQuery(text, said), Limit: 9, Each: 3})).Must(t)
			got := kit.Each(r.List, func(x server.RankedSession) string { return x.Gone })
			slices.Sort(got)
			kit.Check(t, strings.Join(got, ", ") == want, "%s, of %d turns: %q want %s", text, turns, got, want)
		}
	}
}
