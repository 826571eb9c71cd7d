package web_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"golang.org/x/net/html"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
)

// payloads are what would run, load or lead somewhere if a page let it.
var payloads = []string{
	`<script>alert(1)</script>`,
	`</script><script>alert(2)</script>`,
	`"><img src=x onerror=alert(3)>`,
	`' onmouseover='alert(4)`,
	`" autofocus onfocus="alert(5)`,
	`<svg onload=alert(6)><script>alert(6)</script></svg>`,
	`[click](javascript:alert(7)) [click](JaVaScRiPt:alert(7)) [click](java&#115;cript:alert(7)) <javascript:alert(7)>`,
	`![x](https://evil.example/pixel.png "t") ![y](data:image/svg+xml;base64,PHN2Zy8+)`,
	`[x]: data:text/html,<script>alert(8)</script>` + "\n\n[x]",
	`<a href="javascript:alert(9)">x</a><iframe src="https://evil.example"></iframe><base href="https://evil.example/">`,
	"```js\"><script>alert(10)</script>\n</code></pre><script>alert(10)</script>\n```",
	"```\" onload=\"alert(11)\nx\n```",
	"\x1b]8;;javascript:alert(12)\x07click\x1b]8;;\x07 \x1b[31m<b onclick=alert(12)>\x1b[0m \x1b[<script>",
	"\u202egpj.exe\u2066 \u0000 \ufeff \u2028<script>alert(13)</script>",
	`<style>body{background:url(https://evil.example)}</style><link rel=stylesheet href=https://evil.example><meta http-equiv=refresh content="0;url=https://evil.example">`,
	`{{.}} ${alert(14)} <%= 1 %> <!--><script>alert(14)</script>-->`,
	`<form action="https://evil.example"><input name=key><button formaction="javascript:alert(15)">`,
	`<math><mtext></form><form><mglyph><style></math><img src onerror=alert(16)>`,
	"| <img src=x onerror=alert(17)> | b |\n|---|---|\n| <script>alert(17)</script> | [y](vbscript:alert(17)) |",
	`&lt;script&gt;alert(18)&lt;/script&gt; &#x3c;script&#x3e;`,
	`https://evil.example/"onmouseover="alert(19) www.evil.example'><script>`,
	"\xff\xfe<script>alert(20)</script>",
}

// ownSVG is what our drawings are made from.
var ownSVG = []string{"svg", "path", "rect", "circle", "line", "text", "title", "desc", "a", "g"}

// inert reports whatever in a page is not ours and could do something.
func inert(page string) (wrong []string) {
	doc, err := html.Parse(strings.NewReader(page))
	if err != nil {
		return []string{err.Error()}
	}
	complain := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	for n := range doc.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		switch n.Data {
		case "script":
			if !strings.HasPrefix(attr(n, "src"), "/assets/viewer.js?v=") || n.FirstChild != nil {
				complain("a script: %q %s", attr(n, "src"), words(n))
			}
		case "link":
			if !strings.HasPrefix(attr(n, "href"), "/assets/") {
				complain("a link element to %q", attr(n, "href"))
			}
		case "iframe", "object", "embed", "base", "style", "math", "frame", "applet", "template", "video", "audio", "source", "area":
			complain("an element %s", n.Data)
		}
		if n.Namespace == "svg" && !slices.Contains(ownSVG, n.Data) {
			complain("an SVG element %s", n.Data)
		}
		for _, a := range n.Attr {
			checkAttr(n, a, complain)
		}
	}
	return wrong
}

var harmlessImage = regexp.MustCompile(`^(/sessions/[^"<> ]+|data:image/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/=]+)$`)

