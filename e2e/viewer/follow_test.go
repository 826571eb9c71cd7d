//go:build unix

package viewer_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

// atEnd says whether the end of the page is in sight, and pill what the button says that leads there.
const (
	atEnd   = `innerHeight + scrollY >= document.body.scrollHeight - 120`
	pill    = `(document.querySelector("#pill").hidden ? "" : document.querySelector("#pill").innerText)`
	liveID  = "3e7a90c6-52d4-4b18-8f0c-d6a1b7e92f45"
	foldsID = "71c2e5a8-06bd-4f3e-9d47-b8a0f1c63e29"
)

// TestFollow writes a session while a reader looks on: from an empty server to a live page that stays at its end, lets
// a reader who has scrolled up alone, puts results to their calls, and shows both pasts of a file that is rewritten. All
// of it through the daemon.
func TestFollow(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := newTab(t, s.url)
	b.login(s.key)
	b.reads("main", "No sessions yet")
	b.listens("/events")
	p, talk := newPerson(t, s), newScript(liveID)
	talk.prompt("Why does the feed stop at midnight?")
	p.write(talk)
	b.wait("the list says that there is something new", `!document.querySelector("#pill").hidden`)
	s.settled(t)
	b.clickWait("#pill a", "the session is in the list", `document.querySelector(".row a.title")?.innerText.includes("feed stop at midnight")`)
	b.clickWait(".row a.title", "the page follows", `document.querySelector("#following:not([hidden])")`)
	b.listens("/events?session=" + liveID)
	eval[any](b, `window.stayed = true`)
	followToEnd(b, p, talk)
	followScrolledUp(b, p, talk)
	followTool(b, p, talk)
	kit.Check(t, eval[bool](b, `window.stayed === true`), "the page was loaded anew, though the file only grew")
	followRewrite(b, p, s)
}

func followToEnd(b *tab, p *person, talk *script) {
	b.t.Helper()
	over := eval[float64](b, `(() => { const main = document.querySelector("#main");
		main.style.minHeight = innerHeight + 60 - main.offsetTop + "px";
		return document.body.scrollHeight - innerHeight; })()`)
	kit.Require(b.t, over > 20 && over < 110, "the page is %v longer than the window", over)
	for i := range 18 {
		talk.say(fmt.Sprintf("Step %d: I read the log of one more hour.\n\nNothing stops there.", i+1))
		p.write(talk)
		b.wait(fmt.Sprintf("step %d arrives", i+1), `document.querySelector("#items").innerText.includes("Step `+itoa(i+1)+`:")`)
		if i == 2 { // all of it is in sight without scrolling
			kit.Equal(b.t, "scrolled", eval[float64](b, `scrollY`), 0)
		}
	}
	b.wait("the page is longer than the window", `document.body.scrollHeight > innerHeight + 600`)
	b.wait("the end stays in sight, and the button says nothing", atEnd+` && !(`+pill+`)`)
	steps := eval[[]string](b, `[...document.querySelector("#items").innerText.matchAll(/Step (\d+):/g)].map((m) => m[1])`)
	kit.Equal(b.t, "the steps on the page", strings.Join(steps, " "), "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18")
}

func followScrolledUp(b *tab, p *person, talk *script) {
	b.t.Helper()
	eval[any](b, `scrollTo(0, 150)`)
	b.wait("the reader has scrolled up", `Math.abs(scrollY - 150) < 1`)
	// What is in sight stays where it is; the browser may round heights above it.
	const seen = `[...document.querySelectorAll("#items > *")].find((e) => e.getBoundingClientRect().top > 0)`
	eval[any](b, `window.seen = `+seen+`; window.seenAt = seen.getBoundingClientRect().top; 0`)
	talk.say("While you read above, this came.")
	p.write(talk)
	b.wait("the button says what has come", pill+`.startsWith("1 new")`)
	talk.say("And this.")
	p.write(talk)
	b.wait("and counts", pill+`.startsWith("2 new")`)
	moved := eval[float64](b, `window.seen.getBoundingClientRect().top - window.seenAt`)
	kit.Check(b.t, moved >= -2 && moved <= 2, "the page moved by %v px under the reader", moved)
	b.clickWait("#pill", "the button leads to the end", atEnd+` && !(`+pill+`)`)
}

func followTool(b *tab, p *person, talk *script) {
	b.t.Helper()
	id := talk.call()
	talk.answer(90, use(id, "Bash", object{"command": "tail -n 3 feed.log", "description": "The last lines of the log"}))
	p.write(talk)
	call := `document.querySelector('details.tool[data-call="` + id + `"]')`
	b.wait("the call is running", call+`?.classList.contains("running")`)
	talk.result(id, "23:59 ok\n00:00 stop", object{"stdout": "23:59 ok\n\x1b[31m00:00 stop\x1b[0m", "stderr": ""}, 0, false)
	p.write(talk)
	b.wait("its result is put to it", call+`.classList.contains("ok") && `+call+`.textContent.includes("00:00 stop")`)
	kit.Equal(b.t, "there are tool calls", b.count("details.tool"), 1)
}

