//go:build unix

package e2e

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

// TestTimelineAndCalls asks both programs what happened in a session and for its calls: from disk and from the server,
// with and without them.
func TestTimelineAndCalls(t *testing.T) {
	w, c, path := aloneTalk(t, sessionA)
	test := map[string]any{"command": "go test ./cart"}
	for _, lines := range [][]byte{
		c.prompt("make the tests pass"), c.calls(10_000, "t1", "Bash", test), c.returns("t1", "Exit code 1\ncart.go:3: undefined: total", true),
		c.calls(11_000, "t2", "Edit", map[string]any{"file_path": "/work/shop/cart.go", "old_string": "a", "new_string": "b"}),
		c.returns("t2", "ok", false), c.calls(12_000, "t3", "Bash", test),
	} {
		w.add(path, lines)
	}
	c.clock = c.clock.Add(9 * time.Minute) // the user is away
	w.add(path, c.returns("t3", "ok cart 0.1s", false))
	w.add(path, c.says(13_000, "Done."))
	w.add(path, c.record(map[string]any{"type": "system", "subtype": "turn_duration", "durationMs": 8000}))
	w.addAndSync(path, c.compact(167_000, 9_000))
	w.derived("continued", sessionA)
	for _, args := range [][]string{{"search", "file:cart.go"}, {"search", "\"go test\" kind:command"}, {"search", "tool:Bash"},
		{"search", "tool:ba* kind:error"}, {"search", "undefined tool:Bash"}, {"search", "ok file:cart.go"}} {
		got := w.look("", 0, args...).stdout
		kit.Check(t, strings.Contains(got, sessionA[:8]), "%v:\n%s", args, got)
	}
	for _, args := range [][]string{{"search", "undefined tool:Edit"}, {"search", "undefined file:cart.go"}} {
		got := w.look("", 0, args...).stdout
		kit.Check(t, !strings.Contains(got, sessionA[:8]), "%v:\n%s", args, got)
	}
	var local, stored timelineDocument
	machine := w.exact.digest(sessionA).Machine
	eventually(t, "disk and server tell of as many moments", time.Minute, func() bool { // a slow daemon tells of no checkpoints
		local = timelineOf(t, w.look("", 0, "show", "--timeline", sessionA, "--json").stdout)
		stored = timelineOf(t, w.look("", 0, "show", "--timeline", sessionA, "--json", "--machine", machine).stdout)
		return local.Source == "local" && stored.Source == "server" && len(local.Moments) >= 4 && len(local.Moments) == len(stored.Moments)
	})
	for i, m := range stored.Moments {
		kit.Check(t, strings.Contains(m.URL, "/sessions/"+sessionA+"/L/"), "the address is %q", m.URL)
		m.URL = ""
		kit.Check(t, m == local.Moments[i], "on disk %+v, on the server %+v", local.Moments[i], m)
	}
	p := local.Moments[0]
	kit.Check(t, p.Kind == "prompt" && p.Took == 8000 && p.Waited >= 539_000, "the turn is %+v", p)
	if text := w.look("", 0, "show", "--timeline=prompt,compaction", sessionA).stdout; !strings.Contains(text, "8.0 s, waited 9 min") ||
		!strings.Contains(text, "167k tokens → 9k tokens") || strings.Contains(text, "Exit code 1") {
		t.Errorf("in words:\n%s", text)
	}
	w.look("nothing to search for", 2, "search")
	w.d.MustStop(t)
	w.gate.set(unreachable)
	got := timelineOf(t, w.look("", 0, "show", "--timeline", sessionA, "--json").stdout)
	kit.Check(t, len(got.Moments) >= 4 && got.Moments[0] == local.Moments[0], "offline %+v", got)
}

// timelineDocument is what `show --timeline --json` prints.
type timelineDocument struct {
	Source  string
	Moments []struct {
		Line   int64
		Kind   string
		Text   string
		Took   int64 `json:"duration_ms"`
		Waited int64 `json:"waited_ms"`
		URL    string
	}
}

func timelineOf(t *testing.T, text string) (d timelineDocument) {
	t.Helper()
	err := json.Unmarshal([]byte(text), &d)
	kit.Require(t, err == nil, "%v %v", err, text)
	return d
}

