//go:build unix

package viewer_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/ccship/ccship/e2e/kit"
)

// tab is a browser tab with cookies of its own, which is watched: at the end of the test there must have been no
// trouble.
type tab struct {
	t    testing.TB
	ctx  context.Context
	home string // what every address must begin with, without a slash at its end
	mute bool   // pages run no script, so none can tell where a click lands

	mu       sync.Mutex
	asked    []string // addresses of all requests
	answered []string // and of those whose answer has begun
	troubles []string
	allowed  []string // parts of troubles that the test brings about
}

// patience is how long the slowest of loaded machines may take for anything on a page.
const patience = 10 * time.Minute

// newTab opens an empty tab for the pages below home.
func newTab(t testing.TB, home string) *tab {
	t.Helper()
	b := watchTab(t, home)
	t.Cleanup(func() {
		for _, trouble := range b.seen() {
			t.Error(trouble)
		}
	})
	return b
}

// watchTab is a tab that reports no violations by itself.
func watchTab(t testing.TB, home string) *tab {
	t.Helper()
	b := &tab{t: t, home: strings.TrimSuffix(home, "/")}
	var done context.CancelFunc
	b.ctx, done = chromedp.NewContext(needBrowser(t), chromedp.WithNewBrowserContext(), chromedp.WithListener(b.note))
	t.Cleanup(done)
	b.do("open a tab")
	call(b, network.Enable, network.EnableParams{})
	call(b, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{
		Source: auditor + `window.ran = []; window.canary = (n) => { ran.push(n); console.error("a payload ran", n); }; addEventListener("securitypolicyviolation", (e) => console.error("policy:", e.violatedDirective, e.blockedURI, e.sample));`})
	b.size(1440, 900)
	b.colorScheme("light")
	return b
}

// call runs a command of the protocol.
func call[P, R any](b *tab, command cdp.Command[P, R], params P) R {
	b.t.Helper()
	return kit.Try(chromedp.Call(b.ctx, command, params)).Must(b.t)
}

// note records violations. It must not wait.
func (b *tab) note(event any) {
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		b.request(e.Request.URL)
	case *network.EventResponseReceived:
		kit.Locked(&b.mu, func() { b.answered = append(b.answered, e.Response.URL) })
	case *network.EventWebSocketCreated:
		b.trouble("a web socket to %s", e.URL)
	case *runtime.EventConsoleAPICalled:
		var words []string
		for _, a := range e.Args {
			word := string(a.Value) + a.Description
			_ = json.Unmarshal(a.Value, &word) // a text stands without its quotes, anything else as it is
			words = append(words, word)
		}
		b.trouble("console %s: %s", e.Type, strings.Join(words, " "))
	case *runtime.EventExceptionThrown:
		what := e.ExceptionDetails.Text
		if e.ExceptionDetails.Exception != nil {
			what += " " + e.ExceptionDetails.Exception.Description
		}
		b.trouble("exception: %s", what)
	case *log.EventEntryAdded:
		b.trouble("%s: %s %s", e.Entry.Level, e.Entry.Text, e.Entry.URL)
	case *page.EventJavascriptDialogOpening:
		b.trouble("a dialog: %s", e.Message)
		go func() { // else the page waits for ever
			_, _ = chromedp.Call(b.ctx, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{Accept: true})
		}()
	}
}

func (b *tab) request(address string) {
	kit.Locked(&b.mu, func() { b.asked = append(b.asked, address) })
	for _, own := range []string{b.home + "/", "data:image/", "about:blank"} {
		if strings.HasPrefix(address, own) {
			return
		}
	}
	if address != b.home {
		b.trouble("a request to %s", address)
	}
}

func (b *tab) trouble(format string, args ...any) {
	kit.Locked(&b.mu, func() { b.troubles = append(b.troubles, fmt.Sprintf(format, args...)) })
}

// allow says that the test itself brings about troubles with this text in them.
func (b *tab) allow(part string) { kit.Locked(&b.mu, func() { b.allowed = append(b.allowed, part) }) }

// seen are the troubles that were not allowed.
func (b *tab) seen() (out []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
next:
	for _, trouble := range b.troubles {
		for _, part := range b.allowed {
			if strings.Contains(trouble, part) {
				continue next
			}
		}
		out = append(out, trouble)
	}
	return out
}

// requests are the addresses asked for so far.
func (b *tab) requests() []string {
	return kit.Under(&b.mu, func() []string { return append([]string(nil), b.asked...) })
}

// listens waits until the server, which tells of every change from then on, has answered the page.
func (b *tab) listens(path string) {
	b.t.Helper()
	eventually(b.t, "the page listens to "+path, time.Minute, func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return slices.ContainsFunc(b.answered, func(r string) bool { return strings.HasPrefix(r, b.home+path) })
	})
}

// do carries steps out, with patience.
func (b *tab) do(what string, steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if len(steps) == 0 { // the first: it must not end the tab with its time
		must(b.t, chromedp.Do(b.ctx))
		return
	}
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		b.t.Fatalf("%s: %v\n%s", what, err, b.excerpt())
	}
}

// open goes to a page, "/…" below home, and waits until it is loaded.
func (b *tab) open(path string) {
	b.t.Helper()
	b.do("open "+path, chromedp.Navigate(b.home+path))
	b.loaded()
}

// loaded waits until the page and its script are there.
func (b *tab) loaded() {
	b.t.Helper()
	b.wait("the page is loaded", `document.readyState === "complete"`)
}

// evaluate is what an expression is on the page that is there.
func evaluate[T any](b *tab, expression string) (out T, err error) {
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	raw, err := chromedp.Run(ctx, chromedp.Evaluate[[]byte](expression, chromedp.EvalAwaitPromise))
	if err == nil && len(raw) > 0 {
		err = json.Unmarshal(raw, &out)
	}
	return out, err
}

// eval is what an expression is on the page, or on the next one when the page is left meanwhile.
func eval[T any](b *tab, expression string) T {
	b.t.Helper()
	for {
		out, err := evaluate[T](b, expression)
		if err == nil {
			return out
		}
		kit.Require(b.t, left(err), "evaluate %s: %v", expression, err)
	}
}

// left reports whether the browser could not answer because the page was being left.
func left(err error) bool {
	var told *cdproto.Error
	return errors.As(err, &told) && slices.Contains([]string{
		"Inspected target navigated or closed", "Execution context was destroyed.", "Cannot find context with specified id",
	}, told.Message)
}

// wait waits until an expression is true, on whatever page is there by then.
func (b *tab) wait(what, expression string) {
	b.t.Helper()
	if !kit.Within(patience, func() bool { yes, err := evaluate[bool](b, "!!("+expression+")"); return err == nil && yes }) {
		b.t.Fatalf("not within %s: %s\n%s\n%s", patience, what, expression, b.excerpt())
	}
}

// excerpt is where the tab is and what can be read there.
func (b *tab) excerpt() string {
	text, _ := evaluate[string](b, `location.href + "\n" + document.body.innerText.replace(/\n+/g, " | ").slice(0, 700)`)
	return text
}

// size sets what the page has to itself, in CSS pixels. Below 600 it is a phone.
func (b *tab) size(width, height int64) {
	b.t.Helper()
	call(b, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
		Width: width, Height: height, DeviceScaleFactor: 1, Mobile: width < 600})
}

// colorScheme sets what the system prefers, "dark" or "light", and that nothing moves.
func (b *tab) colorScheme(scheme string) {
	b.t.Helper()
	call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}}})
}