func checkAttr(n *html.Node, a html.Attribute, complain func(string, ...any)) {
	value := strings.TrimSpace(a.Val)
	switch {
	case strings.HasPrefix(a.Key, "on"), a.Key == "style", a.Key == "srcdoc", a.Key == "srcset", a.Key == "formaction",
		a.Key == "ping", a.Key == "background", a.Namespace == "xlink":
		complain("%s has %s=%q", n.Data, a.Key, a.Val)
	case a.Key == "src" && n.Data == "img" && !harmlessImage.MatchString(value):
		complain("an image from %q", a.Val)
	case a.Key == "action" && !strings.HasPrefix(value, "/"):
		complain("a form for %q", a.Val)
	case a.Key == "http-equiv":
		complain("a meta element %q", a.Val)
	case a.Key == "href" && n.Data == "a":
		u, err := url.Parse(value)
		if err != nil || u.Scheme != "" && u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "mailto" ||
			u.Scheme == "" && value != "" && !strings.HasPrefix(value, "/") && !strings.HasPrefix(value, "#") ||
			strings.HasPrefix(value, "//") {
			complain("a link to %q", a.Val)
		}
	}
}

// TestInertSees proves that the check can fail.
func TestInertSees(t *testing.T) {
	for _, page := range []string{
		`<script>x</script>`, `<script src="/assets/viewer.js?v=1">x</script>`, `<script src="https://evil.example"></script>`, `<p onclick=x>`,
		`<a href="javascript:x">`, `<a href=" JAVASCRIPT:x">`, `<a href="//evil.example">`, `<a href="data:text/html,x">`, `<img src="https://evil.example">`,
		`<img src="data:image/svg+xml;base64,AAAA">`, `<style>x</style>`, `<p style=x>`, `<svg><script>x</script></svg>`, `<svg><a xlink:href=x></a></svg>`,
		`<iframe>`, `<form action="https://evil.example">`, `<meta http-equiv=refresh content=0>`, `<link href=https://evil.example>`,
	} {
		kit.Check(t, len(inert(page)) != 0, "nothing is seen in %s", page)
	}
}

// script writes records that all have a payload wherever a record has something to say.
type script struct {
	p     string // the payload
	lines []string
	calls int
}

func (s *script) add(r map[string]any) {
	n := len(s.lines)
	r["uuid"], r["parentUuid"] = fmt.Sprintf("%s-%d", s.p, n), fmt.Sprintf("%s-%d", s.p, n-1)
	r["timestamp"], r["cwd"], r["gitBranch"], r["version"], r["sessionId"] = "2026-11-20T09:00:00Z", s.p, s.p, s.p, s.p
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(r); err != nil {
		panic(err)
	}
	s.lines = append(s.lines, strings.TrimSuffix(b.String(), "\n"))
}

func (s *script) user(content any, more ...any) {
	r := map[string]any{"type": "user", "message": map[string]any{"role": "user", "content": content}}
	for i := 0; i+1 < len(more); i += 2 {
		r[more[i].(string)] = more[i+1]
	}
	s.add(r)
}

func (s *script) assistant(blocks ...any) {
	s.add(map[string]any{"type": "assistant", "requestId": s.p, "message": map[string]any{"id": fmt.Sprint(s.p, len(s.lines)), "role": "assistant", "model": s.p,
		"content": blocks, "usage": map[string]any{"input_tokens": 5, "output_tokens": 7}}})
}

func (s *script) tool(name string, result, outcome any) {
	p := s.p
	input := map[string]any{"command": p, "description": p, "file_path": p, "old_string": "a " + p, "new_string": "b " + p, "content": p, "pattern": p, "path": p,
		"prompt": p, "subagent_type": p, "plan": p, "url": p, "new_source": p, p: p, "edits": []any{map[string]any{"old_string": p, "new_string": "x" + p}},
		"todos": []any{map[string]any{"content": p, "status": p}}}
	s.calls++
	id := fmt.Sprint("t", s.calls, p)
	s.assistant(map[string]any{"type": "tool_use", "id": id, "name": name, "input": input})
	s.user([]any{map[string]any{"type": "tool_result", "tool_use_id": id, "content": result, "is_error": s.calls%3 == 0}}, "toolUseResult", outcome)
}

func image(kind, data string) any {
	return map[string]any{"type": "image", "source": map[string]any{"type": "base64", "media_type": kind, "data": base64.StdEncoding.EncodeToString([]byte(data))}}
}

func text(s string) any { return map[string]any{"type": "text", "text": s} }

