package markup_test

import (
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
