//go:build unix

package viewer_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"

	"github.com/ccship/ccship/e2e/kit"
)

// pages are all kinds of pages of the gallery, by name.
func pages() map[string]string {
	return map[string]string{
		"list": "/", "filtered": "/?q=board&model=claude-sonnet-5-5", "conversation": "/sessions/" + taleID, "everything": "/sessions/" + taleID + "?mode=everything",
		"prompts": "/sessions/" + taleID + "?mode=prompts", "agent": "/sessions/" + taleID + "%2Fagent-" + taleAgent, "entry": "/sessions/" + taleID + "/entry/7",
		"compare": "/sessions/" + rewrittenID + "/compare", "search": "/search?q=hours", "nothing": "/search?q=zzzz", "usage": "/usage", "year": "/usage?range=365&by=project",
		"saved": "/?q=board&view=failed", "saved-search": "/search?q=clock+kind:prompt", "drops": "/drops", "why": "/why", "account": "/account", "missing": "/sessions/none", "nowhere": "/nowhere",
		"context": "/sessions/" + taleID + "/context", "document": "/sessions/" + taleID + "/document?path=docs/clock.md", "code": "/sessions/" + taleID + "/document?path=timetable/board.go",
		"deleted": "/sessions/" + taleID + "/document?path=notes/old-rule.txt", "versions": "/sessions/" + taleID + "/document/compare?path=docs/clock.md",
		"file":   "/sessions/" + taleID + "/file?name=tool-results/toolu_01Clock.txt",
		"costly": "/?view=costly", "longest": "/?view=long", "activity": "/activity", "now": "/now", "share": "/sessions/" + taleID + "/share", "links": "/share-links",
		"shared": gallery.link, "shared-agent": gallery.link + "/sessions/" + taleID + "%2Fagent-" + taleAgent, "shared-line": gallery.link + "/sessions/" + taleID + "/entry/7",
	}
}

// unfold opens everything that can be opened, what is fetched for it included.
func unfold(b *tab) {
	b.t.Helper()
	eval[any](b, `document.querySelectorAll("main details").forEach((d) => { d.open = true; })`)
	b.wait("all that unfolds is there", `![...document.querySelectorAll("details[open] > [data-src], details[open][data-src]")].length`)
}

// TestPhone: at the width of a phone no page is wider than the window, with everything unfolded.
func TestPhone(t *testing.T) {
	b, _ := reader(t)
	b.allow("404")
	for _, width := range []int64{390, 320} {
		b.size(width, 844)
		for name, path := range pages() {
			b.open(path)
			unfold(b)
			wide := eval[string](b, `((w) => { // a phone makes the window itself as wide as what is in it
				const need = Math.max(innerWidth, document.documentElement.scrollWidth);
				const out = [...document.querySelectorAll("body *")].filter((e) => e.getBoundingClientRect().right > w + 1 && !e.closest(".scroll, pre, .nav"));
				return need > w ? need + ": " + out.slice(0, 5).map((e) => e.tagName + "." + e.className).join(" ") : "";
			})(`+itoa(int(width))+`)`)
			kit.Check(t, wide == "", "%s is wider than %d: %s", name, width, wide)
		}
	}
}

var inUTC = regexp.MustCompile(`.{0,10}\d\d:\d\d(:\d\d)? UTC`)

// TestLocalTimes: every moment on a page is in the browser's zone, also in the choices of a form.
func TestLocalTimes(t *testing.T) {
	b, _ := reader(t)
	call(b, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: "Asia/Kathmandu"})
	for _, name := range []string{"list", "conversation", "compare", "versions", "drops", "entry", "context", "share", "links", "account"} {
		b.open(pages()[name])
		unfold(b)
		at := inUTC.FindString(eval[string](b, `document.body.innerText`))
		kit.Check(t, at == "", "%s shows %s", name, at)
		wrong := eval[string](b, `[...document.querySelectorAll("[data-stamp]")].filter((e) => {
			const at = new Date(e.dateTime || e.dataset.stamp);
			return !e.textContent.endsWith(new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium", timeZone: "Asia/Kathmandu" }).format(at));
		}).map((e) => e.outerHTML).join()`)
		kit.Check(t, wrong == "", "%s shows the times of another zone: %s", name, wrong)
	}
	b.open(pages()["compare"])
	n := b.count(`select[name=a] option[data-stamp]`)
	kit.Check(t, n >= 2, "%d generations can be chosen", n)
}

// TestTheme: the chosen theme stays, with no moment of the other one; without a choice the system's is taken.
func TestTheme(t *testing.T) {
	b, _ := reader(t)
	ground := func() string { return eval[string](b, `getComputedStyle(document.body).backgroundColor`) }
	light := ground()
	b.colorScheme("dark")
	dark := ground()
	kit.Require(t, light != dark, "both looks have the ground %s", light)
	b.colorScheme("light")
	b.clickWait(`.theme button:not([hidden])[value="dark"]`, "the theme is dark", `getComputedStyle(document.body).backgroundColor === `+quoted(dark))
	for _, path := range []string{"/", "/usage", "/sessions/" + taleID} {
		b.open(path)
		got := ground()
		kit.Check(t, got == dark, "%s has the ground %s", path, got)
		got = eval[string](b, `fetch(location.href).then((r) => r.text()).then((s) => s.match(/<html[^>]*>/)[0])`)
		kit.Check(t, strings.Contains(got, `data-theme="dark"`), "%s is sent as %s: it would flash", path, got)
	}
	b.clickWait(`.theme button[value="light"]`, "the theme is light", `document.documentElement.dataset.theme === "light"`)
	b.colorScheme("dark")
	b.open("/")
	kit.Equal(t, "light was chosen, the ground", ground(), light)
}

// TestWithoutScript: reading, searching and choosing a theme need no script.
func TestWithoutScript(t *testing.T) {
	s := needGallery(t)
	b := newTab(t, s.url)
	call(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	b.mute = true
	b.login(s.key)
	b.clickWait(`[data-session="`+taleID+`"] a.title`, "the conversation is open", `document.querySelector("#items")`)
	b.loaded()
	b.reads("main", talePrompt)
	b.reads(openTool(b, "Run the tests of the board"), "06:10 Ronas is missing")
	b.clickWait(".toc a", "the prompts are a page", `document.querySelector("ol.prompts.page")`)
	b.reads("ol.prompts.page", "Now the quiet hours")
	b.fill("#find", taleWord)
	b.wait("something is found", `document.querySelector(".hit mark")`)
	b.clickWait(`.theme button[value="dark"]`, "the theme is dark", `document.documentElement.dataset.theme === "dark" && document.querySelector(".hit")`)
}
