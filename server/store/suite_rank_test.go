package store_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/derive"
	"github.com/ccship/ccship/server/store/search"
)

// talk stores a session of an owner, whose name begins with its project, and what is derived of it: lines are a kind, a
// colon and a text, hours after start.
func talk(t *testing.T, st full, owner int64, session string, hours int, lines ...string) {
	t.Helper()
	b, turn := batch(session), int64(0)
	b.Owner, b.Head.Project = owner, strings.Split(session, "-")[0]
	b.Head.ProjectHash = "ph " + b.Head.Project
	if parent, _, ok := strings.Cut(session, "/"); ok {
		b.Head.Parent = parent
	}
	var d server.Derivation
	at := start.Add(time.Duration(hours) * time.Hour)
	for i, text := range lines {
		kind, text, _ := strings.Cut(text, ":")
		l := object(int64(i), says(kind, text))
		if kind == "prompt" {
			turn = l.Index
		}
		for _, x := range said(l, at) {
			x.Turn = turn
			d.Texts = append(d.Texts, x)
		}
		b.Lines = append(b.Lines, l)
	}
	b.Head.EndLine = int64(len(lines))
	d.Summary = server.Summary{Title: "about " + session, Ended: at, Lines: b.Head.EndLine}
	put(t, st, b)
	save(t, st, lease(t, st)[session], d)
}

// ranked is what a search answers, in short: sessions in their order, each with what it lacks.
func ranked(t *testing.T, st full, scope server.Scope, text string) string {
	t.Helper()
	var out []string
	a := server.RankQuery{Query: server.ParseQuery(text, start.Add(100*time.Hour)), Reader: scope.User, Limit: 3, Each: 3, Facets: true}
	var total int64
	for {
		r, err := st.Rank(t.Context(), scope, a)
		kit.Require(t, err == nil, "%s: %v", text, err)
		for _, x := range r.List {
			name := x.SessionID
			if x.Gone != "" {
				name = "gone " + x.Gone
			}
			if len(x.Missing) > 0 {
				name += " without " + strings.Join(x.Missing, " ")
			}
			out = append(out, name)
		}
		if total = r.Total; r.Next == "" {
			break
		}
		a.After = r.Next
	}
	kit.Equal(t, text+": sessions on all pages counted", total, int64(len(out)))
	return strings.Join(out, ", ")
}

// Sessions are found by words in any of their forms, the best first, and by all that the language has.
func (s suite) rank(t *testing.T) {
	st := s.open(t)
	talk(t, st, 0, "shop-a", 1, "prompt:Please fix the rounding of prices in the cart", "answer:The cart rounds each price now")
	talk(t, st, 0, "shop-b", 2, "prompt:Add a gift card", "answer:It rounds nothing", "result:cart price")
	talk(t, st, 0, "docs-c", 3, "prompt:Describe the parseHTTPRequest function", "answer:retry_count is described")
	talk(t, st, 0, "docs-d", 4, "prompt:What is café in the menu?", "answer:a coffee house, off by one letter",
		"prompt:장바구니 페이지를 고쳐 주세요")
	long := []string{"prompt:Write a long report"}
	for i := range 60 {
		long = append(long, fmt.Sprintf("answer:paragraph %d speaks of a cart, of a price, and of rounding once in a while", i))
	}
	talk(t, st, 0, "shop-long", 5, long...)
	talk(t, st, 0, "shop-a/agent", 1, "prompt:look for the wombat in the zoo")
	for text, want := range map[string]string{
		"rounding price cart":            "shop-a, shop-long, shop-b",
		"ROUNDED Prices":                 "shop-a, shop-long, shop-b",
		"gift cards":                     "shop-b",
		"parse request":                  "docs-c",
		"parseHttpRequest":               "docs-c",
		"retry counts":                   "docs-c",
		"CAFE\u0301":                     "docs-d",
		"장바구니":                           "docs-d",
		"페이지":                            "docs-d",
		"wombats":                        "shop-a",
		"gift zeppelin":                  "shop-b without zeppelin",
		"zeppelin":                       "",
		"coff":                           "docs-d",
		`"off by one"`:                   "docs-d",
		`"ff by on"`:                     "docs-d",
		`"off one"`:                      "",
		`"rounds each" gift`:             "shop-a without gift",
		"/ro.nds (each|no)/":             "shop-b, shop-a",
		"gift OR parse":                  "shop-b, docs-c",
		`"gift card" OR "menu"`:          "docs-d, shop-b",
		"rounding -long":                 "shop-a, shop-b",
		`rounding -"gift card"`:          "shop-a, shop-long",
		"rounding -gift -report":         "shop-a",
		"price kind:result":              "shop-b",
		"price kind:prompt":              "shop-a",
		"cart before:2026-11-20T14:30":   "shop-a, shop-b",
		"cart after:2026-11-20T14:30":    "shop-long",
		"project:docs":                   "docs-d, docs-c",
		"project:docs menu":              "docs-d",
		"project:docs project:shop gift": "shop-b",
		"session:shop-a cart":            "shop-a",
		"session:shop-a wombat":          "shop-a",
		"machine:m gift":                 "shop-b",
		"machine:other gift":             "",
		"projekt:docs":                   "",
		"-gift project:shop":             "shop-long, shop-a",
	} {
		kit.Equal(t, text, ranked(t, st, all, text), want)
	}
}

