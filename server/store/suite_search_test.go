package store_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/text/unicode/norm"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
)

// searched are the sessions that a search finds lines of, by name.
func searched(t *testing.T, st full, scope server.Scope, q server.SearchQuery) []string {
	t.Helper()
	if q.Limit == 0 {
		q.Limit = 100
	}
	hits, err := st.Search(t.Context(), scope, q)
	kit.Require(t, err == nil, "search %+v: %v", q, err)
	out := []string{}
	out = append(out, kit.Each(hits.List, func(h server.Hit) string { return h.Session.SessionID })...)
	slices.Sort(out)
	return out
}

// library stores a session with these texts, one a line, a minute apart, and gives back what finds lines of it.
func library(t *testing.T, st full, texts ...string) func(query string) []int64 {
	t.Helper()
	b := batch("s")
	var d server.Derivation
	for i, text := range texts {
		b.Lines = append(b.Lines, object(int64(i), says("answer", text)))
		d.Texts = append(d.Texts, said(b.Lines[i], start.Add(time.Duration(i)*time.Minute))...)
	}
	b.Head.EndLine = int64(len(texts))
	put(t, st, b)
	save(t, st, lease(t, st)["s"], d)
	return func(query string) (lines []int64) {
		t.Helper()
		hits, err := st.Search(t.Context(), all, server.SearchQuery{Text: query, Limit: 1000})
		kit.Check(t, err == nil, "search %q: %v", query, err)
		lines = kit.Each(hits.List, func(h server.Hit) int64 { return h.Line })
		slices.Sort(lines)
		return lines
	}
}

func (s suite) search(t *testing.T) {
	find := library(t, s.open(t),
		"The quick brown fox jumps over the lazy dog",          // 0
		"func (s *Server) handleIngest(ctx context.Context) {", // 1
		"한국어 검색이 되는지 확인해 주세요",                                  // 2
		"日本語の検索。漢字",                                            // 3
		"snake_case_name and kebab-case",                       // 4
		"line one\n\tline two\r\nline three",                   // 5
		"ÄÖÜ straße Ærø ПРИВЕТ",                                // 6
		"go fmt; ls -l; cd ..",                                 // 7
		"brown bread",                                          // 8
		"C:\\Users\\kim 100% \"quoted\" it's",                  // 9
		"emoji 🚀🔥 here",                                        // 10
		"q",                                                    // 11
		"abcd bcde",                                            // 12
		"정산 결과 re\u0301serve\u0301",                            // 13
		norm.NFD.String("정산 결과 réservé"),                       // 14
	)
	for query, want := range map[string][]int64{
		"quick":                     {0},
		"QUICK brown":               {0},
		"brown":                     {0, 8},
		"brown quick":               {0}, // words in any order
		`"brown quick"`:             nil,
		`"quick brown"`:             {0},
		`fox "lazy dog" the`:        {0},
		"uick":                      {0},
		"handleingest":              {1},
		"leIng":                     {1},
		"*Server)":                  {1},
		"한국어":                       {2},
		"검색":                        {2},
		"확":                         {2},
		"검색 확인":                     {2},
		"색검":                        nil,
		"検索":                        {3},
		"字":                         {3},
		"の検":                        {3},
		"case_name":                 {4},
		"snake-case":                nil,
		`"one line two line three"`: {5},
		"two\nline":                 {5},
		`"äöü STRASSE"`:             nil,
		"äöü STRAßE":                {6},
		"привет":                    {6},
		"ä":                         {6},
		"РИ":                        {6},
		"go":                        {7},
		"ls":                        {7},
		"-l":                        {7},
		"go cd":                     {7},
		`"fmt; l"`:                  {7},
		`100%`:                      {9},
		`users\kim`:                 {9},
		"it's":                      {9},
		`"quoted"`:                  {9},
		"🚀":                         {10},
		"🚀🔥":                        {10},
		"🔥🚀":                        nil,
		"":                          nil,
		`""`:                        nil,
		"   ":                       nil,
		`"unbalanced brown`:         nil,
		`"brown bread`:              {8},
		"nowhere":                   nil,
		"정산":                        {13, 14},
		norm.NFD.String("정산 결과"):    {13, 14},
		"RÉSERVÉ":                   {13, 14},
		"re\u0301serve\u0301":       {13, 14},
		"abcde":                     nil, // all of its parts are there
		"abcd":                      {12},
	} {
		kit.Equal(t, query+": found lines", find(query), want)
	}
	got := find("q")
	kit.Check(t, slices.Contains(got, 11), "a single letter: %v", got)
}

