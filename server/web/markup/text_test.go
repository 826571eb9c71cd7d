package markup_test

import (
	"fmt"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server/web/markup"
)

// hostile are texts made to break out of wherever they are put.
var hostile = []string{
	`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `' onmouseover='x`, "</pre></code></span><script>x</script>",
	"\x1b[31m<b>\x1b[0m", "\x1b]8;;javascript:x\x07y\x1b]8;;\x07", "\u202egpj.exe\u2066", "a\x00b\x07c\x7f", "\xff\xfe\xc3", "&lt;b&gt; &amp;",
	"/* */ <!-- --> */", "`${x}` <%= y %> {{z}}", "line\r\nline\rover", "é\b\b\bx", "", "\n\n", "\u2028\u2029\ufeff", "{\"a\": \"</script>\"}", strings.Repeat("<", 300),
}

// tags is every element of a fragment, and whether it has other attributes than a class of ours.
func tags(t *testing.T, fragment string) []string {
	t.Helper()
	doc := kit.Try(html.Parse(strings.NewReader("<body>" + fragment))).Must(t)
	var out []string
	for n := range doc.Descendants() {
		if n.Type != html.ElementNode || n.Data == "html" || n.Data == "head" || n.Data == "body" {
			continue
		}
		name := n.Data
		for _, a := range n.Attr {
			name += " " + a.Key
		}
		out = append(out, name)
	}
	return out
}

// unmarked is a fragment's text.
func unmarked(t *testing.T, fragment string) string {
	t.Helper()
	doc := kit.Try(html.Parse(strings.NewReader("<body><pre>\n" + fragment))).Must(t)
	var b strings.Builder
	for n := range doc.Descendants() {
		if n.Type == html.TextNode {
			b.WriteString(n.Data)
		}
	}
	return b.String()
}

func TestText(t *testing.T) {
	for in, want := range map[string]string{
		`<a href="x">&'`: "&lt;a href=&#34;x&#34;&gt;&amp;&#39;",
		"a\tb\nc":        "a\tb\nc",
		"a\x00b":         `a<span class="ctl">␀</span>b`,
		"\u202eabc":      `<span class="ctl">U+202E</span>abc`,
		"\u0085x":        `<span class="ctl">U+0085</span>x`,
		"é\xffü":         "é\ufffdü",
		"한국어 🎉":          "한국어 🎉",
	} {
		kit.Equal(t, in, textOf(in), want)
	}
}

func TestNothingGetsOut(t *testing.T) {
	allowed := map[string]bool{"span class": true, "mark": true}
	for _, text := range hostile {
		diff := ""
		lines, _ := markup.NewBudget().Diff(text, "x"+text+"\ny", 3, 100)
		for _, l := range lines {
			diff += string(l.HTML)
		}
		for name, got := range map[string]string{"Text": textOf(text), "ANSI": ansiOf(text), "Diff": diff} {
			for _, tag := range tags(t, got) {
				kit.Check(t, allowed[tag], "%s of %q has <%s>: %s", name, text, tag, got)
			}
		}
	}
}

func TestANSI(t *testing.T) {
	for in, want := range map[string]string{
		"\x1b[31mred\x1b[0m plain":       `<span class="f1">red</span> plain`,
		"\x1b[1;32;44mx\x1b[22my\x1b[mz": `<span class="f2 b4 bo">x</span><span class="f2 b4">y</span>z`,
		"\x1b[91mx":                      `<span class="f9">x</span>`,
		"\x1b[107mx":                     `<span class="b15">x</span>`,
		"\x1b[38;5;196mx":                `<span class="f1">x</span>`,
		"\x1b[38;5;3mx":                  `<span class="f3">x</span>`,
		"\x1b[48;2;0;0;0mx":              `<span class="b0">x</span>`,
		"\x1b[38;2;1mx":                  `<span class="f0">x</span>`,
		"\x1b[38mx":                      `x`,
		"\x1b[7mx":                       `<span class="inv">x</span>`,
		"\x1b[31;7mx":                    `<span class="b1">x</span>`,
		"\x1b[2;3;4;9mx":                 `<span class="di it un st">x</span>`,
		"\x1b[99999999999999999999mx":    `x`,
		"\x1b[?25lx\x1b[2K\x1b[1Ay":      `xy`,
		"\x1b]0;title\x07x":              `x`,
		"\x1b]8;;https://evil.example\x1b\\x\x1b]8;;\x1b\\": `x`,
		"\x1b]8;;no end":       ``,
		"\x1bPq#0\x1b\\x":      `x`,
		"\u009b31mx":           `<span class="f1">x</span>`,
		"\x1b[31":              ``,
		"a\x1b":                `a`,
		"\x1b(Bx":              `x`,
		"\x1b\nx":              "\nx",
		"10%\r50%\r100%\ndone": "100%\ndone",
		"line\r\nline\r\n":     "line\nline\n",
		"_\bx":                 "x",
		"é\b\b\by":             "y",
		"\x1b[31m<b>\x1b[0m":   `<span class="f1">&lt;b&gt;</span>`,
	} {
		kit.Equal(t, in, ansiOf(in), want)
	}
}

// FuzzANSI: whatever a program prints, only spans with classes come out.
func FuzzANSI(f *testing.F) {
	for _, s := range hostile {
		f.Add(s)
	}
	f.Add("\x1b[31;;;38;5m\x1b[\x1b[m\x1b]\x1b")
	f.Fuzz(func(t *testing.T, s string) {
		got := ansiOf(s)
		for _, tag := range tags(t, got) {
			kit.Equal(t, fmt.Sprintf("%q has <…>: %s", s, got), tag, "span class")
		}
		kit.Equal(t, fmt.Sprintf("%q leaves something open: %s", s, got), strings.Count(got, "<span"),
			strings.Count(got, "</span>"))
	})
}