// TestFollowFolds: calls that arrive stand as after a reload; what is open stays open, and where it is.
func TestFollowFolds(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	talk, x := newScript(foldsID), where(foldsID, "harbour", false)
	sent := func() { t.Helper(); must(t, s.send(s.key, x, talk.lines)) }
	run := func(n int) {
		talk.bash(fmt.Sprintf("wc -l pier-%d.log", n), "Count the lines", fmt.Sprintf("%d lines", 100+n), 0)
	}
	talk.prompt("Which log is the longest?")
	run(1)
	sent()
	s.settled(t)
	b := newTab(t, s.url)
	b.login(s.key)
	b.open("/sessions/" + foldsID)
	b.listens("/events?session=" + foldsID)
	b.clickWait("details.tool > summary", "the call is open", one("details.tool[open]"))
	eval[any](b, `window.stayed = true`)
	for n := 2; n < 4; n++ {
		run(n)
		sent()
		b.wait("the calls fold", one("details.calls > summary")+`?.innerText.startsWith("Ran `+itoa(n)+` commands")`)
	}
	b.wait("the call that the reader opened is open", one("details.calls[open] details.tool[open]")+`?.innerText.includes("101 lines")`)
	talk.say("It is that of pier 3.")
	id := talk.call()
	talk.answer(90, use(id, "Bash", object{"command": "rm -i pier-3.log", "description": "Remove it"}))
	sent()
	b.wait("a call has no result yet", one("#items > .item > details.tool:not(.ok)"))
	talk.result(id, "not removed", object{"stdout": "not removed", "stderr": ""}, 0, false)
	sent()
	b.wait("it has one", one("#items > .item > details.tool.ok")+`?.textContent.includes("not removed")`)
	const shown = `[...document.querySelectorAll("#items *")].map((e) => e.tagName + "#" + e.id + "." + e.className + (e.children.length ? "" : e.textContent)).filter((e) => !e.includes("copier")).join("\n")`
	live := eval[string](b, shown)
	kit.Check(t, eval[bool](b, `window.stayed === true`), "the page was loaded anew")
	b.open("/sessions/" + foldsID)
	fresh := eval[string](b, shown)
	kit.Check(t, fresh == live, "live the page is\n%s\nafter a reload\n%s", live, fresh)
}

// followRewrite takes the last lines out of the file and writes others.
func followRewrite(b *tab, p *person, s *site) {
	b.t.Helper()
	path := p.transcript(liveID)
	data := kit.Try(os.ReadFile(path)).Must(b.t)
	lines := strings.SplitAfter(string(data), "\n")
	kept := strings.Join(lines[:len(lines)-5], "")
	must(b.t, os.WriteFile(path, []byte(kept), 0o600))
	other := newScript(liveID)
	other.records = 900
	other.prompt("Start again from the feed itself.")
	p.write(other)
	b.wait("the page shows the file as it is now", `window.stayed !== true && document.querySelector("#items")?.innerText.includes("Start again from the feed")`)
	kit.Check(b.t, !strings.Contains(b.text("#items"), "While you read above"),
		"what is no longer in the file is still on the page")
	s.settled(b.t)
	b.open("/sessions/" + liveID)
	openMore(b)
	b.reads(".session-head", "2 generations", "lines dropped")
	b.clickWait(".session-head a.button[href*=compare]", "what was lost is a conversation", `document.querySelector(".compare .items .item.prompt, .compare .items .item.answer")`)
	b.reads(".compare .items", "While you read above, this came.")
	b.clickWait(`.toolbar a[href*="records=1"]`, "both are side by side", `document.querySelector("table.sides tr.del")`)
	b.reads("table.sides", "While you read above, this came.", "Start again from the feed itself.")
	b.open("/drops")
	b.reads("main", "feed stop at midnight", "generation 1")
}

