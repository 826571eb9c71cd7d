package markup_test

import (
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

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