// hostile is a conversation that has a payload in every position that a page shows.
func hostile(p string) []string {
	s := &script{p: p}
	svg := `<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script>` + p + `</svg>`
	s.user(p)
	s.user([]any{text(p), image("image/svg+xml", svg), image("image/png", svg), image(p, "\x89PNG\r\n\x1a\n"), image("text/html", p)})
	s.assistant(map[string]any{"type": "thinking", "thinking": p}, text(p), map[string]any{"type": p, "x": p})
	for _, name := range []string{"Bash", "Edit", "MultiEdit", "Write", "Read", "Grep", "Glob", "TodoWrite", "Task", "WebFetch", "ExitPlanMode", "NotebookEdit", "mcp__" + p + "__" + p, p} {
		s.tool(name, p, map[string]any{"stdout": p, "stderr": p, "agentId": p, "status": p, "filePath": p, "file": map[string]any{"filePath": p, "content": p},
			"structuredPatch": []any{map[string]any{"oldStart": 1, "newStart": 1, "lines": []any{"-" + p, "+" + p, " " + p, "", p}}}})
		s.tool(name, []any{text(p), image("image/svg+xml", svg)}, p)
	}
	s.user("<command-name>"+p+"</command-name><command-args>"+p+"</command-args>", "isMeta", false)
	for _, tag := range []string{"local-command-stdout", "bash-input", "bash-stdout", "task-notification"} {
		s.user("<" + tag + "><summary>" + p + "</summary></" + tag + ">")
	}
	s.user(p, "isCompactSummary", true)
	s.add(map[string]any{"type": "system", "subtype": "compact_boundary", "compactMetadata": map[string]any{"trigger": p, "preTokens": 5}})
	s.add(map[string]any{"type": "system", "subtype": p, "content": p})
	s.add(map[string]any{"type": "attachment", "attachment": map[string]any{"type": "queued_command", "commandMode": "prompt", "prompt": p}})
	s.add(map[string]any{"type": "attachment", "attachment": map[string]any{"type": p, "content": p}})
	s.add(map[string]any{"type": "pr-link", "prNumber": 1, "prUrl": "javascript:alert(1)//" + p})
	s.add(map[string]any{"type": "pr-link", "prNumber": 1, "prUrl": "https://x.example/" + p})
	s.add(map[string]any{"type": "continued-in", "continuedInSessionId": p})
	s.add(map[string]any{"type": p, "message": p})
	s.add(map[string]any{"type": "custom-title", "customTitle": p})
	s.add(map[string]any{"type": "assistant", "isApiErrorMessage": true, "error": p, "message": map[string]any{"role": "assistant", "model": "<synthetic>", "content": []any{text(p)}}})
	return append(s.lines, p, "")
}

// hostileArtifacts stores a payload in every field of artifacts.
func hostileArtifacts(t *testing.T, s *site, h server.Head, p string) {
	t.Helper()
	line := int64(len(p)) % 7
	s.markAs(t, h, server.Checkpoint{ID: "cp-" + p, PortID: p, TokensUsed: 5, TokenBudget: 4, Trigger: p, ContextHash: p, Summary: p, ActiveFiles: []string{p, p}, Created: noon, Generation: 1, Line: line},
		server.Checkpoint{ID: p, Trigger: "auto_80", Summary: p, Created: noon, Line: -1})
	for i, name := range []string{hostileName(p, ".md"), hostileName(p, ".html"), hostileName(p, "")} {
		e, f := artifact(name, 1, p), artifact(name, 2, "# "+p+"\n\n"+p)
		e.By, f.By, f.Line = p, p, int64(i)
		s.putDocuments(t, h, e, f)
	}
	w := kit.Try(s.store.RequestLink(t.Context(), server.Scope{All: true}, server.Ref{SessionID: h.SessionID, Machine: &h.Machine}, server.LinkRequestInput{Path: hostileName(p, ".x"), Link: true, At: today})).Must(t)
	s.putDocuments(t, h, server.DocumentEvent{Path: w.Path, Change: server.Refused, By: p, At: today, Reason: p, LinkRequest: w.ID, Line: -1})
	h.SessionID, _, _ = strings.Cut(h.SessionID, "/") // an agent's files are its session's
	s.file(t, h, "tool-results/x.txt", p)
}

