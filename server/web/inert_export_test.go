package web_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/renderer/html"
	nethtml "golang.org/x/net/html"

	"github.com/ccship/ccship/server/web/markup"
)

// live lists what a browser would run or fetch of Markdown that is rendered with its HTML in use.
func live(t *testing.T, source string) (out []string) {
	t.Helper()
	var b bytes.Buffer
	if err := goldmark.New(goldmark.WithRendererOptions(html.WithUnsafe())).Convert([]byte(source), &b); err != nil {
		t.Fatal(err)
	}
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
		}
	})
	return out
}

// hostileMarkdown is HTML in every place where Markdown takes or hides it.
var hostileMarkdown = []string{
	"<script>alert(1)</script>", "before <img src=x onerror=alert(1)> after", "<div\nonclick=alert(1)>x</div>",
	"```\n<script>alert(1)</script>", "~~~~\n<script>alert(1)</script>\n~~~", "- item\n\n  <script>alert(1)</script>",
	"    <script>alert(1)</script>", "<!-- -->\n<script>alert(1)</script>", "`` ` <script>alert(1)</script>",
	"<div>\n```\n</div>\n\n```\n<script>alert(1)</script>\n```", "<![CDATA[\n<script>alert(1)</script>]]>",
	"<?php\n<svg onload=alert(1)>", "> <iframe src=x>\n> ```\n<script>alert(1)</script>", "\\<script>alert(1)</script>\\\\<script>alert(2)</script>",
	"[x](<\n<script>alert(1)</script>", "x\r<script>alert(1)</script>", "<a href='`'><script>`alert(1)</script>",
	strings.Repeat("> ", 300) + "<script>alert(1)</script>", "- a\n- b", "1. a",
}

// TestMarkdownExportInert: no HTML of a transcript is used by whoever renders an exported .md, whatever surrounds it.
func TestMarkdownExportInert(t *testing.T) {
	s := loggedIn(t)
	quote := func(s string) string {
		b, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
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
	if found := live(t, got); len(found) > 0 {
		t.Errorf("the export has %q", found)
	}
	if !strings.Contains(got, "alert(1)") {
		t.Error("the export lacks what was said")
	}
}

// TestInertKeepsCode: code is not changed, and text without HTML is not either.
func TestInertKeepsCode(t *testing.T) {
	for _, want := range []string{"a < b and `<b>` and\n\n```go\nif a < b {\n<script>\n```\n\nrest", "# Title\n\n- a\n  - b <https://example.org>", ""} {
		if got, ok := markup.Inert(want); !ok || got != want {
			t.Errorf("%q became %q, %v", want, got, ok)
		}
	}
	if got, _ := markup.Inert("a <b>c</b>"); got != "a &lt;b>c&lt;/b>" {
		t.Errorf("got %q", got)
	}
}

// TestInertMixed joins texts of random pieces, each made inert by itself.
func TestInertMixed(t *testing.T) {
	pieces := []string{"```", "````", "~~~", "`", "``", "<script>", "</script>", "<img src=x onerror=a()>", "<div>", "</div>", "<!--", "-->", "<a title='", "'>",
		"\n", "\n", "\n\n", " ", "    ", "\t", "- ", "> ", "1. ", "[", "](", ")", "\\", "x", "<pre>", "</pre>", "*", "# ", "===\n", "| a |\n|---|\n"}
	r := rand.New(rand.NewPCG(1, 2))
	for round := range 4000 {
		var all strings.Builder
		for range 3 {
			var one strings.Builder
			for range 1 + r.IntN(14) {
				one.WriteString(pieces[r.IntN(len(pieces))])
			}
			if inert, ok := markup.Inert(one.String()); ok {
				all.WriteString("\n<!-- -->\n\n" + inert + "\n")
			}
		}
		if found := live(t, all.String()); len(found) > 0 {
			t.Fatalf("round %d: %q is live in %q", round, found, all.String())
		}
	}
}

// TestNotCached: nothing between server and reader, nor the reader's disk, keeps images and documents.
func TestNotCached(t *testing.T) {
	s := loggedIn(t)
	s.tour(t)
	for _, path := range []string{sessionPath(tourID, "/image/30/0"), sessionPath(tourID, ""), sessionPath(tourID, "/bytes/0")} {
		a := s.do(t, "GET", path, nil, nil)
		if got := a.header.Get("Cache-Control"); a.code != 200 || got != "private, no-store" {
			t.Errorf("%s: %d, Cache-Control is %q", path, a.code, got)
		}
	}
}
