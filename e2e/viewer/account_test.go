//go:build unix

package viewer_test

import (
	_ "embed"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

// formAt is the page that asks who the reader is, whatever page was wanted.
const formAt = `document.readyState === "complete" && document.querySelector("#key")`

// TestLogin: the right key leads to the page that was wanted, and after logging out nothing is shown any more.
func TestLogin(t *testing.T) {
	s := needGallery(t)
	b := newTab(t, s.url)
	b.allow("401")
	wanted := "/sessions/" + taleID
	b.open(wanted)
	b.reads("h1", "Log in")
	text := b.text("body")
	kit.Check(t, !strings.Contains(text, talePrompt) && !strings.Contains(text, taleTitle), "before the login something is shown: %s", brief(text))
	b.wait("the key has the focus", `document.activeElement.id === "key"`)
	b.fill("#key", "not-a-key")
	b.wait("the key is refused", `document.querySelector("[role=alert]")?.innerText.includes("not a valid key")`)
	b.fill("#key", s.key)
	b.wait("the page that was wanted", `location.pathname === `+quoted(wanted)+` && document.querySelector("#items")`)
	got := eval[string](b, `document.cookie`)
	kit.Check(t, !strings.Contains(got, "ccship_login"), "scripts can read the login: %s", got)
	b.clickWait(`form[action$="/logout"] button`, "logged out", formAt)
	for _, path := range []string{wanted, "/", "/usage", "/search?q=sailing", "/account", wanted + "/export?format=md"} {
		b.open(path)
		b.wait("logged out at "+path, formAt)
	}
}

// TestTicket: a one-time link logs in once, however often a program has looked at it before.
func TestTicket(t *testing.T) {
	s := needGallery(t)
	link := s.mustAdmin(t, "link", "--user", "robin", "--public-url", s.url)
	path, ours := strings.CutPrefix(link, s.url)
	kit.Require(t, ours, "the link is %s", link)
	preview := newTab(t, s.url)
	preview.allow("401")
	preview.open(path)
	b := newTab(t, s.url)
	b.open(path)
	b.clickWait("form.stack button.main", "logged in", `document.querySelector(".home")`)
	b.reads("main", "Service plan for the lamps")
	at := eval[string](b, `location.href`)
	kit.Check(t, !strings.Contains(at, "ticket"), "the ticket stays in the address: %s", at)
	preview.click("form.stack button.main")
	preview.wait("the link is used up", `document.querySelector("[role=alert]")?.innerText.includes("was already used")`)
}

// TestKeys: on the account page a key is made, shown once, used, and revoked.
func TestKeys(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := newTab(t, s.url)
	b.login(s.key)
	b.open("/account")
	b.fill(`form[action$="/account/keys"] input[name=name]`, "attic")
	b.wait("the key is shown", `document.querySelector(".note.good code")`)
	key := b.text(".note.good code")
	b.open("/account")
	b.reads("main", "attic")
	kit.Check(t, !strings.Contains(b.text("body"), key), "the key is shown again")
	other := newTab(t, s.url)
	other.allow("401")
	other.login(key)
	other.reads("main", "No sessions yet")
	b.clickWait(`form:has(input[value=attic])[action$="/revoke"] button`, "the key is revoked", `document.querySelector("tr.off")?.innerText.includes("attic")`)
	other.open("/")
	other.wait("a login with a revoked key is over", formAt)
}

// auditor is what looks at pages from within.
//
//go:embed testdata/audit.js
var auditor string

// TestAccessible: on every page, in both looks, each control has a name, each picture a text, and text stands out.
func TestAccessible(t *testing.T) {
	b, s := reader(t)
	b.allow("404")
	check := func(name, path string) {
		b.open(path)
		unfold(b)
		for _, scheme := range []string{"light", "dark"} {
			b.colorScheme(scheme)
			for _, fault := range eval[[]string](b, `audit.all()`) {
				t.Errorf("%s, %s: %s", name, scheme, fault)
			}
		}
	}
	for name, path := range pages() {
		check(name, path)
	}
	stranger := newTab(t, s.url)
	stranger.allow("401")
	b = stranger
	check("login", "/login")
	check("refused", "/account")
	check("ticket", "/login?ticket=x")
}

// TestAuditSees proves that the audit can fail.
func TestAuditSees(t *testing.T) {
	t.Parallel()
	whole := `<html lang="en"><head><title>x</title><link rel="icon" href="data:image/gif;base64,R0lGODlhAQABAAAAACw="></head><body><header><nav aria-label="Main"><a href="/">x</a></nav></header><main><h1>x</h1>%s</main></body>`
	for fault, page := range map[string]string{
		"":                        fmt.Sprintf(whole, `<p>x <img alt="" src="data:image/gif;base64,R0lGODlhAQABAAAAACw="><label>a <input></label><button aria-label="b"></button>`),
		"no name: a":              fmt.Sprintf(whole, `<a href="/"></a>`),
		"no name: button":         fmt.Sprintf(whole, `<button><svg></svg></button>`),
		"no name: input":          fmt.Sprintf(whole, `<input placeholder="x">`),
		"no name: summary":        fmt.Sprintf(whole, `<details><summary></summary></details>`),
		"2 × h1":                  fmt.Sprintf(whole, `<h1>y</h1>`),
		"h1 and then h3":          fmt.Sprintf(whole, `<h3>y</h3>`),
		"no alt":                  fmt.Sprintf(whole, `<img src="data:image/gif;base64,R0lGODlhAQABAAAAACw=">`),
		"id twice: a":             fmt.Sprintf(whole, `<p id="a"><p id="a">`),
		"for names b":             fmt.Sprintf(whole, `<label for="b">x</label>`),
		"a drawing that is":       fmt.Sprintf(whole, `<svg></svg>`),
		"a nav without a name":    fmt.Sprintf(whole, `<nav>x</nav>`),
		"0 × main":                `<html lang="en"><title>x</title><header></header><h1>x</h1>`,
		"no language":             `<title>x</title><header></header><main><h1>x</h1></main>`,
		"contrast 2.32":           fmt.Sprintf(whole, `<p style="color:#aaa">x</p>`),
		"contrast 1.":             fmt.Sprintf(whole, `<p style="opacity:.2">x</p>`),
		"contrast 2.20":           fmt.Sprintf(whole, `<p style="background:#555;color:#111"><span style="color:#bbb8">x</span></p>`),
		"an edge of 1.":           fmt.Sprintf(whole, `<p style="background:#fff"><code style="background:#eee">x</code></p>`),
		"hidden, but can have":    fmt.Sprintf(whole, `<div aria-hidden="true"><button>x</button></div>`),
		"tabindex 3":              fmt.Sprintf(whole, `<p tabindex="3">x</p>`),
		"th without scope":        fmt.Sprintf(whole, `<table><tr><th>x</table>`),
		"the focus is not seen":   fmt.Sprintf(whole, `<style>:focus { outline: none }</style><button>x</button>`),
		"can't have the focus: p": fmt.Sprintf(whole, `<p tabindex="0" id="p">x</p><script>p.focus = () => {}</script>`),
	} {
		t.Run(fault, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<!doctype html>"+page) }))
			defer server.Close()
			b := newTab(t, server.URL)
			b.open("/")
			got := eval[[]string](b, `audit.all()`)
			if strings.Contains(fault, "focus") {
				got = eval[[]string](b, `audit.order()`)
			}
			kit.Check(t, (fault != "" || len(got) == 0) && strings.Contains(strings.Join(got, "\n"), fault),
				"the audit says %q", got)
		})
	}
}