// inert: nothing in a query is an operator, and what is in texts is found as it is.
func (s suite) inert(t *testing.T) {
	texts := kit.Each(hostile, func(h string) string { return "before " + h + " after" })
	find := library(t, s.open(t), texts...)
	for i, h := range hostile {
		got := find(h)
		if strings.ContainsAny(h, "\"") || strings.TrimSpace(strings.Map(printable, strings.ToValidUTF8(h, ""))) == "" {
			continue // it must not break anything
		}
		kit.Check(t, slices.Contains(got, int64(i)), "%q finds lines %v, not %d", h, got, i)
	}
	for _, query := range []string{"before AND after", "NOT before", "before OR nowhere", "bef*", "before -after", "nowhere OR before", "b_fore", "b%e"} {
		for _, line := range find(query) {
			for _, w := range strings.Fields(query) {
				kit.Check(t, strings.Contains(strings.ToLower(texts[line]), strings.ToLower(w)), "%q finds %q", query, texts[line])
			}
		}
	}
	find(strings.Repeat("a", 1<<16))
	find(strings.Repeat("ab ", 1<<14))
	find(strings.Repeat(`"`, 1000))
}

func printable(r rune) rune {
	if r < ' ' {
		return ' '
	}
	return r
}

func (s suite) searchFilters(t *testing.T) {
	st := s.open(t)
	lines := []server.Line{object(0, says("prompt", "shared words")), object(1, says("result", "shared result")),
		object(2, says("answer", "shared answer"))}
	for i, name := range []string{"a", "b"} {
		b := batch(name, lines...)
		b.Head.ProjectHash, b.Head.Project, b.Head.Machine, b.Owner = "ph"+name, "p"+name, "m"+name, int64(i+1)
		put(t, st, b)
	}
	put(t, st, batch("a/agent-1", lines...), func(b *server.Batch) { b.Head.Parent, b.Head.Machine, b.Owner = "a", "ma", 1 })
	for name, task := range lease(t, st) {
		save(t, st, task, server.Derivation{Summary: server.Summary{Models: []string{"model-" + name}},
			Texts: slices.Concat(said(lines[0], start), said(lines[1], start), said(lines[2], start.Add(time.Hour)))})
	}
	mb := "mb"
	tests := []struct {
		want string
		q    server.SearchQuery
	}{
		{"a a a a/agent-1 a/agent-1 a/agent-1 b b b", server.SearchQuery{}},
		{"b b b", server.SearchQuery{Project: "phb"}},
		{"b b b", server.SearchQuery{Project: "pb"}},
		{"b b b", server.SearchQuery{Machine: &mb}},
		{"b b b", server.SearchQuery{User: 2}},
		{"b b b", server.SearchQuery{Model: "model-b"}},
		{"b b b", server.SearchQuery{Session: "b"}},
		{"a a a a/agent-1 a/agent-1 a/agent-1", server.SearchQuery{Session: "a"}},
		{"a/agent-1 a/agent-1 a/agent-1", server.SearchQuery{Session: "a/agent-1"}},
		{"a a/agent-1 b", server.SearchQuery{Kinds: []string{"answer"}}},
		{"a a a/agent-1 a/agent-1 b b", server.SearchQuery{Kinds: []string{"prompt", "result", "nothing"}}},
		{"a a/agent-1 b", server.SearchQuery{Since: start.Add(time.Hour)}},
		{"a a a/agent-1 a/agent-1 b b", server.SearchQuery{Until: start.Add(time.Hour)}},
	}
	for _, test := range tests {
		for _, text := range []string{"shared", "ed"} { // with the index and without
			test.q.Text = text
			expectNames(t, fmt.Sprintf("%+v", test.q), searched(t, st, all, test.q), strings.Fields(test.want)...)
		}
	}
	for _, text := range hostile {
		for _, q := range []server.SearchQuery{{Project: text}, {Machine: &text}, {Model: text}, {Session: text}, {Kinds: []string{text}}} {
			q.Text = "shared"
			expectNames(t, fmt.Sprintf("%+v", q), searched(t, st, all, q))
		}
		_, err := st.Search(t.Context(), all, server.SearchQuery{Text: "shared", Limit: 5, After: text})
		kit.Check(t, errors.Is(err, server.ErrBadPage), "after %q: %v", text, err)
	}
}

