package web_test

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
)

// noon is the time of all artifacts in a test.
var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// mark stores a checkpoint behind a line.
func (s *site) mark(t *testing.T, h server.Head, trigger string, line, used int64) string {
	t.Helper()
	c := server.Checkpoint{ID: fmt.Sprintf("cp-%012x", line), TokensUsed: used, TokenBudget: 167_000, Trigger: trigger, ContextHash: "c0ffee",
		Summary: "What was done up to " + trigger, ActiveFiles: []string{"cart.go", "docs/plan.md"}, Created: noon.Add(time.Duration(line) * time.Second),
		Generation: h.Generation, Line: line}
	s.markAs(t, h, c)
	return c.ID
}

func (s *site) markAs(t *testing.T, h server.Head, list ...server.Checkpoint) {
	t.Helper()
	kit.Must(t, s.store.PutCheckpoints(t.Context(), &server.CheckpointBatch{Head: h, Owner: s.owner.ID, List: list, Received: noon}))
}

// artifact is a version of a document.
func artifact(path string, n int64, content string) server.DocumentEvent {
	sum := sha256.Sum256([]byte(content))
	e := server.DocumentEvent{Path: path, Change: server.Modified, By: "claude", AddedAt: noon, At: noon.Add(time.Duration(n) * time.Minute), Version: n,
		Size: int64(len(content)), SHA256: sum[:], Content: []byte(content), Line: 10 + n}
	if n == 1 {
		e.Change, e.By, e.Line = server.Linked, "user", -1
	}
	return e
}

func (s *site) putDocuments(t *testing.T, h server.Head, events ...server.DocumentEvent) {
	t.Helper()
	kit.Must(t, s.store.PutDocuments(t.Context(), &server.DocumentBatch{Head: h, Owner: s.owner.ID, Events: events, Received: noon}))
}

// file stores a file of a session.
func (s *site) file(t *testing.T, h server.Head, name, content string) {
	t.Helper()
	u := &server.Upload{Head: h, Owner: s.owner.ID, SHA256: sha256.Sum256([]byte(content)), Size: int64(len(content)), Name: name, Media: "text/plain", At: noon}
	_, complete, err := s.store.StartBlob(t.Context(), u)
	kit.Must(t, err)
	if complete {
		return
	}
	kit.Try(s.store.PutBlob(t.Context(), s.owner.ID, u.SHA256, 0, []byte(content), noon)).Must(t)
	kit.Must(t, s.store.EndBlob(t.Context(), u))
}

// tourWithArtifacts stores the tour with every kind of artifact.
func (s *site) tourWithArtifacts(t *testing.T) {
	t.Helper()
	s.tour(t)
	h := head(tourID)
	s.mark(t, h, "auto_80", 38, 134_100)
	s.mark(t, h, "auto_90", 43, 151_300)
	s.mark(t, h, "compact", 48, 167_020)
	deleted := artifact("old.txt", 2, "")
	deleted.Change, deleted.Content, deleted.SHA256, deleted.Size = server.Deleted, nil, nil, 0
	large := artifact("dump.sql", 1, "")
	large.TooLarge, large.Content, large.SHA256, large.Size = true, nil, nil, 40_000_000
	s.putDocuments(t, h, artifact("docs/plan.md", 1, "# Plan\n\n- count euros\n- tests\n"), artifact("docs/plan.md", 2, "# Plan\n\n- count **cents**\n- tests\n- changelog\n"),
		artifact("cart.go", 1, "package cart\n\nfunc Total() int { return 0 }\n"), artifact("old.txt", 1, "old"), deleted, large)
}

// chips are the documents at a session's head: the text of each by its path.
func chips(t *testing.T, page string) map[string]string {
	t.Helper()
	out := map[string]string{}
	nodes(t, page, func(n *html.Node) {
		if n.Data == "li" && strings.HasPrefix(attr(n, "class"), "chip") {
			for a := range n.Descendants() {
				if attr(a, "data-doc") != "" {
					out[attr(a, "title")] = strings.TrimSpace(words(n))
				}
			}
		}
	})
	return out
}

func document(id, path string, q ...string) string {
	return sessionPath(id, "/document", append([]string{"path", path}, q...)...)
}