// What is shown of a session are its best lines, with what matched marked; facets count sessions.
func (s suite) rankShows(t *testing.T) {
	st := s.open(t)
	talk(t, st, 0, "shop-a", 1, "prompt:fix the cart", "answer:I fixed rounding in the cart", "result:cart cart cart")
	talk(t, st, 0, "shop-b", 24*30, "prompt:the carts are slow")
	talk(t, st, 0, "docs-c", 2, "prompt:write docs", "answer:cart docs")
	ask := func(text, after string, limit int) server.Ranked {
		t.Helper()
		r := kit.Try(st.Rank(t.Context(), all, server.RankQuery{Query: server.ParseQuery(text, start), After: after, Limit: limit, Each: 2, Facets: true})).Must(t)
		return r
	}
	r := ask("rounded cart", "", 10)
	kit.Require(t, len(r.List) != 0 && len(r.Missing) <= 0, "%+v", r)
	lines := kit.Each(r.List[0].Hits, func(h server.Hit) string { return fmt.Sprint(h.Line, " ", h.Kind, " ", h.Current, " ", h.Snippet) })
	want := []string{"1 answer true I fixed \x02rounding\x03 in the \x02cart\x03", "0 prompt true fix the \x02cart\x03"}
	kit.Check(t, slices.Equal(lines, want) && r.List[0].Hits[0].Time.Equal(start.Add(time.Hour)), "%q of %+v", lines,
		r.List[0].Hits)
	f := ask("carts", "", 1).Facets
	if got := fmt.Sprint(f.Projects, f.Kinds, f.Months); got != "[{ph shop 2 shop} {ph docs 1 docs}] [{answer 2 } {prompt 2 } {result 1 }] [{2026-12 1 } {2026-11 2 }]" {
		t.Error(got)
	}
	r = ask("gift basket", "", 5)
	kit.Check(t, r.Total == 0 && r.Missing == nil && r.List == nil, "%+v", r)
	for _, after := range []string{"x", "1", "-1 ", "1 x"} {
		_, err := st.Rank(t.Context(), all, server.RankQuery{Query: server.ParseQuery("x", start), After: after, Limit: 1})
		kit.Check(t, errors.Is(err, server.ErrBadPage), "%q: %v", after, err)
	}
}

// Nothing of what a scope does not see, of what is masked or forgotten, is found or counted, or changes what is found.
func (s suite) rankScopes(t *testing.T) {
	st, ctx := s.open(t), t.Context()
	a, b := members(t, st)
	ids := []int64{a.ID, b.ID}
	ann, bob := server.ScopeOf(a), server.ScopeOf(b)
	deriveAll(t, st)
	talk(t, st, ids[0], "shop-a", 1, "prompt:round the cart")
	talk(t, st, ids[0], "shop-b", 2, "prompt:paint the cart")
	before := ranked(t, st, ann, "round cart")
	for i := range 20 { // would make "cart" rare and "round" frequent
		talk(t, st, ids[1], fmt.Sprintf("own-%d", i), 3, "prompt:round and round")
	}
	got := ranked(t, st, ann, "round cart")
	kit.Check(t, got == before && got == "shop-a, shop-b without round",
		"sessions of another change what is found: %s, %s before", got, before)
	kit.Equal(t, "another finds", ranked(t, st, bob, "cart"), "")
	r, err := st.Rank(ctx, bob, server.RankQuery{Query: server.ParseQuery("round", start), Limit: 1, Facets: true})
	kit.Check(t, err == nil && r.Total == 20 && len(r.Facets.Projects) == 1 && r.Facets.Projects[0].Count == 20, "%+v, %v", r, err)
	kit.Must(t, st.AddShare(ctx, server.Share{With: ids[1], Owner: ids[0], ProjectHash: "ph shop", Created: start}))
	kit.Equal(t, "what is shared is", ranked(t, st, bob, "cart user:ann"), "shop-b, shop-a")
	kit.Equal(t, "user:me finds", ranked(t, st, bob, "cart user:me"), "")
	kit.Try(st.Forget(ctx, ann, "shop-b", 0, start)).Must(t)
	kit.Equal(t, "what is forgotten is found", ranked(t, st, all, "paint"), "")
}

