//go:build unix

package viewer_test

import (
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// focused is an expression for what the focused element says.
const focused = `document.activeElement.innerText || document.activeElement.value || ""`

// TestKeyboard goes through list and conversation without a mouse.
func TestKeyboard(t *testing.T) {
	b, _ := reader(t)
	titles := eval[[]string](b, `[...document.querySelectorAll("[data-row] a.title")].map((e) => e.innerText)`)
	for _, step := range []struct {
		key  string
		want string
	}{{"j", titles[0]}, {"j", titles[1]}, {"j", titles[2]}, {"k", titles[1]}, {"k", titles[0]}} {
		b.pressWait(step.key, step.key+" goes to "+step.want, focused+" === "+quoted(step.want))
	}
	b.pressWait("?", "the help is open", `document.querySelector("dialog").open`)
	b.reads("dialog", "j", "k", "/")
	b.pressWait("j", "keys rest while the help is open", `!document.activeElement.closest("[data-row]")`)
	b.pressWait(kb.Escape, "the help is closed", `!document.querySelector("dialog").open`)
	b.pressWait("j", "the focus is back", focused+" === "+quoted(titles[1])+" || "+focused+" === "+quoted(titles[0]))
	b.pressWait("/", "the search field has the focus", `document.activeElement.id === "find"`)
	b.press("j", "g")
	b.wait("a field takes keys as text", `document.querySelector("#find").value === "jg"`)
	b.pressWait(kb.Escape, "Escape leaves the field", `document.activeElement.id !== "find"`)
	b.press("j", kb.Enter)
	b.wait("Enter opens the session", `document.querySelector("#items")`)
	b.loaded()
	b.open("/sessions/" + taleID)
	b.pressWait("n", "n goes to a prompt", `document.activeElement.matches(".item.prompt")`)
	b.pressWait("n", "and to the next", focused+`.includes("Now the quiet hours")`)
	b.pressWait("p", "p goes back", focused+`.includes(`+quoted(talePrompt)+`)`)
	b.pressWait("j", "j goes to the item behind", `document.activeElement.matches(".item.answer:has(details.think)")`)
	b.pressWait(kb.Enter, "Enter unfolds", `document.activeElement.querySelector("details").open`)
	b.pressWait("e", "e unfolds everything", `![...document.querySelectorAll("details.tool, details.think")].some((d) => !d.open)`)
	b.pressWait("e", "and folds it", `![...document.querySelectorAll("details.tool, details.think")].some((d) => d.open)`)
}

// TestTabOrder: the tab key goes from beginning to end, each stop shows its focus, and a fold opens by key.
func TestTabOrder(t *testing.T) {
	b, _ := reader(t)
	for _, path := range []string{"/", "/sessions/" + taleID, "/search?q=hours", "/usage", "/account"} {
		b.open(path)
		eval[any](b, `document.activeElement.blur(), getSelection().removeAllRanges(), scrollTo(0, 0)`)
		if path == "/" {
			b.pressWait(kb.Tab, "the first stop is the way past the navigation", `document.activeElement.matches(".skip") && document.activeElement.getBoundingClientRect().left >= 0`)
			b.press(kb.Enter, kb.Tab)
			b.wait("it leads to the content", `document.activeElement.closest("main")`)
		}
		for _, fault := range eval[[]string](b, `audit.order()`) {
			t.Errorf("%s: %s", path, fault)
		}
	}
	b.open("/sessions/" + taleID)
	fold := openTool(b, "24 \\* time.Hour")
	eval[any](b, one(fold+" > summary")+".focus()")
	b.pressWait(" ", "the space bar folds", "!"+one(fold)+".open")
	b.pressWait(kb.Enter, "Enter unfolds", one(fold)+".open")
}
