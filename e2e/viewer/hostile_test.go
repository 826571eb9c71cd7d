//go:build unix

package viewer_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"unicode"

	"github.com/ccship/ccship/e2e/kit"
)

// long has every payload shown on every kind of page, and a session of 100 MB opened.
func long() bool { return kit.HasSetting("long") }

// payloads are what would run, load or lead somewhere if a page let it. What runs calls canary or opens a dialog.
var payloads = []string{
	`<script>canary(1)</script>`,
	`</script></title></textarea></pre><script>canary(2)</script>`,
	`"><img src=x onerror=canary(3)>`,
	`' onmouseover='canary(4)' autofocus tabindex=1 onfocus='canary(4)`,
	`" autofocus onfocus="canary(5)" accesskey="x`,
	`<svg onload=canary(6)><script>canary(6)</script><animate onbegin=canary(6) attributeName=x dur=1s></svg>`,
	`[click](javascript:canary(7)) [click](JaVaScRiPt:canary(7)) [click](java&#115;cript:canary(7)) <javascript:canary(7)> [c](data:text/html,<script>canary(7)</script>)`,
	`![x](https://evil.example/pixel.png "t") ![y](data:image/svg+xml;base64,PHN2Zy8+) ![z](//evil.example/z.png)`,
	"[x]: data:text/html,<script>canary(8)</script>\n\n[x]",
	`<a href="javascript:canary(9)">x</a><iframe src="https://evil.example"></iframe><base href="https://evil.example/"><object data="https://evil.example"></object>`,
	"```js\"><script>canary(10)</script>\n</code></pre><script>canary(10)</script>\n```",
	"```\" onload=\"canary(11)\nx\n```",
	"\x1b]8;;javascript:canary(12)\x07click\x1b]8;;\x07 \x1b[31m<b onclick=canary(12)>\x1b[0m \x1b[<script>canary(12)</script>",
	"\u202egpj.exe\u2066 \u0000 \ufeff \u2028<script>canary(13)</script>",
	`<style>*{background:url(https://evil.example/s)}</style><link rel=stylesheet href=https://evil.example><meta http-equiv=refresh content="0;url=https://evil.example">`,
	"{{.}} ${canary(14)} <%= 1 %> <!--><script>canary(14)</script>--> [[constructor]] `${canary(14)}`",
	`<form action="https://evil.example"><input name=key><button formaction="javascript:canary(15)">x</button></form>`,
	`<math><mtext></form><form><mglyph><style></math><img src onerror=canary(16)>`,
	"| <img src=x onerror=canary(17)> | b |\n|---|---|\n| <script>canary(17)</script> | [y](vbscript:canary(17)) |",
	`<details open ontoggle=canary(18)><summary>x</summary></details><video><source onerror=canary(18)></video><dialog open>x</dialog>`,
	`https://evil.example/"onmouseover="canary(19) www.evil.example'><script>canary(19)</script>`,
	`<template><script>canary(20)</script></template><noscript><p title="</noscript><img src=x onerror=canary(20)>"></noscript>`,
	`<p id="main" class="item"><p id="items"><p id="pill"><div data-copy="x" data-src="//evil.example/piece" data-base="//evil.example">`,
}

// hostileSVG would run when it is shown as a document, or put into a page as markup.
const hostileSVG = `<svg xmlns="http://www.w3.org/2000/svg" onload="canary(30)"><script>canary(30);alert(30)</script><image href="https://evil.example/i.png"/></svg>`

