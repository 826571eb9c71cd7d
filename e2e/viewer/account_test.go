//go:build unix

package viewer_test

import (
	"strings"
	"testing"

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
