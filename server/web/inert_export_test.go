package web_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/renderer/html"
	nethtml "golang.org/x/net/html"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server/web/markup"
)

// harmless are the addresses that an exported link may have.
var harmless = regexp.MustCompile(`(?i)^(https?://|mailto:)`)

// live lists what a browser would run or fetch of Markdown that is rendered with its HTML in use.
func live(t *testing.T, source string) (out []string) {
	t.Helper()
	var b bytes.Buffer
	kit.Must(t, goldmark.New(goldmark.WithRendererOptions(html.WithUnsafe())).Convert([]byte(source), &b))
	nodes(t, b.String(), func(n *nethtml.Node) {
		if n.Type != nethtml.ElementNode {
			return
		}
		switch n.Data {
		case "script", "style", "iframe", "svg", "object", "form", "meta", "base":
			out = append(out, n.Data)
		}
		for _, a := range n.Attr {
			if strings.HasPrefix(a.Key, "on") {
				out = append(out, n.Data+" "+a.Key)
			}
			if a.Key == "href" && !harmless.MatchString(a.Val) || a.Key == "src" {
				out = append(out, n.Data+" "+a.Key+" "+a.Val)
			}
		}
	})
	return out
}

// hostileMarkdown is HTML wherever Markdown takes or hides it.
var hostileMarkdown = []string{
	"<script>alert(1)</script>", "before <img src=x onerror=alert(1)> after", "<div\nonclick=alert(1)>x</div>",
	"```\n<script>alert(1)</script>", "~~~~\n<script>alert(1)</script>\n~~~", "- item\n\n  <script>alert(1)</script>",
	"    <script>alert(1)</script>", "<!-- -->\n<script>alert(1)</script>", "`` ` <script>alert(1)</script>",
	"<div>\n```\n</div>\n\n```\n<script>alert(1)</script>\n```", "<![CDATA[\n<script>alert(1)</script>]]>",
	"<?php\n<svg onload=alert(1)>", "> <iframe src=x>\n> ```\n<script>alert(1)</script>", "\\<script>alert(1)</script>\\\\<script>alert(2)</script>",
	"[x](<\n<script>alert(1)</script>", "x\r<script>alert(1)</script>", "<a href='`'><script>`alert(1)</script>",
	strings.Repeat("> ", 300) + "<script>alert(1)</script>", "- a\n- b", "1. a",
	"[x](javascript:alert(1))", "[**x** `y`](<javascript:alert(1)>)", "[](data:text/html,x)", "[x](JaVaScRiPt:alert(1) 'title')",
	"[x](&#106;avascript:alert(1))", "[x](java&Tab;script:alert(1))", "[x](/relative)", "[x](ann@example.org)", "<ann@example.org>", "[x](//example.org)", "[x](vbscript:x) [y](https://example.org/y)",
	"[a]\n\n[a]: javascript:alert(1)", "[a][b] [b][] ![b]", "> [b]: <data:text/html,x>", "- [c]:\n  javascript:alert(1)\n\n[c]",
	"<javascript:alert(1)>", "<JAVASCRIPT:alert(1)> `<javascript:alert(1)>`", "![x](https://example.org/pixel.png)", "!\\[x](file:///etc/passwd)",
	"[![x](data:image/png;base64,AA)](javascript:alert(1))", "\\\\[x](javascript:alert(1))", "\\[x](javascript:alert(1))",
	"a\n\n[x](javascript:alert(1))\n\n![p](https://example.org/p.png)", "[d]: https://example.org/d.png", "![d]", "[x \\[ y](javascript:alert(1))", "[x]\n(javascript:alert(1))", "`[`x](javascript:alert(1))",
}