// TestTabSeesTrouble proves that a tab would see what no page of ours may do.
func TestTabSeesTrouble(t *testing.T) {
	t.Parallel()
	needBrowser(t)
	for name, c := range map[string]struct{ page, want string }{
		"harmless":           {`<h1>x</h1><script>1</script><img alt="" src="data:image/gif;base64,R0lGODlhAQABAAAAACw=">`, ""},
		"dialog":             {`<script>alert("hello")</script>`, "a dialog: hello"},
		"console":            {`<script>console.warn("careful", 5)</script>`, "console warning: careful"},
		"exception":          {`<script>nothing()</script>`, "exception: Uncaught ReferenceError"},
		"rejection":          {`<script>Promise.reject(new Error("no"))</script>`, "exception: Uncaught (in promise) Error: no"},
		"image elsewhere":    {`<img alt="" src="http://elsewhere.example/p.png">`, "a request to http://elsewhere.example/p.png"},
		"fetch elsewhere":    {`<script>fetch("http://elsewhere.example/x").catch(() => {})</script>`, "a request to http://elsewhere.example/x"},
		"other port":         {`<img alt="" src="http://127.0.0.1:9/p.png">`, "a request to http://127.0.0.1:9/p.png"},
		"missing file":       {`<img alt="" src="/missing.png">`, "404"},
		"breach of a policy": {`<meta http-equiv="Content-Security-Policy" content="img-src 'none'"><img alt="" src="/x.png">`, "policy: img-src"},
		"web socket":         {`<script>new WebSocket("ws://127.0.0.1:9/x").onerror = () => {}</script>`, "a web socket to ws://127.0.0.1:9/x"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/" {
					w.WriteHeader(http.StatusNotFound)
					return
				}
				fmt.Fprintf(w, `<!doctype html><title>x</title><link rel="icon" href="data:image/gif;base64,R0lGODlhAQABAAAAACw=">%s`, c.page)
			}))
			defer server.Close()
			b := watchTab(t, server.URL)
			b.open("/")
			if c.want == "" {
				seen := b.seen()
				kit.Check(t, len(seen) == 0, "a harmless page: %q", seen)
				return
			}
			eventually(t, "the tab sees "+c.want, time.Minute, func() bool { return strings.Contains(strings.Join(b.seen(), "\n"), c.want) })
			b.allow(c.want)
			for _, part := range []string{"net::ERR", "404", "policy:", "Content Security Policy", "WebSocket connection"} {
				b.allow(part) // what the same fault is called elsewhere
			}
			seen := b.seen()
			kit.Check(t, len(seen) == 0, "besides: %q", seen)
		})
	}
}

// sendArtifacts posts what a daemon sends besides lines: kind is "checkpoints" or "documents".
func (s *site) sendArtifacts(key string, x stream, kind string, list ...object) error {
	member := kind
	if kind == "documents" {
		member = "events"
	}
	body, err := json.Marshal(object{"project_hash": "hash-of-" + x.project, "session_id": x.id, "ccship": x.head(), member: list})
	if err != nil {
		return fmt.Errorf("write a request: %w", err)
	}
	return s.posts("POST", "/api/"+kind, key, body)
}

// head describes a stream in a request.
func (x stream) head() object {
	var parent any
	if x.parent != "" {
		parent = x.parent
	}
	return object{"v": 1, "machine": x.machine, "host": x.host, "epoch": "epoch-of-" + x.machine,
		"path": strings.ReplaceAll(x.cwd, "/", "-") + "/" + x.id + ".jsonl", "cwd": x.cwd, "project": x.project, "parent_session_id": parent}
}

func (s *site) posts(method, path, key string, body []byte) error {
	status, answer, err := s.ask(method, path, key, "", body)
	if err == nil && status/100 != 2 {
		err = fmt.Errorf("%s %s: %d %s", method, path, status, answer)
	}
	return err
}

// sendFile sends a file of a session.
func (s *site) sendFile(key string, x stream, name, content string) error {
	sum := sha256.Sum256([]byte(content))
	at := "/api/blobs/" + hex.EncodeToString(sum[:])
	body, err := json.Marshal(object{"project_hash": "hash-of-" + x.project, "session_id": x.id, "ccship": x.head(), "size": len(content), "media_type": "text/plain", "name": name})
	if err != nil {
		return fmt.Errorf("write a request: %w", err)
	}
	if err := s.posts("POST", at+"/start", key, body); err != nil {
		return err
	}
	if err := s.posts("PUT", at+"?offset=0", key, []byte(content)); err != nil {
		return err
	}
	return s.posts("POST", at+"/end", key, body)
}

// mark is a checkpoint behind a line.
func mark(id, trigger string, line int, used int64, at time.Time, summary string, files ...string) object {
	return object{"id": "cp-" + id, "tokens_used": used, "token_budget": 167_000, "trigger_type": trigger, "context_hash": "5eed", "summary": summary,
		"active_files": files, "created_at": at.UTC().Format(time.RFC3339), "generation": 0, "line": line}
}

// version is a version of a document.
func version(path string, version int, at time.Time, content string) object {
	sum := sha256.Sum256([]byte(content))
	change, by := "modified", "claude"
	if version == 1 {
		change, by = "linked", "user"
	}
	return object{"path": path, "change": change, "by": by, "added_at": t0.UTC().Format(time.RFC3339), "at": at.UTC().Format(time.RFC3339), "version": version,
		"size": len(content), "sha256": hex.EncodeToString(sum[:]), "encoding": "utf-8", "content": content}
}

// linkRequest is what a machine's daemon is asked for.
type linkRequest struct {
	ID, Path string
	Link     bool
}

// linkRequests lists what waits for a machine's daemon.
func (s *site) linkRequests(key, machine string) ([]linkRequest, error) {
	status, body, err := s.ask("GET", "/api/link-requests?"+url.Values{"machine": {machine}}.Encode(), key, "", nil)
	if err != nil || status != http.StatusOK {
		return nil, fmt.Errorf("link requests: %d %s: %w", status, body, err)
	}
	var out struct {
		LinkRequests []linkRequest `json:"link_requests"`
	}
	err = json.Unmarshal(body, &out)
	return out.LinkRequests, err
}