const artifactsID = "c0a81e52-9b3d-4f76-8d12-4e7f90ab35c6"

// windows is a session whose context fills up, is compacted and fills again.
func windows(at time.Time) (*script, stream, []object) {
	s := &script{id: artifactsID, cwd: harbourCwd, branch: "main", model: "claude-sonnet-4-5", at: at, context: 20_000, fresh: 4000}
	var marks []object
	add := func(id, trigger, done string) {
		marks = append(marks, mark(id, trigger, len(s.lines)-1, s.context, s.at, done+" Open: the winter plan.", "tides/predict.go"))
	}
	s.prompt("Read the tide tables of all piers")
	for i := range 40 {
		s.context += 3500
		s.say(fmt.Sprintf("Pier %d is read.", i+1))
		switch i {
		case 10:
			add("5c07e19a2b64", "manual", "The tables of ten piers are read.")
		case 31:
			add("91f3d80c6e2a", "auto_80", "The tables of 32 piers are read.")
		case 36:
			add("e8426bb0917d", "auto_90", "All but three piers are read.")
		}
	}
	add("3ad95f7c01e8", "compact", "All piers are read.")
	s.compact("auto", "All piers are read.", 12_000)
	for i := range 20 {
		s.context += 2500
		s.say(fmt.Sprintf("Month %d is planned.", i+1))
	}
	return s, where(artifactsID, "harbour", false), marks
}