func TestDocuments(t *testing.T) {
	s := loggedIn(t)
	s.tourWithArtifacts(t)
	page := s.get(t, sessionPath(tourID, ""))
	got := chips(t, page)
	for path, want := range map[string]string{"docs/plan.md": "plan.md×", "cart.go": "cart.go×", "old.txt": "old.txtdeleted×", "dump.sql": "dump.sqltoo large×"} {
		kit.Equal(t, fmt.Sprintf("the chip of %s says", path), got[path], want)
	}
	mustHave(t, page, `data-doc="`+machine+" "+tourID+` docs/plan.md" data-version="2"`, `aria-label="Unlink docs/plan.md"`)
	plan := s.get(t, document(tourID, "docs/plan.md"))
	mustHave(t, plan, "<strong>cents</strong>", "version 2 of 2", "modified by claude", "linked by user", `href="/sessions/`+short(tourID)+`/L/12"`, `data-opened="`+machine+" "+tourID+` docs/plan.md" data-version="2"`)
	source := s.get(t, document(tourID, "docs/plan.md", "source", "1"))
	mustHave(t, source, "**cents**")
	mustLack(t, source, "<strong>cents")
	first := s.get(t, document(tourID, "docs/plan.md", "version", "1"))
	mustHave(t, first, "count euros", "version 1 of 2", "Newest version")
	mustLack(t, first, "data-opened")
	mustHave(t, s.get(t, document(tourID, "cart.go")), `<span class="tk">func</span>`)
	mustHave(t, s.get(t, document(tourID, "old.txt")), "The file was deleted.")
	mustHave(t, s.get(t, document(tourID, "old.txt", "version", "1")), "<code>old</code>")
	mustHave(t, s.get(t, document(tourID, "dump.sql")), "too large", "40 MB")
	for _, path := range []string{"", "nothing", "../docs/plan.md", "docs/../docs/plan.md", "docs/plan.md\x00", "DOCS/plan.md", strings.Repeat("a/", 3000), "/etc/passwd", "사과"} {
		for _, below := range []string{"/document", "/document/bytes", "/document/image", "/document/compare"} {
			s.wants(t, 404, "GET", sessionPath(tourID, below, "path", path), nil)
		}
	}
	for _, q := range []string{"version=3", "version=99999999999999999999", "version=-1"} {
		a := s.do(t, "GET", document(tourID, "docs/plan.md")+"&"+q, nil, nil)
		kit.Check(t, a.code == 404 || strings.HasSuffix(q, "999999999") || q == "version=-1", "%s answers %d", q, a.code)
	}
	gone := artifact("cart.go", 1, "")
	gone.Change, gone.Content, gone.SHA256, gone.At = server.Unlinked, nil, nil, noon.Add(time.Hour)
	s.putDocuments(t, head(tourID), gone)
	page = s.get(t, sessionPath(tourID, ""))
	_, there := chips(t, page)["cart.go"]
	kit.Check(t, !there, "an unlinked document has a chip")
	mustHave(t, s.get(t, document(tourID, "cart.go")), "no longer linked", "Link again", "func")
}

func TestCompareVersions(t *testing.T) {
	s := loggedIn(t)
	s.tourWithArtifacts(t)
	at := func(path string, q ...string) string {
		return sessionPath(tourID, "/document/compare", append([]string{"path", path}, q...)...)
	}
	page := s.get(t, at("docs/plan.md"))
	mustHave(t, page, `<tr class="del">`, "count <mark>euros</mark>", "changelog", "Versions 1 and 2")
	mustHave(t, s.get(t, at("docs/plan.md", "a", "2", "b", "1")), "Versions 2 and 1", "<mark>euros</mark>")
	mustHave(t, s.get(t, at("docs/plan.md", "a", "2", "b", "2")), "The two are identical")
	mustHave(t, s.get(t, at("old.txt")), `<tr class="del">`, "Versions 1 and 2")
	mustHave(t, s.get(t, at("dump.sql")), "too large")
	for _, q := range []string{"0", "3", "9999999999999999"} {
		s.wants(t, 404, "GET", at("docs/plan.md", "a", q), nil)
	}
	big := strings.Repeat("line\n", 600_000)
	s.putDocuments(t, head(tourID), artifact("big.txt", 1, "x"), artifact("big.txt", 2, big))
	mustHave(t, s.get(t, at("big.txt")), "too large to compare")
	shown := s.get(t, document(tourID, "big.txt"))
	mustHave(t, shown, "download the file to see all of it")
	kit.Check(t, len(shown) <= 3<<20, "a page of %d MB", len(shown)>>20)
}

