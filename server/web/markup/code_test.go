package markup_test

import (
	"fmt"
	"html/template"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

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

// TestCompare: the way found leads from a to b, alternates, and leaves out no common element that a simple search for
// the longest common part would keep.
func TestCompare(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		letter := rapid.SampledFrom([]byte("abc"))
		a, b := rapid.SliceOfN(letter, 0, 40).Draw(t, "a"), rapid.SliceOfN(letter, 0, 40).Draw(t, "b")
		var old, rebuilt []byte
		same, x, y := 0, 0, 0
		for i, e := range markup.Compare(a, b) {
			kit.Require(t, e.A == x && e.B == y, "edit %d begins at %d/%d, want %d/%d", i, e.A, e.B, x, y)
			switch e.Op {
			case markup.Same:
				if !slices.Equal(a[e.A:e.AEnd], b[e.B:e.BEnd]) {
					t.Fatalf("unequal: %q and %q", a[e.A:e.AEnd], b[e.B:e.BEnd])
				}
				same += e.AEnd - e.A
			case markup.Removed:
				kit.Require(t, e.B == e.BEnd && e.A != e.AEnd, "removed: %+v", e)
			case markup.Added:
				kit.Require(t, e.A == e.AEnd && e.B != e.BEnd, "added: %+v", e)
			}
			old, rebuilt = append(old, a[e.A:e.AEnd]...), append(rebuilt, b[e.B:e.BEnd]...)
			x, y = e.AEnd, e.BEnd
		}
		kit.Require(t, slices.Equal(old, a) && slices.Equal(rebuilt, b), "from %q to %q came %q to %q", a, b, old, rebuilt)
		want := longestCommon(a, b)
		kit.Require(t, same == want, "%d of %q and %q are kept, want %d", same, a, b, want)
	})
}

func longestCommon(a, b []byte) int {
	row := make([]int, len(b)+1)
	for i := range a {
		diagonal := 0
		for j := range b {
			diagonal, row[j+1] = row[j+1], max(row[j+1], row[j], diagonal+map[bool]int{true: 1}[a[i] == b[j]])
		}
	}
	return row[len(b)]
}

// TestCompareGivesUp: what has nothing in common is shown as such, without the memory that a search would take.
func TestCompareGivesUp(t *testing.T) {
	a, b := make([]int, 50_000), make([]int, 50_000)
	for i := range a {
		a[i], b[i] = i, -i
	}
	edits := markup.Compare(a, b)
	kit.Check(t, len(edits) == 3 && edits[0].AEnd == 1 && edits[1].Op == markup.Removed && edits[2].Op == markup.Added,
		"%+v", edits)
}

func show(lines []markup.DiffLine) string {
	var b strings.Builder
	for _, l := range lines {
		if l.Folded > 0 {
			fmt.Fprintf(&b, "(%d)\n", l.Folded)
			continue
		}
		fmt.Fprintf(&b, "%d %d %s%s\n", l.Old, l.New, l.Sign(), l.HTML)
	}
	return b.String()
}

func TestDiff(t *testing.T) {
	before := "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\nten\n"
	for name, test := range map[string]struct{ after, want string }{
		"equal":    {before, "1 1  one\n"},
		"changed":  {strings.Replace(before, "six", "SIX and", 1), "(2)\n3 3  three\n4 4  four\n5 5  five\n6 0 -six\n0 6 +SIX and\n7 7  seven\n8 8  eight\n9 9  nine\n10 10  ten\n"},
		"appended": {before + "eleven\n", "(7)\n8 8  eight\n9 9  nine\n10 10  ten\n0 11 +eleven\n"},
		"emptied":  {"", "1 0 -one\n"},
	} {
		lines, more := markup.NewBudget().Diff(before, test.after, 3, 100)
		got := show(lines)
		kit.Check(t, (strings.HasPrefix(got, test.want) || name == "equal") && more == 0, "%s:\n%swant\n%s", name, got, test.want)
	}
	lines, _ := markup.NewBudget().Diff("\ttotal := float64(n) * 2\n", "\ttotal := int64(n) * 2\n", 3, 100)
	want := "1 0 -\ttotal := <mark>float64</mark>(n) * 2\n0 1 +\ttotal := <mark>int64</mark>(n) * 2\n"
	kit.Equal(t, "marks", show(lines), want)
	lines, more := markup.NewBudget().Diff(strings.Repeat("x\n", 500), strings.Repeat("y\n", 500), 3, 50)
	kit.Check(t, len(lines) == 50 && more == 950, "%d lines and %d more", len(lines), more)
}