// hostileName is a payload as far as it can be a path.
func hostileName(p, ending string) string {
	p = strings.ToValidUTF8(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == '/' {
			return '-'
		}
		return r
	}, p), "")
	return "d " + p + "/n " + p + ending
}

// TestHostile puts each payload everywhere and looks at the pages there are of it.
func TestHostile(t *testing.T) {
	s := loggedIn(t)
	for i, p := range payloads {
		h := head(fmt.Sprintf("%d %s/agent-1", i, p))
		h.Project, h.Host, h.Cwd, h.Path, h.ProjectHash, h.Machine = p, p, p, p, p, p+"m"
		lines := hostile(p)
		s.put(t, h, lines...)
		h.Generation, h.RewoundTo = 1, 2
		s.put(t, h, lines[3:]...)
		hostileArtifacts(t, s, h, p)
		at := func(below string, q ...string) string {
			v := url.Values{"machine": {h.Machine}}
			for i := 0; i+1 < len(q); i += 2 {
				v.Set(q[i], q[i+1])
			}
			return "/sessions/" + url.PathEscape(h.SessionID) + below + "?" + v.Encode()
		}
		for _, path := range []string{"/?" + url.Values{"q": {p}, "branch": {p}, "model": {p}, "project": {p}, "machine": {p}, "since": {p}}.Encode(),
			"/search?" + url.Values{"q": {`"` + strings.ReplaceAll(p, `"`, "") + `"`}}.Encode(), "/search?" + url.Values{"q": {"script kind:" + p}}.Encode(), at("", "mode", "everything"), at("", "generation", "0"), at("/prompts"),
			at("/compare"), at("/tail", "after", "-1", "inside", "1"), at("/entry/1"), at(fmt.Sprintf("/entry/%d", 3+2*i)), at("/entry/0", "generation", "0")} {
			s.inert(t, p, path)
		}
		for _, path := range []string{at("/context"), at("/context", "bare", "1"), at("/artifacts"), at("/file", "name", "tool-results/x.txt"), at("/document", "path", hostileName(p, ".md")),
			at("/document", "path", hostileName(p, ".md"), "source", "1"), at("/document", "path", hostileName(p, ".html")), at("/document", "path", hostileName(p, ""), "version", "1"), at("/document/compare", "path", hostileName(p, ".md"))} {
			s.inert(t, p, path)
		}
		s.inertExport(t, p, at("/export", "format", "html"))
	}
	for _, path := range []string{"/", "/search?q=alert", "/search?q=script", "/drops", "/usage?range=all&by=project", "/usage?range=all&by=machine"} {
		s.inert(t, "all", path)
	}
}

func (s *site) inert(t *testing.T, payload, path string) {
	t.Helper()
	a := s.do(t, "GET", path, nil, nil)
	kit.Equal(t, fmt.Sprintf("%q: %s answers", payload, path), a.code, 200)
	for _, w := range inert(a.body) {
		t.Errorf("%q in %s: %s", payload, path, w)
	}
	csp := a.header.Get("Content-Security-Policy")
	kit.Check(t, strings.Contains(csp, "default-src 'none'") && !strings.Contains(csp, "unsafe"), "%s comes with the policy %q", path, csp)
}

var ownStyle = regexp.MustCompile(`(?s)<style>.*?</style>|<meta http-equiv="Content-Security-Policy"[^>]*>`)

// inertExport looks at an export, which has a style and a policy of its own in it.
func (s *site) inertExport(t *testing.T, payload, path string) {
	t.Helper()
	a := s.do(t, "GET", path, nil, nil)
	for _, w := range inert(ownStyle.ReplaceAllString(a.body, "")) {
		t.Errorf("%q in the export: %s", payload, w)
	}
	kit.Check(t, a.header.Get("Content-Disposition") != "" && strings.HasSuffix(a.header.Get("Content-Security-Policy"), "sandbox"),
		"an export is shown by browsers: %v", a.header)
}