// searchPages: newest first, nothing twice, nothing left out, also of one moment and while more comes in.
func (s suite) searchPages(t *testing.T) {
	st := s.open(t)
	const lines = 23
	b := batch("s")
	var d server.Derivation
	for i := range int64(lines) {
		b.Lines = append(b.Lines, object(i, says("prompt", fmt.Sprint("needle ", i))))
		d.Texts = append(d.Texts, said(b.Lines[i], start.Add(time.Duration(i/5)*time.Minute))...)
	}
	b.Head.EndLine = lines
	put(t, st, b)
	save(t, st, lease(t, st)["s"], d)
	seen, last := map[int64]int{}, start.Add(time.Hour)
	q := server.SearchQuery{Text: "needle", Limit: 4}
	for page := 0; ; page++ {
		hits := kit.Try(st.Search(t.Context(), all, q)).Must(t)
		for _, h := range hits.List {
			if h.Session.SessionID == "s" {
				seen[h.Line]++
			}
			kit.Check(t, !h.Time.After(last), "line %d of %v comes after %v", h.Line, h.Time, last)
			last = h.Time
		}
		if q.After = hits.Next; q.After == "" {
			break
		}
		more := fmt.Sprint("new", page)
		put(t, st, batch(more, object(0, says("prompt", "needle"))))
		save(t, st, lease(t, st)[more], server.Derivation{Texts: said(object(0, says("prompt", "needle")), start.Add(time.Hour))})
	}
	for i := range int64(lines) {
		kit.Equal(t, fmt.Sprintf("line %d was found times", i), seen[i], 1)
	}
}

// crowd: so many lines of one moment that ids made from it collide.
func (s suite) crowd(t *testing.T) {
	st := s.open(t)
	const lines = 6000
	var d server.Derivation
	b := batch("s")
	for i := range int64(lines) {
		b.Lines = append(b.Lines, object(i, says("prompt", fmt.Sprint("needle ", i))))
		d.Texts = append(d.Texts, said(b.Lines[i], start)...)
	}
	b.Head.EndLine = lines
	put(t, st, b)
	save(t, st, lease(t, st)["s"], d)
	seen := map[int64]bool{}
	for q := (server.SearchQuery{Text: "needle", Limit: 1000}); ; {
		hits := kit.Try(st.Search(t.Context(), all, q)).Must(t)
		for _, h := range hits.List {
			seen[h.Line] = true
		}
		if q.After = hits.Next; q.After == "" {
			break
		}
	}
	kit.Equal(t, "lines found", len(seen), lines)
}

