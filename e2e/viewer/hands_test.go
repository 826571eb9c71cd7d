//go:build unix

package viewer_test

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/ccship/ccship/e2e/kit"
)

// quoted is a text as JavaScript.
func quoted(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // no string has none
	}
	return string(b)
}

// one is an expression for the first element that matches.
func one(selector string) string { return "document.querySelector(" + quoted(selector) + ")" }

// click presses the mouse on the first match. A page may move meanwhile; then it is made again, as a person would.
func (b *tab) click(selector string) {
	b.t.Helper()
	b.wait(selector+" is there", one(selector))
	b.loaded() // before that nothing may come of it
	for range 100 {
		if b.pressed(selector) {
			return
		}
		b.t.Logf("the page moved, and the click on %s fell beside it", selector)
	}
	b.t.Fatalf("no click reaches %s\n%s", selector, b.excerpt())
}

// pressWait presses a key, and waits for what comes of it.
func (b *tab) pressWait(key, what, expression string) {
	b.t.Helper()
	b.press(key)
	b.wait(what, expression)
}

// clickWait clicks, and waits for what comes of it.
func (b *tab) clickWait(selector, what, expression string) {
	b.t.Helper()
	b.click(selector)
	b.wait(what, expression)
}

// pressed reports whether the press reached the element. A page that it left was reached too.
func (b *tab) pressed(selector string) bool {
	b.t.Helper()
	eval[any](b, `((e) => {
		window.reached = false;
		e.addEventListener("click", () => { window.reached = true; }, { once: true, capture: true });
		e.scrollIntoView({ block: "center" });
	})(`+one(selector)+`)`)
	b.do("click "+selector, chromedp.Click(chromedp.CSS(selector), chromedp.NodeVisible))
	return b.mute || eval[bool](b, `window.reached !== false`)
}

// press types keys, each going down and up: a page can keep a key from becoming text, as with a real keyboard.
func (b *tab) press(keys ...string) {
	b.t.Helper()
	b.loaded() // before that no page takes a key
	for _, k := range keys {
		events := kb.Encode([]rune(k)[0])
		down, up := *events[0], *events[len(events)-1]
		if len(events) == 3 {
			down.Text, down.UnmodifiedText = events[1].Text, events[1].UnmodifiedText
		}
		call(b, input.DispatchKeyEvent, down)
		call(b, input.DispatchKeyEvent, up)
	}
}

// fill types a text into a field that is empty, and presses Enter.
func (b *tab) fill(selector, text string) {
	b.t.Helper()
	b.do("fill "+selector, chromedp.SendKeys(chromedp.CSS(selector), text+"\r", chromedp.NodeVisible))
}

// text is what can be read in the first element that matches; "" when there is none.
func (b *tab) text(selector string) string {
	b.t.Helper()
	return eval[string](b, "("+one(selector)+`?.innerText || "").trim()`)
}

// count is how many elements match.
func (b *tab) count(selector string) int {
	b.t.Helper()
	return eval[int](b, "document.querySelectorAll("+quoted(selector)+").length")
}

// reads demands that all texts can be read somewhere in the element.
func (b *tab) reads(selector string, texts ...string) {
	b.t.Helper()
	got := b.text(selector)
	for _, want := range texts {
		kit.Check(b.t, strings.Contains(got, want), "%s lacks %q:\n%s", selector, want, brief(got))
	}
}

// login goes to the login page and logs in with a key.
func (b *tab) login(key string) {
	b.t.Helper()
	b.open("/login")
	b.wait("the key can be typed at once", `document.activeElement === document.querySelector("#key")`)
	b.fill("#key", key)
	b.wait("logged in", `document.readyState === "complete" && !document.querySelector("#key")`)
}

// picture is what the window shows, as PNG.
func (b *tab) picture() []byte {
	b.t.Helper()
	return kit.Try(chromedp.Run(b.ctx, chromedp.CaptureScreenshot())).Must(b.t)
}

func itoa(n int) string { return strconv.Itoa(n) }

// brief is a text on one line, not too long.
func brief(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > 1500 {
		s = s[:1500] + "…"
	}
	return s
}