// A word that only a rewound version or a prompt history has is found, and marked so. What is masked is not.
func (s suite) rankPast(t *testing.T) {
	st := s.open(t)
	talk(t, st, 0, "s", 1, "prompt:keep this", "prompt:the zeppelin draft", "prompt:use "+needle+" twice")
	b := batch("s", object(1, says("prompt", "the airship draft")))
	b.Head.Project, b.Head.ProjectHash, b.Head.Generation, b.Head.RewoundTo, b.Head.EndLine = "s", "ph s", 1, 1, 2
	put(t, st, b)
	save(t, st, lease(t, st)["s"], server.Derivation{Texts: said(b.Lines[0], start.Add(2*time.Hour))})
	h := batch("history~m", object(0, `{"display":"count the dirigibles","timestamp":1787216400101,"project":"/p","sessionId":"swept"}`),
		object(1, `{"display":"the zeppelin draft","timestamp":1787216400101,"project":"/p","sessionId":"s"}`),
		object(2, `{"display":"mend the ornithopter","timestamp":1787216400101,"project":"/old"}`),
		object(3, fmt.Sprintf(`{"display":"keep this","timestamp":%d,"project":"/old"}`, start.Add(time.Hour).UnixMilli())))
	put(t, st, h)
	d := server.Derivation{}
	for _, l := range h.Lines {
		for _, x := range derive.TextsOf(l) {
			x.Turn = l.Index
			d.Texts = append(d.Texts, x)
		}
	}
	save(t, st, lease(t, st)["history~m"], d)
	for text, want := range map[string]string{"zeppelin": "s", "airships": "s", "dirigible": "gone swept", "draft": "s",
		"ornithopter": "gone /old", "keep": "s"} {
		kit.Equal(t, text, ranked(t, st, all, text), want)
	}
	r, err := st.Rank(t.Context(), all, server.RankQuery{Query: server.ParseQuery("draft", start), Limit: 5, Each: 5})
	kit.Check(t, err == nil && len(r.List) == 1 && len(r.List[0].Hits) == 2 && r.List[0].Hits[0].Current &&
		!r.List[0].Hits[1].Current, "%+v, %v", r, err)
	got := ranked(t, st, all, "twice")
	kit.Require(t, got == "s", "not found before it is masked: %s", got)
	snap := openSession(t, st, "s")
	m := lineMask(t, snap, 2, says("prompt", "use "+needle+" twice"))
	mask(t, st, &server.Masking{Stream: snap.Session().ID, Lines: []protocol.LineMask{m}})
	for _, text := range []string{needle, "ghp abcdEFGH1234abcdEFGH1234abcdEFGH1234", `"` + needle + `"`} {
		kit.Equal(t, text+": what is masked is found", ranked(t, st, all, text), "")
	}
}

// Sessions are chosen by what they are: branch, model, errors, stars, lost lines, whether they run. Their agents go with
// them.
func (s suite) rankStates(t *testing.T) {
	st := s.open(t)
	for i, x := range []server.Summary{{Branch: "main", Models: []string{"claude-opus-5"}, Errors: 2}, {Branch: "fix"}, {}} {
		name := fmt.Sprint("s-", i)
		talk(t, st, 0, name, i, "prompt:the cart")
		talk(t, st, 0, name+"/agent", i, "prompt:the wombat")
		put(t, st, batch(name, object(1, says("answer", "and more"))))
		x.Lines = 2
		save(t, st, lease(t, st)[name], server.Derivation{Summary: x})
	}
	snap := openSession(t, st, "s-1")
	kit.Must(t, st.SetMark(t.Context(), 7, server.Mark{Stream: snap.Session().ID, Star: true}))
	put(t, st, batch("s-2", object(1, says("answer", "other"))),
		func(b *server.Batch) { b.Head.Generation, b.Head.RewoundTo = 1, 1 })
	save(t, st, lease(t, st)["s-2"], server.Derivation{Drops: []server.Rewrite{{First: 1, Last: 2, Lines: 1}}})
	for text, want := range map[string]string{
		"branch:main cart": "s-0", "branch:main wombat": "s-0", "branch:main": "s-0", "model:opus cart": "s-0", "is:error cart": "s-0",
		"is:error wombat": "s-0", "is:starred cart": "s-1", "is:starred": "s-1", "is:lost cart": "s-2", "is:lost wombat": "s-2",
		"is:running cart": "", "branch:fix is:error": "",
	} {
		kit.Equal(t, text, ranked(t, st, server.Scope{All: true, User: 7}, text), want)
	}
}

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