// TestArtifacts looks at a session with checkpoints and linked documents: the context chart and its marks, chips, content, versions
// and their difference, a link request and its outcome, and a badge when a document changes while the page is open.
func TestArtifacts(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	talk, x, marks := windows(time.Now().Add(-time.Hour))
	id := talk.call()
	talk.answer(80, use(id, "Bash", object{"command": "cat all.log"}))
	talk.result(id, "<persisted-output>\nOutput too large. Full output saved to: /x/tool-results/all.txt\n\nPreview:\nfirst\n</persisted-output>", object{"stdout": "", "stderr": ""}, 0, false)
	must(t, s.send(s.key, x, talk.lines))
	must(t, s.sendArtifacts(s.key, x, "checkpoints", marks...))
	plan := "# Winter plan\n\n- Skerry at **02:30**\n- Ronas\n"
	must(t, s.sendArtifacts(s.key, x, "documents", version("docs/plan.md", 1, t0, plan), version("tides/predict.go", 1, t0, "package tides\n")))
	must(t, s.sendFile(s.key, x, "tool-results/all.txt", "first\n"+strings.Repeat("and so on\n", 5000)+"the very end"))
	s.settled(t)
	b := newTab(t, s.url)
	b.login(s.key)
	b.open("/sessions/" + artifactsID)
	checkContextChart(b)
	checkDocuments(b)
	checkLive(b, s, x, plan)
	checkLinkRequests(b, s, x)
	b.open("/sessions/" + artifactsID + "?from=end")
	b.clickWait(openTool(b, "cat all.log")+" .overflow a", "all of the result is shown", `document.body.innerText.includes("the very end")`)
}

func checkContextChart(b *tab) {
	b.t.Helper()
	openContextChart(b)
	labels := eval[[]string](b, `[...document.querySelectorAll(".only-wide a.mark")].map((a) => a.getAttribute("aria-label"))`)
	all := strings.Join(labels, "\n")
	for _, want := range []string{"80 % reached", "90 % reached", "by hand", "cp-3ad95f7c01e8", "auto-compacted"} {
		kit.Check(b.t, strings.Contains(all, want), "no mark says %q:\n%s", want, all)
	}
	n := eval[int](b, `[...document.querySelectorAll(".area-chart")].filter((c) => c.checkVisibility()).length`)
	kit.Check(b.t, n == 1, "%d drawings are in sight", n)
	b.reads("#checkpoints", "80 % reached", "All but three piers")
	eval[any](b, `document.querySelector('.only-wide a[aria-label*="80 % reached"]').focus()`)
	b.pressWait("\r", "the mark leads to its line", `location.hash && document.querySelector(location.hash)?.innerText.includes("Pier 32")`)
	b.open("/sessions/" + artifactsID)
	b.wait("that it was unfolded is remembered", one(".context[open] .curve"))
}

// openMore opens the menu of a conversation's head.
func openMore(b *tab) {
	b.t.Helper()
	if !eval[bool](b, `document.querySelector(".more").open`) {
		b.clickWait(".more > summary", "the menu is open", `document.querySelector(".more").open`)
	}
}