func (s suite) snippets(t *testing.T) {
	st := s.open(t)
	long := strings.Repeat("left ", 200) + "The\n\tNEEDLE \x1b[31mis\x02 here\x03 needle" + strings.Repeat(" right", 200)
	library(t, st, long, "검색 엔진", strings.Repeat("<b>x</b> ", 3)+"needle")
	for query, want := range map[string]string{
		"needle here": "left left The \x02NEEDLE\x03 [31mis \x02here\x03 \x02needle\x03 right right",
		"검색":          "\x02검색\x03 엔진",
		"<b> needle":  "\x02<b>\x03x</b> \x02<b>\x03x</b> \x02<b>\x03x</b> \x02needle\x03",
	} {
		hits, err := st.Search(t.Context(), all, server.SearchQuery{Text: query, Limit: 5})
		kit.Require(t, err == nil && len(hits.List) == 1, "%q: %d hits, %v", query, len(hits.List), err)
		got := hits.List[0].Snippet
		kit.Check(t, strings.Contains(got, want) && len([]rune(got)) <= 260, "%q: snippet %q, want %q in it", query, got, want)
		kit.Check(t, !strings.ContainsAny(strings.NewReplacer("\x02", "", "\x03", "").Replace(got), "\x00\x01\x1b\n\t"),
			"%q: snippet %q has control characters", query, got)
	}
}

// superseded: lines that a rewind or a new epoch took out of the newest view are found when asked for.
func (s suite) superseded(t *testing.T) {
	st := s.open(t)
	step := func(epoch string, generation, rewound int64, lines ...int64) {
		b := batch("s")
		b.Head.Epoch, b.Head.Generation, b.Head.RewoundTo = epoch, generation, rewound
		var texts []server.Text
		for _, i := range lines {
			l := object(i, says("prompt", fmt.Sprintf("needle %s%d.%d", epoch, generation, i)))
			b.Lines, b.Head.EndLine = append(b.Lines, l), i+1
			texts = append(texts, said(l, start)...)
		}
		put(t, st, b)
		save(t, st, lease(t, st)["s"], server.Derivation{Texts: texts})
	}
	expect := func(when, current, gone string) {
		t.Helper()
		got := map[bool][]string{}
		hits, err := st.Search(t.Context(), all, server.SearchQuery{Text: "needle", Superseded: true, Limit: 99})
		kit.Must(t, err)
		for _, h := range hits.List {
			got[h.Current] = append(got[h.Current], fmt.Sprintf("%s%d.%d", h.Epoch, h.Generation, h.Line))
		}
		hits, err = st.Search(t.Context(), all, server.SearchQuery{Text: "needle", Limit: 99})
		kit.Check(t, err == nil && len(hits.List) == len(got[true]), "%s: %d current hits, %v", when, len(hits.List), err)
		slices.Sort(got[true])
		slices.Sort(got[false])
		c, g := strings.Join(got[true], " "), strings.Join(got[false], " ")
		kit.Check(t, c == current && g == gone, "%s: current %q, superseded %q", when, c, g)
	}
	step("e", 0, 0, 0, 1, 2, 3)
	expect("at first", "e0.0 e0.1 e0.2 e0.3", "")
	step("e", 1, 2, 2)
	expect("after a rewind", "e0.0 e0.1 e1.2", "e0.2 e0.3")
	step("e", 3, 1)
	expect("after a rewind to what is there", "e0.0", "e0.1 e0.2 e0.3 e1.2")
	step("f", 0, 0, 0, 1)
	expect("after a new epoch", "f0.0 f0.1", "e0.0 e0.1 e0.2 e0.3 e1.2")
}

// rederived: a stretch that is derived again has the texts it is given, and no others.
func (s suite) rederived(t *testing.T) {
	st := s.open(t)
	find := library(t, st, "alpha one", "beta two", "gamma three")
	delta := object(1, says("answer", "delta two"))
	put(t, st, batch("s", delta)) // replaced: begins again
	task := lease(t, st)["s"]
	save(t, st, task, server.Derivation{Texts: slices.Concat(said(object(0, says("answer", "alpha one")), start),
		said(delta, start), said(object(2, says("answer", "gamma three")), start.Add(time.Hour)))})
	for query, want := range map[string]int{"alpha": 1, "beta": 0, "delta": 1, "gamma": 1, "two": 1} {
		kit.Equal(t, query+": lines", len(find(query)), want)
	}
	hits, err := st.Search(t.Context(), all, server.SearchQuery{Text: "gamma", Limit: 5})
	kit.Check(t, err == nil && len(hits.List) == 1 && hits.List[0].Time.Equal(start.Add(time.Hour)), "%+v, %v", hits, err)
}