// TestShareAndList shares a session by a link that anybody can open until it is revoked, and lists by what a session cost.
func TestShareAndList(t *testing.T) {
	t.Parallel()
	const id, other = "7e7e1111-0000-4000-8000-000000000001", "7f7f2222-0000-4000-8000-000000000002"
	w := weighed(t, id, other)
	ok := func(args ...string) string {
		t.Helper()
		out := w.look("", 0, args...)
		return out.stdout
	}

	link := strings.TrimSpace(ok("share", id[:8], "--expires", "12h"))
	if page, code := open(t, link); code != http.StatusOK || !strings.Contains(page, "weigh the anchor") || strings.Contains(page, "cargo") {
		t.Errorf("the link answers %d: %s", code, page)
	}
	list := ok("share", "--list")
	number := regexp.MustCompile(`(?m)^ *(\d+) .*` + id[:8]).FindStringSubmatch(list)
	kit.Require(t, number != nil && !strings.Contains(list, filepath.Base(link)) && ok("share", "--list", other[:8]) == "no links\n",
		"links:\n%s", list)
	ok("share", "--revoke", number[1])
	page, code := open(t, link)
	kit.Check(t, code == http.StatusNotFound && !strings.Contains(page, "anchor"), "the revoked link answers %d", code)
	kit.Check(t, w.ccship("share", "--revoke", number[1]).code != 0, "it is revoked twice")
	for _, wrong := range [][]string{{}, {"--revoke", "1", id}, {"--revoke", "0"}, {"--revoke", "-1"}, {id, "--expires", "2y"}} {
		out := w.ccship(append([]string{"share"}, wrong...)...)
		kit.Check(t, out.code != 0 && !strings.Contains(out.stdout, "/s/"), "share %v: exit %d, %s", wrong, out.code, out.stdout)
	}
}

// weighed is a world whose server has derived two sessions: one weighs the anchor, the other the cargo, with more tokens.
func weighed(t *testing.T, id, other string) *world {
	t.Helper()
	w := exactWorld(t)
	w.start()
	for i, session := range []string{id, other} {
		c, path := w.talk(session)
		w.add(path, c.prompt("weigh the "+[]string{"anchor", "cargo"}[i]))
		w.add(path, c.says(1000*(i+1), "It is weighed."))
		age(t, path)
	}
	w.sync()
	w.derived("weighed", id, other)
	return w
}

// open fetches a page as a browser without a login.
func open(t *testing.T, address string) (page string, code int) {
	t.Helper()
	answer := kit.Try(http.Get(address)).Must(t)
	defer answer.Body.Close()
	b := kit.Try(io.ReadAll(answer.Body)).Must(t)
	return string(b), answer.StatusCode
}

// linkRequest is what the tests read of one.
type linkRequest struct{ Path, State, Reason string }

// requestLink asks the server to have a document linked or unlinked, as the viewer does.
func (w *world) requestLink(method, session, path string) {
	w.t.Helper()
	body := kit.Try(json.Marshal(map[string]string{"path": path})).Must(w.t)
	address := w.exact.url.String() + "/api/sessions/" + url.PathEscape(session) + "/documents"
	r := kit.Try(http.NewRequest(method, address, strings.NewReader(string(body)))).Must(w.t)
	r.Header.Set("X-API-Key", w.exact.key)
	answer := kit.Try(http.DefaultClient.Do(r)).Must(w.t)
	must(w.t, answer.Body.Close())
	kit.Check(w.t, answer.StatusCode == http.StatusAccepted, "%s %s: %s", method, path, answer.Status)
}

// linkRequests are a session's, by path.
func (w *world) linkRequests(session string) map[string]linkRequest {
	w.t.Helper()
	_, body := w.exact.get("/api/sessions/" + url.PathEscape(session) + "/link-requests")
	var list struct {
		Requests []linkRequest `json:"link_requests"`
	}
	err := json.Unmarshal(body, &list)
	kit.Require(w.t, err == nil, "link requests: %v\n%s", err, body)
	byPath := map[string]linkRequest{}
	for _, x := range list.Requests {
		byPath[x.Path] = x
	}
	return byPath
}

// TestLinkRequests has documents linked and unlinked by the server of this machine, and refused where the file is
// not the session's.
func TestLinkRequests(t *testing.T) {
	w := aloneWorld(t)
	c, path := w.talk(sessionA)
	must(t, os.WriteFile(filepath.Join(w.cwd(), "plan.md"), []byte("# Plan\n"), 0o600))
	must(t, os.Symlink(w.keyFile(), filepath.Join(w.cwd(), "notes.md")))
	w.env = append(w.env, "CCSHIP_VIEWER_LINKS=true")
	w.start()
	w.addAndSync(path, c.turn(10_000, "hello", "hello"))
	w.requestLink(http.MethodPost, sessionA, "plan.md")
	w.requestLink(http.MethodPost, sessionA, "notes.md")
	eventually(t, "both link requests are answered", 60*time.Second, func() bool {
		w.add(path, c.turn(10_000, "go", "on")) // the answer to it says that there are link requests
		w.sync()
		list := w.linkRequests(sessionA)
		return list["plan.md"].State == "done" && list["notes.md"].State == "refused"
	})
	list := w.linkRequests(sessionA)
	kit.Check(t, list["notes.md"].Reason != "", "refused without a reason: %+v", list)
	w.eventuallyDocument(sessionA, "plan.md", "# Plan\n") // the daemon answers first, and sends it then
	code, _ := w.exact.get(w.documentAddress(sessionA, "notes.md"))
	kit.Check(t, code == http.StatusNotFound, "a link to the key: %d", code)
	w.requestLink(http.MethodDelete, sessionA, "plan.md")
	eventually(t, "the link is ended", 60*time.Second, func() bool {
		w.addAndSync(path, c.turn(10_000, "go", "on"))
		return !strings.Contains(w.ccship("link", "list", "--session", sessionA, "--json").stdout, "plan.md")
	})
	w.verified()
}