// TestVersionPages: of very many versions each is on one of the pages that lead to each other.
func TestVersionPages(t *testing.T) {
	s := loggedIn(t)
	s.tour(t)
	var list []server.DocumentEvent
	for n := range int64(250) {
		list = append(list, artifact("a.txt", n+1, fmt.Sprint("version ", n+1)))
	}
	s.putDocuments(t, head(tourID), list...)
	seen := map[string]bool{}
	for path := document(tourID, "a.txt"); path != ""; {
		page := s.get(t, path)
		path = ""
		nodes(t, page, func(n *html.Node) {
			if attr(n, "rel") == "next" {
				path = attr(n, "href")
			}
			if n.Data == "input" && attr(n, "name") == "a" {
				seen[attr(n, "value")] = true
			}
		})
	}
	kit.Equal(t, "versions are listed", len(seen), 250)
}

// TestDocumentKinds: what a file is its bytes say. What could run is shown as text, or only to be saved.
func TestDocumentKinds(t *testing.T) {
	s := loggedIn(t)
	s.tour(t)
	png := "\x89PNG\r\n\x1a\n" + strings.Repeat("x", 100)
	svg := `<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>`
	files := map[string]string{"a.png": png, "b.svg": svg, "c.html": "<script>alert(1)</script>", "d.md": "<script>alert(1)</script> [x](javascript:alert(1))", "e.bin": "\x00\x01", "f.txt": "\xff\xfe",
		"g.md": png, "h": "", "i.txt": "ünï", "j.jpg": svg}
	for name, content := range files {
		s.putDocuments(t, head(tourID), artifact(name, 1, content))
		page := s.get(t, document(tourID, name))
		for _, w := range inert(page) {
			t.Errorf("%s: %s", name, w)
		}
		a := s.do(t, "GET", sessionPath(tourID, "/document/bytes", "path", name), nil, nil)
		h := a.header
		kit.Check(t, a.body == content && h.Get("Content-Type") == "application/octet-stream" &&
			h.Get("X-Content-Type-Options") == "nosniff" &&
			strings.HasPrefix(h.Get("Content-Disposition"), "attachment; ") &&
			strings.Contains(h.Get("Content-Security-Policy"), "sandbox"), "%s is saved as %q with %v", name, a.body, h)
		picture := s.do(t, "GET", sessionPath(tourID, "/document/image", "path", name), nil, nil)
		isPicture := content == png
		kit.Check(t, isPicture == (picture.code == 200) && isPicture == strings.Contains(page, "<img "),
			"%s as an image answers %d", name, picture.code)
		kit.Check(t, picture.code != 200 || picture.header.Get("Content-Type") == "image/png" &&
			picture.header.Get("Content-Security-Policy") == "default-src 'none'; sandbox",
			"%s is an image with %v", name, picture.header)
	}
	mustHave(t, s.get(t, document(tourID, "e.bin")), "This file is not text: 2 B")
	mustHave(t, s.get(t, document(tourID, "i.txt")), "ünï")
	mustHave(t, s.get(t, document(tourID, "b.svg")), "alert")
}

// requestLink asks for a document as the form does.
func (s *site) requestLink(t *testing.T, path, action string) answer {
	t.Helper()
	return s.do(t, "POST", sessionPath(tourID, "/documents"), url.Values{"path": {path}, "do": {action}}, nil)
}