func TestMarkdown(t *testing.T) {
	for in, want := range map[string]string{
		"**bold** *em* ~~gone~~ `code`":               `<p><strong>bold</strong> <em>em</em> <del>gone</del> <code>code</code></p>`,
		"# Title":                                     `<h1>Title</h1>`,
		"- [x] done\n- [ ] open":                      `<li><input checked="" disabled="" type="checkbox"> done</li>`,
		"| a | b |\n|---|--:|\n| 1 | 2 |":             `<th align="right">b</th>`,
		"```go\nfunc f() {}\n```":                     `<pre class="code" tabindex="0" role="group" aria-label="Code"><code><span class="tk">func</span>`,
		"```\n<b>\n```":                               `<pre class="code" tabindex="0" role="group" aria-label="Code"><code>&lt;b&gt;`,
		"    indented <b>":                            `<pre class="code" tabindex="0" role="group" aria-label="Code"><code>indented &lt;b&gt;`,
		"https://example.org/a?b=c":                   `<a href="https://example.org/a?b=c" rel="nofollow noreferrer">https://example.org/a?b=c</a>`,
		"[mail](mailto:kim@example.org)":              `<a href="mailto:kim@example.org"`,
		"![alt](https://example.org/x.png)":           `<a class="picture" href="https://example.org/x.png" rel="nofollow noreferrer">alt</a>`,
		"text <b onclick=x>raw</b>":                   `<p>text &lt;b onclick=x&gt;raw&lt;/b&gt;</p>`,
		"<div>\nblock\n</div>":                        `<pre class="plain" tabindex="0" role="group" aria-label="Text">&lt;div&gt;`,
		"[x](javascript:alert(1))":                    `<p>x</p>`,
		"[x](/logout)":                                `<p>x</p>`,
		"[x](//evil.example)":                         `<p>x</p>`,
		"7. seven":                                    `<ol start="7">`,
		"<script>alert(1)</script>\n\nafter **that**": `<p>after <strong>that</strong></p>`,
	} {
		kit.Has(t, in, markdownOf(in), want)
	}
}

// TestMarkdownBounds: texts made to cost much are not read as Markdown.
func TestMarkdownBounds(t *testing.T) {
	for name, in := range map[string]string{
		"long": strings.Repeat("a **b** ", 20_000), "quotes": strings.Repeat(">", 10_000), "brackets": strings.Repeat("[", 10_000),
		"stars": strings.Repeat("*a_", 10_000), "lists": strings.Repeat("- ", 10_000), "ticks": strings.Repeat("`a", 10_000),
	} {
		got := markdownOf(in)
		kit.Check(t, strings.HasPrefix(got, `<pre class="plain" tabindex="0" role="group" aria-label="Text">`), "%s: %.80s", name, got)
	}
}

var fromMarkdown = map[string]bool{"span class": true, "pre class tabindex role aria-label": true, "code": true, "p": true, "br": true, "hr": true, "h1": true, "h2": true, "h3": true, "h4": true,
	"h5": true, "h6": true, "blockquote": true, "ul": true, "ol": true, "ol start": true, "li": true, "strong": true, "em": true, "del": true, "table": true, "thead": true,
	"tbody": true, "tr": true, "th": true, "td": true, "th align": true, "td align": true, "a href rel": true, "a class href rel": true, "a class": true,
	"input checked disabled type": true, "input disabled type": true, "div": true}

func checkMarkdown(t *testing.T, in string) {
	t.Helper()
	got := markdownOf(in)
	for _, tag := range tags(t, got) {
		kit.Check(t, fromMarkdown[tag], "%q has <%s>: %s", in, tag, got)
	}
	low := strings.ToLower(got)
	kit.Check(t, !strings.Contains(low, `href="javascript`) && !strings.Contains(low, `href="data`) &&
		!strings.Contains(low, `href="vbscript`) && !strings.Contains(low, `href="/`), "%q leads somewhere: %s", in, got)
}

func TestMarkdownHostile(t *testing.T) {
	for _, s := range hostile {
		checkMarkdown(t, s)
		checkMarkdown(t, "# "+s+"\n\n- "+s+"\n\n["+s+"]("+s+") !["+s+"]("+s+")\n\n```"+s+"\n"+s+"\n```\n\n| "+s+" |\n|---|\n| "+s+" |\n\n<"+s+">")
	}
}

func FuzzMarkdown(f *testing.F) {
	for _, s := range hostile {
		f.Add(s)
	}
	f.Add("[x](java\nscript:y) <https://a.b/\"x> ![a][b]\n\n[b]: javascript:z")
	f.Fuzz(func(t *testing.T, s string) {
		if len(s) < 4000 {
			checkMarkdown(t, s)
		}
	})
}

// TestTally counts a line that is in another place as moved, and a blank one not at all.
func TestTally(t *testing.T) {
	for _, c := range []struct {
		a, b                  []uint64
		removed, added, moved int64
	}{
		{nil, nil, 0, 0, 0},
		{[]uint64{1, 2, 3}, []uint64{1, 2, 3}, 0, 0, 0},
		{[]uint64{1, 2, 3, 4, 5}, []uint64{1, 9, 5, 2}, 2, 1, 1},
		{[]uint64{1, 7, 7, 0}, []uint64{1, 7}, 0, 0, 1}, // one of two that are alike is left out
		{[]uint64{1}, []uint64{2, 0, 1, 1}, 0, 1, 0},
	} {
		removed, added, moved := markup.Tally(c.a, c.b, markup.Compare(c.a, c.b))
		kit.Check(t, removed == c.removed && added == c.added && moved == c.moved,
			"%v → %v: %d removed, %d added, %d moved", c.a, c.b, removed, added, moved)
	}
}
