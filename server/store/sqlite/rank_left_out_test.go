package sqlite

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store/search"
)

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
			var got []string
			for _, x := range r.List {
				got = append(got, x.Gone)
			}
			slices.Sort(got)
			kit.Check(t, strings.Join(got, ", ") == want, "%s, of %d turns: %q want %s", text, turns, got, want)
		}
	}
}