// TestWhoMayRequestLinks: only whose session it is and owners see the forms and may send them.
func TestWhoMayRequestLinks(t *testing.T) {
	s := newSite(t, nil)
	s.tourWithArtifacts(t)
	ana, vic := s.addUser(t, "ana", server.Member), s.addUser(t, "vic", server.Viewer)
	for _, u := range []server.User{ana, vic} {
		kit.Must(t, s.store.AddShare(t.Context(), server.Share{Owner: s.owner.ID, With: u.ID, ProjectHash: "sha-of-shop", Project: "shop", Documents: true}))
	}
	kit.Equal(t, "a stranger asks", s.requestLink(t, "docs/a.md", "").code, http.StatusUnauthorized)
	for _, u := range []server.User{ana, vic} {
		s.as(t, u)
		page := s.get(t, sessionPath(tourID, ""))
		mustHave(t, page, "plan.md")
		mustLack(t, page, `/documents?`, "Unlink", "Link a document")
		mustLack(t, s.get(t, document(tourID, "docs/plan.md")), ">Unlink<", "Link again")
		kit.Equal(t, u.Name+" asks", s.requestLink(t, "docs/a.md", "").code, 404)
	}
	s.client = newClient(t)
	s.login(t, s.key)
	a := s.do(t, "POST", sessionPath(tourID, "/documents"), url.Values{"path": {"x"}}, map[string]string{"Sec-Fetch-Site": "cross-site"})
	kit.Check(t, a.code == 403, "another site asks: %d", a.code)
	plain := head("plain")
	plain.Machine, plain.Epoch, plain.Host = "", "", ""
	s.put(t, plain, `{"type":"user","message":{"role":"user","content":"no daemon sends this"}}`)
	mustLack(t, s.get(t, "/sessions/plain?machine="), "Link a document")
	s.wants(t, 404, "POST", "/sessions/plain/documents?machine=", url.Values{"path": {"x"}})
}

// TestLinkRequests: a link request, and its outcome on the page.
func TestLinkRequests(t *testing.T) {
	s := loggedIn(t)
	s.tourWithArtifacts(t)
	for _, path := range []string{"", "  ", "../x", "/etc/passwd", "a/../../b", "a\x00b", "a\nb", strings.Repeat("x", 5000), "\xff"} {
		kit.Equal(t, fmt.Sprintf("%.20q answers", path), s.requestLink(t, path, "").code, 400)
	}
	a := s.requestLink(t, " docs/new <b>.md ", "")
	kit.Require(t, a.code == 200, "answers %d: %s", a.code, a.body)
	mustHave(t, a.body, "Link <bdi class=\"path\">docs/new &lt;b&gt;.md</bdi>: requested; waiting for <bdi>kims-laptop</bdi>")
	mustHave(t, s.requestLink(t, "docs/plan.md", "unlink").body, `Unlink <bdi class="path">docs/plan.md</bdi>: requested`)
	list, err := s.store.LinkRequests(t.Context(), server.Scope{All: true}, server.Ref{SessionID: tourID})
	kit.Require(t, err == nil && len(list) == 2 && !list[0].Link && list[1].Link, "%+v, %v", list, err)
	no := server.DocumentEvent{Path: list[1].Path, Change: server.Refused, By: "viewer", At: today, Reason: "there is no such <i>file</i>", LinkRequest: list[1].ID, Line: -1}
	yes := server.DocumentEvent{Path: list[0].Path, Change: server.Unlinked, By: "viewer", At: today, Version: 2, LinkRequest: list[0].ID, Line: -1}
	kit.Must(t, s.store.PutDocuments(t.Context(), &server.DocumentBatch{Head: head(tourID), Owner: s.owner.ID, Events: []server.DocumentEvent{no, yes}, Received: today}))
	page := s.get(t, sessionPath(tourID, "/artifacts"))
	mustHave(t, page, "refused: <bdi>there is no such &lt;i&gt;file&lt;/i&gt;</bdi>", `Unlink <bdi class="path">docs/plan.md</bdi>: done`)
	_, there := chips(t, page)["docs/plan.md"]
	kit.Check(t, !there, "the unlinked document has a chip")
}

// TestArtifactsAreScoped: what a reader may not see is not there.
func TestArtifactsAreScoped(t *testing.T) {
	s := newSite(t, nil)
	s.tourWithArtifacts(t)
	s.file(t, head(tourID), "tool-results/a.txt", "all of it")
	ana := s.addUser(t, "ana", server.Member)
	s.login(t, s.addKey(t, ana, "ana"))
	share := server.Share{Owner: s.owner.ID, With: ana.ID, ProjectHash: "sha-of-shop", Project: "shop"}
	paths := []string{sessionPath(tourID, "/context"), sessionPath(tourID, "/artifacts"), sessionPath(tourID, "/file", "name", "tool-results/a.txt"),
		document(tourID, "docs/plan.md"), sessionPath(tourID, "/document/bytes", "path", "docs/plan.md"), sessionPath(tourID, "/document/compare", "path", "docs/plan.md")}
	for i, want := range [][]int{{404, 404, 404, 404, 404, 404}, {200, 200, 200, 404, 404, 404}, {200, 200, 200, 200, 200, 200}} {
		if i > 0 {
			share.Documents = i == 2
			kit.Must(t, s.store.AddShare(t.Context(), share))
		}
		for j, p := range paths {
			kit.Equal(t, fmt.Sprintf("share %d: %s answers", i, p), s.do(t, "GET", p, nil, nil).code, want[j])
		}
		if i == 1 {
			page := s.get(t, sessionPath(tourID, ""))
			mustHave(t, page, "80 % reached")
			mustLack(t, page, "data-doc", "Link a document")
		}
	}
}