// hostileScript has a payload in every place that a page shows.
func hostileScript(n int, p string) *script {
	s := &script{id: fmt.Sprintf("%08d-bad0-4bad-8bad-%012d", n, n), cwd: "/tmp/" + p, branch: p, model: p, at: t0}
	s.prompt(p, picture("image/svg+xml", []byte(hostileSVG)), picture("image/png", []byte(hostileSVG)), picture("text/html", []byte(p)), picture(p, []byte(p)))
	s.plain(object{"type": "custom-title", "customTitle": p, "sessionId": s.id})
	s.answer(10, thought(p), words(p), object{"type": p, p: p})
	for _, name := range []string{"Bash", "Edit", "MultiEdit", "Write", "Read", "Grep", "TodoWrite", "Task", "WebFetch", "ExitPlanMode", "NotebookEdit", "mcp__" + p + "__" + p, p} {
		input := object{"command": p, "description": p, "file_path": p, "old_string": "a " + p, "new_string": "b " + p, "content": p, "pattern": p, "path": p, "prompt": p,
			"subagent_type": p, "plan": p, "url": p, "new_source": p, "notebook_path": p, p: p, "edits": []object{{"old_string": p, "new_string": "x" + p}},
			"todos": []object{{"content": p, "status": p, "activeForm": p}}}
		s.tool(name, input, []object{{"type": "text", "text": p}, picture("image/svg+xml", []byte(hostileSVG))}, object{"stdout": p, "stderr": p, "filePath": p, "agentId": p,
			"file": object{"filePath": p, "content": p}, "structuredPatch": []object{{"oldStart": 1, "newStart": 1, "lines": []string{"-" + p, "+" + p, " " + p, p}}}}, 0)
		id := s.call()
		s.answer(5, use(id, name, input))
		s.result(id, p, "Error: "+p, 0, true)
	}
	s.user("<command-name>"+p+"</command-name><command-args>"+p+"</command-args>", nil)
	s.user("<local-command-stdout>"+p+"</local-command-stdout>", nil)
	s.user("<bash-input>"+p+"</bash-input>", nil)
	s.compact(p, p, 5)
	s.record(object{"type": "system", "subtype": p, "content": p})
	s.record(object{"type": "attachment", "attachment": object{"type": "queued_command", "commandMode": "prompt", "prompt": p}})
	s.record(object{"type": "attachment", "attachment": object{"type": p, "content": p}})
	s.plain(object{"type": "pr-link", "prNumber": 1, "prUrl": "javascript:canary(31)//" + p, "sessionId": s.id})
	s.plain(object{"type": p, "message": p})
	s.lines = append(s.lines, p+" is no record")
	return s
}

// hostilePath is a payload as far as it can be a document's path.
func hostilePath(p, ending string) string {
	return "d/n " + strings.ReplaceAll(strings.Map(func(r rune) rune { return kit.If(unicode.IsControl(r), '-', r) }, p), "/", "\u2215") + ending
}

// hostileArtifacts has a payload in every field of its artifacts.
func hostileArtifacts(s *site, x stream, p string) error {
	sum := sha256.Sum256([]byte(p))
	m := mark(hex.EncodeToString(sum[:6]), p, 2, 5, t0, p, p, p)
	m["port_id"], m["context_hash"] = p, p
	if err := s.sendArtifacts(s.key, x, "checkpoints", m); err != nil {
		return err
	}
	for _, ending := range []string{".md", ".svg", ".html"} {
		one, two := version(hostilePath(p, ending), 1, t0, p), version(hostilePath(p, ending), 2, t0, "# "+p+"\n\n"+hostileSVG+p)
		one["by"], two["by"] = p, p
		if err := s.sendArtifacts(s.key, x, "documents", one, two); err != nil {
			return err
		}
	}
	return s.sendFile(s.key, x, "tool-results/x.txt", "file "+p)
}

// TestHostile: on every kind of page, unfolded, no payload runs, asks elsewhere or breaks the page's policy.
func TestHostile(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	var ids []string
	for i, p := range payloads {
		h := hostileScript(i, p)
		ids = append(ids, h.id)
		x := stream{id: h.id, machine: p + "-machine", host: p, project: p, cwd: p}
		must(t, s.send(s.key, x, h.lines))
		must(t, hostileArtifacts(s, x, p))
		x.generation, x.rewoundTo = 1, 3
		must(t, s.send(s.key, x, h.lines[5:]))
		if i%7 == 0 {
			a := x
			a.id, a.parent, a.generation, a.rewoundTo = h.id+"/agent-"+strings.Map(printable, p), h.id, 0, 0
			must(t, s.send(s.key, a, h.lines[:4]))
		}
	}
	s.settled(t)
	b := newTab(t, s.url)
	b.login(s.key)
	show := func(path string) {
		b.open(path)
		inert(b, path)
	}
	for _, path := range []string{"/", "/usage?range=all&by=project", "/usage?range=all&by=machine", "/drops", "/search?q=canary", "/search?q=" + url.QueryEscape(`"script canary"`), "/account"} {
		show(path)
	}
	for i, id := range ids {
		show("/sessions/" + id)
		if i%8 > 0 && !long() {
			continue
		}
		show("/sessions/" + id + "?mode=everything")
		show("/sessions/" + id + "/compare")
		show("/sessions/" + id + "/entry/0")
		show("/sessions/" + id + "?mode=prompts")
		show("/sessions/" + id + "/context")
		show("/sessions/" + id + "/file?name=tool-results/x.txt")
		for _, ending := range []string{".md", ".svg", ".html"} {
			at := "?path=" + url.QueryEscape(hostilePath(payloads[i], ending))
			show("/sessions/" + id + "/document" + at)
			show("/sessions/" + id + "/document/compare" + at)
		}
	}
	for i, p := range payloads[:6] { // what is typed comes back
		if i%2 > 0 && !long() {
			continue
		}
		show("/search?q=" + url.QueryEscape(p+" project:"+p))
		show("/?q=" + url.QueryEscape(p) + "&branch=" + url.QueryEscape(p) + "&model=" + url.QueryEscape(p))
	}
	b.allow("404")
	show("/sessions/" + url.PathEscape(payloads[0]))
	hostileExports(t, s, ids)
}

