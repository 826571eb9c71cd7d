package markup_test

import (
	"fmt"
	"html/template"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server/web/markup"
)

func highlighter() *markup.Budget { return markup.Colours(1<<20, time.Minute) }

func codeOf(p *markup.Budget, text, language string) template.HTML {
	html, _ := p.Code(text, language)
	return html
}

func textOf(s string) string {
	html, _ := markup.NewBudget().Text(s)
	return string(html)
}

func ansiOf(s string) string {
	html, _ := markup.NewBudget().ANSI(s)
	return string(html)
}

func markdownOf(s string) string {
	html, _ := highlighter().Markdown(s)
	return string(html)
}

func TestCode(t *testing.T) {
	for _, test := range []struct{ text, language, want string }{
		{"func f() {}", "go", `<span class="tk">func</span>`},
		{"func f() {}", "/home/kim/shop/Cart.GO", `<span class="tk">func</span>`},
		{"def f(): pass", `C:\src\x.py`, `<span class="tk">def</span>`},
		{"all:\n\techo", "Makefile", `<span class="tf">all</span>`},
		{`{"a": "b"}`, "json", `<span class="ts">`},
		{"echo $HOME # home", "bash", `<span class="tc"># home</span>`},
		{"<b>&'\"", "go", `&lt;`},
		{"<b>&'\"", "no-such-language", "&lt;b&gt;&amp;&#39;&#34;"},
		{"plain", "", "plain"},
		{"plain", "text", "plain"},
	} {
		kit.Has(t, fmt.Sprintf("%q as %s", test.text, test.language),
			string(codeOf(highlighter(), test.text, test.language)), test.want)
	}
}

// TestCodeKeepsText: whatever the colours, all of the text is there, in order.
func TestCodeKeepsText(t *testing.T) {
	for _, language := range []string{"go", "python", "js", "html", "bash", "json", "markdown", "yaml", "sql", "rust", "c", "diff", "xml", "php", "ruby", "make"} {
		for _, text := range hostile {
			got, want := unmarked(t, string(codeOf(highlighter(), text, language))), unmarked(t, textOf(text))
			kit.Check(t, got == want, "%s: %q became %q, want %q", language, text, got, want)
		}
	}
}

func TestSpentBrush(t *testing.T) {
	for _, spent := range []*markup.Budget{{}, markup.Colours(10, time.Minute), markup.Colours(1000, 0)} {
		got := codeOf(spent, "func f() {}", "go")
		kit.Check(t, !strings.Contains(string(got), "span"), "a spent highlighter colours: %s", got)
	}
	few := markup.Colours(25, time.Minute)
	one, two, three := codeOf(few, "func f() {}", "go"), codeOf(few, "func f() {}", "go"), codeOf(few, "func f() {}", "go")
	kit.Check(t, one == two && one != three, "a highlighter for two: %s %s %s", one, two, three)
	if got := codeOf(highlighter(), strings.Repeat("func ", 20_000), "go"); strings.Contains(string(got), "span") {
		t.Error("a long line is coloured")
	}
	// Of a long text the beginning is coloured, and nothing is lost.
	long := strings.Repeat("func f() {}\n", 10_000)
	got := string(codeOf(highlighter(), long, "go"))
	n := strings.Count(got, `<span class="tk">func</span>`)
	kit.Check(t, n >= 100 && n <= 4200 && strings.Count(got, "func") == 10_000,
		"of a long text %d lines are coloured, %d are there", n, strings.Count(got, "func"))
}

// TestCache: code from the cache is what it would be without, and takes no time.
func TestCache(t *testing.T) {
	var cache markup.Cache
	with := func(patience time.Duration) *markup.Budget {
		h := markup.Colours(1<<20, patience)
		h.Cache = &cache
		return h
	}
	text := "package a // <b>\n" + strings.Repeat("var x = \"y\"\n", 20)
	want := codeOf(highlighter(), text, "go")
	got := codeOf(with(time.Minute), text, "go")
	kit.Check(t, got == want && strings.Contains(string(got), "<span"), "it is kept as something else: %s", got)
	if got := codeOf(with(1), text, "go"); got != want { // too little time to colour it
		t.Errorf("it is not taken from the cache: %s", got)
	}
	got = codeOf(with(1), text, "python")
	kit.Check(t, got != want, "it is taken for another language: %s", got)
	got, want = codeOf(with(time.Minute), text, "python"), codeOf(highlighter(), text, "python")
	kit.Check(t, got == want, "what there was no time for is kept: %s", got)
	cut := text + strings.Repeat("z", 60<<10) // longer than what is coloured
	for range 2 {
		got, want := codeOf(with(time.Minute), cut, "go"), codeOf(highlighter(), cut, "go")
		kit.Check(t, got == want, "what is coloured in part differs: %.300s", got)
	}
}