// TestAgentMeta: the head of an agent's page shows its metadata file.
func TestAgentMeta(t *testing.T) {
	s := loggedIn(t)
	s.tour(t)
	mustLack(t, s.get(t, sessionPath(agentID, "")), "Explore")
	s.file(t, head(tourID), "subagents/agent-a7f3c21b09d84e51.meta.json", `{"agentType":"Explore","description":"Look for <b>sums</b>","spawnDepth":"x","worktreePath":7}`)
	s.file(t, head(tourID), "subagents/agent-other.meta.json", `{"agentType":"Plan"}`)
	page := s.get(t, sessionPath(agentID, ""))
	mustHave(t, page, `<span class="tag">Explore</span>`, "Look for &lt;b&gt;sums&lt;/b&gt;")
	mustLack(t, page, ">Plan<", ">Link a document<")
	mustLack(t, s.get(t, sessionPath(tourID, "")), `<span class="tag">Explore</span>`)
}

// TestSpilled: a result that was too long for its line leads to the file that has all of it.
func TestSpilled(t *testing.T) {
	s := loggedIn(t)
	result := func(id, text string) string {
		return fmt.Sprintf(`{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":%q,"content":%q}]}}`, id, text)
	}
	call := func(id string) string {
		return fmt.Sprintf(`{"type":"assistant","message":{"role":"assistant","id":%q,"model":"m","content":[{"type":"tool_use","id":%q,"name":"Bash","input":{"command":"cat log"}}]}}`, "m"+id, id)
	}
	spilled := func(name string) string {
		return "<persisted-output>\nOutput too large (5.2MB). Full output saved to: /home/kim/.claude/projects/-home-kim-shop/spill/tool-results/" + name + "\n\nPreview (first 2KB):\nhead of it\n</persisted-output>"
	}
	lines := []string{call("t1"), result("t1", spilled("toolu_01.txt")), call("t2"), result("t2", spilled("gone.txt")), call("t3"), result("t3", spilled("../../etc/passwd")), call("t4"), result("t4", "see tool-results/toolu_01.txt")}
	s.put(t, head("spill"), lines...)
	agent := head("spill/agent-1")
	agent.Parent = "spill"
	s.put(t, agent, lines[:2]...)
	s.file(t, head("spill"), "tool-results/toolu_01.txt", "<b>all</b> of \x1b[31mit\x1b[0m\n"+strings.Repeat("x\n", 1000))
	want := regexp.MustCompile(`href="/sessions/spill/file\?(machine=` + machine + `&amp;)?name=tool-results%2Ftoolu_01.txt(&amp;owner=1)?"`)
	for _, path := range []string{sessionPath("spill", ""), sessionPath("spill/agent-1", ""), sessionPath("spill", "/tail", "after", "-1"), sessionPath("spill", "/entry/0")} {
		page := s.get(t, path)
		kit.Equal(t, path+" has links to the file", len(want.FindAllString(page, -1)), 1)
		mustLack(t, page, "etc%2Fpasswd")
	}
	mustHave(t, s.get(t, sessionPath("spill", "")), "its file is not on the server")
	name := sessionPath("spill", "/file", "name", "tool-results/toolu_01.txt")
	shown := s.get(t, name)
	mustHave(t, shown, "&lt;b&gt;all&lt;/b&gt; of <span", ">it</span>", "2.0 kB")
	mustLack(t, shown, "[31m")
	a := s.do(t, "GET", name+"&bytes=1", nil, nil)
	kit.Check(t, strings.HasPrefix(a.body, "<b>all") && a.header.Get("Content-Type") == "application/octet-stream",
		"it is saved with %v", a.header)
	for _, name := range []string{"", "tool-results/gone.txt", "../spill/tool-results/toolu_01.txt"} {
		s.wants(t, 404, "GET", sessionPath("spill", "/file", "name", name), nil)
	}
}