// inert unfolds the page, goes over all of it with the mouse and the focus, and demands that nothing ran.
func inert(b *tab, path string) {
	b.t.Helper()
	eval[any](b, `(async () => {
		document.querySelectorAll("details").forEach((d) => { d.open = true; });
		for (const e of document.querySelectorAll("main *")) for (const kind of ["mouseover", "mouseenter", "focus", "load", "error", "toggle"]) e.dispatchEvent(new Event(kind, { bubbles: true }));
		for (const e of document.querySelectorAll("main a, main button, main summary, main [tabindex]")) e.focus({ preventScroll: true });
		await Promise.all([...document.images].map((i) => i.decode().catch(() => 0)));
	})()`)
	ran := eval[[]float64](b, `window.ran`)
	kit.Check(b.t, len(ran) == 0, "%s: payload %v ran", path, ran)
	for _, fault := range eval[[]string](b, `[...document.querySelectorAll("script, iframe, object, embed, base, style, form[action], link, meta[http-equiv]")].filter((e) =>
		!(e.tagName === "SCRIPT" && e.src.startsWith(location.origin + "/assets/") && !e.textContent) && !(e.tagName === "LINK" && e.href.startsWith(location.origin + "/assets/")) &&
		!(e.tagName === "FORM" && e.action.startsWith(location.origin))).map((e) => e.outerHTML.slice(0, 200))`) {
		b.t.Errorf("%s has %s", path, fault)
	}
	kit.Equal(b.t, fmt.Sprintf("%s led to", path), eval[string](b, `location.origin`), b.home)
}

// hostileExports opens exported pages from a place that sets no policy: they carry their own.
func hostileExports(t *testing.T, s *site, ids []string) {
	t.Helper()
	files := map[string][]byte{}
	for i, id := range ids {
		if i%4 > 0 && !long() {
			continue
		}
		status, body, err := s.ask("GET", "/api/sessions/"+id+"/export?format=html", s.key, "", nil)
		must(t, err)
		kit.Require(t, status == http.StatusOK && strings.Contains(string(body), "canary"),
			"the export of %s answers %d", id, status)
		files["/"+id+".html"] = body
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write(files[r.URL.Path]) // the browser may be gone
	}))
	t.Cleanup(server.Close)
	b := newTab(t, server.URL)
	b.allow("favicon")
	for path := range files {
		b.open(path)
		ran := eval[[]float64](b, `document.querySelectorAll("details").forEach((d) => { d.open = true; }), window.ran`)
		kit.Check(t, len(ran) == 0, "exported %s: payload %v ran", path, ran)
	}
}

// TestCanarySings proves that a payload that runs is seen.
func TestCanarySings(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `<!doctype html><link rel="icon" href="data:image/gif;base64,R0lGODlhAQABAAAAACw="><main>%s<object type="image/svg+xml" data="data:image/svg+xml;base64,%s"></object></main>`,
			strings.Join(payloads[:5], " "), base64.StdEncoding.EncodeToString([]byte("<svg/>")))
	}))
	defer server.Close()
	b := watchTab(t, server.URL)
	b.open("/")
	b.wait("the first payloads run", `[1, 2, 3].every((n) => window.ran.includes(n))`)
	kit.Check(t, len(b.seen()) != 0, "the tab saw no trouble")
}

// printable keeps what may stand in a session's id.
func printable(r rune) rune {
	if r < ' ' || r == 127 {
		return -1
	}
	return r
}