// openContextChart unfolds the context chart.
func openContextChart(b *tab) {
	b.t.Helper()
	openMore(b)
	b.clickWait(".context > summary", "the context chart is drawn", one(".context[open] .curve"))
}

func checkDocuments(b *tab) {
	b.t.Helper()
	kit.Equal(b.t, "documents have changed before they were seen", b.count(".chip .changed"), 0)
	b.clickWait(`.chip a[title="docs/plan.md"]`, "the document is shown", `document.querySelector(".md strong")?.innerText === "02:30"`)
	b.reads("main", "version 1 of 1", "linked by user")
	b.clickWait(".where a", "the session is there again", one("#chips"))
}

// checkLive changes a document and makes a checkpoint while the page is open.
func checkLive(b *tab, s *site, x stream, plan string) {
	b.t.Helper()
	b.listens("/events?session=" + artifactsID)
	eval[any](b, `window.stayed = true`)
	must(b.t, s.sendArtifacts(s.key, x, "documents", version("docs/plan.md", 2, time.Now(), strings.Replace(plan, "02:30", "02:45", 1))))
	b.wait("the chip says so", `document.querySelector('.chip a[title="docs/plan.md"].changed')`)
	must(b.t, s.sendArtifacts(s.key, x, "checkpoints", mark("0000000000ff", "pre_heavy", 44, 61_000, time.Now(), "Before the great rebuild.")))
	b.wait("the checkpoint is listed", `document.querySelector("#checkpoints")?.innerText.includes("before heavy work")`)
	b.wait("and drawn", `document.querySelector('.only-wide a[aria-label*="cp-0000000000ff"]')`)
	kit.Check(b.t, eval[bool](b, `window.stayed`), "the page was loaded anew")
	b.clickWait(`.chip a[title="docs/plan.md"]`, "the new version is shown", `document.querySelector(".md strong")?.innerText === "02:45"`)
	b.clickWait(`form[action*="/document/compare"] button`, "the difference is shown", `document.querySelector(".diff tr.del mark")?.innerText === "02:30" || document.querySelector(".diff tr.del")?.innerText.includes("02:30")`)
	b.reads(".diff tr.add", "02:45")
	b.open("/sessions/" + artifactsID)
	b.wait("the badge is gone", `document.querySelector(".chip") && !document.querySelector(".chip .changed")`)
}

func checkLinkRequests(b *tab, s *site, x stream) {
	b.t.Helper()
	openMore(b)
	b.click(".ask > summary")
	b.fill(`.ask input[name="path"]`, "docs/new.md")
	b.wait("it is asked for", `document.querySelector("#link-requests")?.innerText.includes("docs/new.md: requested; waiting for")`)
	list := kit.Try(s.linkRequests(s.key, x.machine)).Must(b.t)
	kit.Require(b.t, len(list) == 1 && list[0].Path == "docs/new.md" && list[0].Link, "the daemon is asked for %+v", list)
	done := version("docs/new.md", 1, time.Now(), "new")
	done["by"], done["link_request"] = "viewer", list[0].ID
	must(b.t, s.sendArtifacts(s.key, x, "documents", done))
	b.wait("it is done", `document.querySelector("#link-requests .done") && document.querySelector('.chip a[title="docs/new.md"]')`)
	b.clickWait(`button[aria-label="Unlink docs/new.md"]`, "its end is asked for", `document.querySelector("#link-requests .waiting")?.innerText.includes("Unlink docs/new.md")`)
	list = kit.Try(s.linkRequests(s.key, x.machine)).Must(b.t)
	must(b.t, s.sendArtifacts(s.key, x, "documents", object{"path": "docs/new.md", "change": "refused", "by": "viewer", "at": time.Now().UTC().Format(time.RFC3339), "link_request": list[0].ID, "reason": "only from this machine"}))
	b.wait("it is refused", `document.querySelector("#link-requests .refused")?.innerText.includes("only from this machine")`)
}
