package search

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
)

// TestNearness: words side by side are nearest; the shortest stretch counts.
func TestNearness(t *testing.T) {
	for _, c := range []struct {
		text, query string
		want        float64
	}{
		{"round the cart", "round cart", 2. / 3},
		{"cart round x", "round cart", 1},
		{"round a1 b1 c1 d1 cart e1 round cart", "round cart", 1},
		{"round only", "round cart", 1},
		{"round a1 b1 cart", "round cart", .5},
	} {
		l := readQuery(server.ParseQuery(c.query, time.Time{}))
		var places []spot
		l.has(c.text, func(n, i int, _ []byte) { places = append(places, spot{n, i}) })
		kit.Equal(t, fmt.Sprintf("%s in %q", c.query, c.text), nearness(places), c.want)
	}
}

// TestLook: a name in camel case is looked for by its parts, an id as it is.
func TestLook(t *testing.T) {
	for text, want := range map[string][2]int{"parseHTTPRequest": {3, 0}, "parsehttprequest": {1, 0}, "c++": {0, 1},
		"4fec7ea0b1": {0, 1}, "cart.go": {2, 0}, "cart cart": {1, 0}, `"a b"`: {0, 1}} {
		l := readQuery(server.ParseQuery(text, time.Time{}))
		exact := 0
		for _, c := range l.clauses {
			if !c.fuzzy() {
				exact++
			}
		}
		kit.Check(t, len(l.terms) == want[0] && exact == want[1], "%s: %d terms, %d exact, want %v", text, len(l.terms),
			exact, want)
	}
}

// TestSnippetOfAQuote: what people and Claude quote is shown without the marks of lines that a snippet does not have;
// what a tool printed stays as it is.
func TestSnippetOfAQuote(t *testing.T) {
	const said = "You wrote:\n> round the cart\n> > to cents\n\nif a > b"
	for kind, want := range map[string]string{
		"prompt": "You wrote: round the \x02cart\x03 to cents if a > b",
		"result": "You wrote: > round the \x02cart\x03 > > to cents if a > b",
	} {
		kit.Equal(t, kind, snippet(kind, said, []string{"cart"}), want)
		kit.Equal(t, "the mark that was looked for, "+kind, snippet(kind, "x\n> y", []string{"> y"}), "x \x02> y\x03")
	}
}

// TestSnippetOfACommand: what a command prints is shown without its tags, unless one of them was looked for.
func TestSnippetOfACommand(t *testing.T) {
	const said = "<bash-stdout>3 carts</bash-stdout><bash-stderr></bash-stderr>"
	kit.Equal(t, "output", snippet("message", said, []string{"carts"}), "3 \x02carts\x03")
	kit.Equal(t, "a tag", snippet("message", said, []string{"bash-stderr"}),
		"<bash-stdout>3 carts</bash-stdout><\x02bash-stderr\x03></\x02bash-stderr\x03>")
	kit.Equal(t, "a command", snippet("prompt", "<command-name>/review</command-name>\n<command-args>cart</command-args>",
		[]string{"cart"}), "/review \x02cart\x03")
	kit.Equal(t, "text about one", snippet("message", "see <bash-stdout> there", []string{"there"}), "see <bash-stdout> \x02there\x03")
}

// TestCopiesInASession: of an agent's transcript that lies in two folders each line is shown once; what another agent
// says in the same words, or the same one at another time, is shown too.
func TestCopiesInASession(t *testing.T) {
	r := ranking{infos: map[int64]*info{}, ask: server.RankQuery{Each: 9}}
	for id, origin := range map[int64]string{1: "s/a", 2: "s/a", 3: "s/b", 4: "", 5: ""} {
		r.infos[id] = &info{id: id}
		r.infos[id].origin = origin
	}
	line := func(stream, time int64, kind string) hit {
		h := hit{place: place{stream: stream, time: time}, text: server.Hit{Snippet: "done"}}
		h.kind = kind
		return h
	}
	got := r.bestLines([]hit{line(1, 7, "answer"), line(2, 7, "answer"), line(3, 7, "answer"), line(1, 8, "answer"),
		line(1, 7, "result"), line(4, 7, "answer"), line(5, 7, "answer")})
	kit.Equal(t, "lines that are shown", len(got), 6)
}

// TestWords: the forms of a word are one term; names are their parts.
func TestWords(t *testing.T) {
	terms := func(text string) (out []term, words string) {
		var list []string
		eachWord(text, func(w []byte, x term) { out, list = append(out, x), append(list, string(w)) })
		return out, strings.Join(list, " ")
	}
	for _, forms := range []string{"round rounds rounding rounded Rounding", "cache caches caching cached", "try tries tried trying",
		"retry retries retried retrying", "stop stops stopping stopped", "process processes processing processed",
		"file files", "index indexes indexing", "pass passes passed", "fix fixes fixing fixed", "search searches searching",
		"dependency dependencies", "use uses", "merge merges merged merging", "call calls called calling"} {
		list, _ := terms(forms)
		for i := range list {
			if list[i] != list[0] {
				t.Errorf("%s: %q is another word", forms, strings.Fields(forms)[i])
			}
		}
	}
	for _, pair := range []string{"status state", "bus bu", "string str", "thing th", "glass glas", "analysis analys", "need ne"} {
		list, _ := terms(pair)
		kit.Check(t, list[0] != list[1], "%s are one word", pair)
	}
	for text, want := range map[string]string{
		"cartTotal, parseHTTPRequest": "cart total carttotal parse http request parsehttprequest",
		"retry_count-max/x.go":        "retry count max go",
		"HTTPServer URLs v2 utf8":     "http server httpserver ur ls urls v2 utf8",
		"CAFE\u0301 Straße":           "café straße",
		"장바구니 a 東京都 x中":               "장바 바구 구니 東京 京都 中",
		"1234567 123456 2026-11-01":   "123456 2026 11 01",
		"4fec7ea0b1 deadbeef":         "deadbeef",
		strings.Repeat("x", 50):       "",
		"":                            "",
	} {
		_, got := terms(text)
		kit.Check(t, got == want, "%s: %s, want %s", text, got, want)
	}
	a, _ := terms("café")
	b, _ := terms("cafe\u0301")
	kit.Check(t, a[0] == b[0], "composed and decomposed differ")
}