// TestMarkdownExportInert: no HTML of a transcript is used by a renderer of an exported .md, whatever surrounds it.
func TestMarkdownExportInert(t *testing.T) {
	s := loggedIn(t)
	quote := func(s string) string {
		b := kit.Try(json.Marshal(s)).Must(t)
		return string(b)
	}
	var lines []string
	for i, a := range hostileMarkdown {
		for _, b := range append(hostileMarkdown[:i:i], a) {
			lines = append(lines, `{"type":"user","message":{"role":"user","content":`+quote(a)+`}}`)
			for k, text := range []string{b, a} {
				lines = append(lines, fmt.Sprintf(`{"type":"assistant","message":{"role":"assistant","id":"%d-%d","model":"m","content":[{"type":"text","text":%s},`+
					`{"type":"tool_use","id":"t%d","name":%s,"input":{"command":%s}}]}}`, len(lines), k, quote(text), i, quote(a), quote(b)))
			}
			lines = append(lines, fmt.Sprintf(`{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t%d","content":%s}]}}`, i, quote(a)))
		}
	}
	h := head("hostile-markdown")
	h.Project = "<script>alert(1)</script>`<img src=x onerror=alert(1)>"
	s.put(t, h, lines...)
	got := s.get(t, sessionPath("hostile-markdown", "/export", "format", "md"))
	found := live(t, got)
	kit.Check(t, len(found) <= 0, "the export has %q", found)
	kit.Has(t, "the export lacks what was said", got, "alert(1)")
}

// TestInertKeepsCode: code is not changed, and text without HTML is not either.
func TestInertKeepsCode(t *testing.T) {
	for _, want := range []string{"a < b and `<b>` and\n\n```go\nif a < b {\n<script>\n```\n\nrest", "# Title\n\n- a\n  - b <https://example.org>", ""} {
		got, ok := markup.NewBudget().Inert(want)
		kit.Check(t, ok && got == want, "%q became %q, %v", want, got, ok)
	}
	got, _ := markup.NewBudget().Inert("a <b>c</b>")
	kit.Check(t, got == "a &lt;b>c&lt;/b>", "got %q", got)
}

// TestInertMixed joins texts of random pieces, each made inert by itself.
func TestInertMixed(t *testing.T) {
	pieces := []string{"[x](javascript:a)", "[a]: javascript:a\n", "[a]", "![", "](data:,a)", "<javascript:a>", "https://e.org", "```", "````", "~~~", "`", "``", "<script>", "</script>", "<img src=x onerror=a()>", "<div>", "</div>", "<!--", "-->", "<a title='", "'>",
		"\n", "\n", "\n\n", " ", "    ", "\t", "- ", "> ", "1. ", "[", "](", ")", "\\", "x", "<pre>", "</pre>", "*", "# ", "===\n", "| a |\n|---|\n"}
	r := rand.New(rand.NewPCG(1, 2))
	for round := range 4000 {
		var all strings.Builder
		for range 3 {
			var one strings.Builder
			for range 1 + r.IntN(14) {
				one.WriteString(pieces[r.IntN(len(pieces))])
			}
			if inert, ok := markup.NewBudget().Inert(one.String()); ok {
				all.WriteString("\n<!-- -->\n\n" + inert + "\n")
			}
		}
		found := live(t, all.String())
		kit.Require(t, len(found) == 0, "round %d: %q is live in %q", round, found, all.String())
	}
}

// TestNotCached: nothing between server and reader, nor the reader's disk, keeps images and documents.
func TestNotCached(t *testing.T) {
	s := loggedIn(t)
	s.tour(t)
	for _, path := range []string{sessionPath(tourID, "/image/30/0"), sessionPath(tourID, ""), sessionPath(tourID, "/bytes/0")} {
		a := s.do(t, "GET", path, nil, nil)
		got := a.header.Get("Cache-Control")
		kit.Check(t, a.code == 200 && got == "private, no-store", "%s: %d, Cache-Control is %q", path, a.code, got)
	}
}

// TestInertKeepsLinks: links that may be followed stay, and so does code, whatever it looks like.
func TestInertKeepsLinks(t *testing.T) {
	for source, want := range map[string]string{
		"[x](https://e.org) `[y](javascript:a)` [z](javascript:a)": "[x](https://e.org) `[y](javascript:a)` \\[z](javascript:a)",
		"[x](mailto:a@e.org) ![p](http://e.org/p)":                 "[x](mailto:a@e.org) \\![p](http://e.org/p)",
		"```\n[a]: javascript:x\n![p](q)\n```\n<javascript:x>":     "```\n[a]: javascript:x\n![p](q)\n```\n&lt;javascript:x>",
		"[a]\n\n[a]: https://e.org":                                "[a]\n\n[a]: https://e.org",
		"a[0] and [not a link]":                                    "a[0] and [not a link]",
	} {
		got, ok := markup.NewBudget().Inert(source)
		kit.Check(t, ok && got == want, "%q became %q, %v; want %q", source, got, ok, want)
	}
}
