package systemd

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/ccship/ccship/e2e/kit"
)

// browseLink in the environment makes the test's binary a browser that follows a link, in the network where it runs.
const browseLink = "CCSHIP_FIRST_MINUTES_LINK"

// browsed is what a browser saw.
type browsed struct {
	Titles []string // of the list
	Hits   int      // lines that a search found
	Resume string   // the command on the conversation's page
}

// chromiumPath is where the browser is.
func chromiumPath(t *testing.T) string {
	t.Helper()
	if path := os.Getenv("CCSHIP_CHROMIUM"); path != "" {
		return path
	}
	for _, name := range []string{"chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("no Chromium is installed; on Debian: apt-get install chromium, or name one in CCSHIP_CHROMIUM")
	return ""
}

// browse is the program that the binary is with browseLink.
func browse(link string) int {
	seen, err := follow(link)
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(seen)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// follow logs in by the link, reads the list, searches, and opens the conversation that was found.
func follow(link string) (seen browsed, err error) {
	profile, err := os.MkdirTemp("", "ccsd-browser-")
	if err != nil {
		return seen, err
	}
	defer os.RemoveAll(profile)
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(os.Getenv("CCSHIP_CHROMIUM")), chromedp.DisableGPU,
		chromedp.NoSandbox, chromedp.UserDataDir(profile), chromedp.WindowSize(1280, 800), chromedp.Env("HOME="+profile, "TZ=UTC"))
	alloc, free := chromedp.NewExecAllocator(context.Background(), options...)
	defer free()
	ctx, done := chromedp.NewContext(alloc)
	defer done()
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute) // far beyond the worst machine
	defer cancel()
	if err := chromedp.Do(ctx, chromedp.Navigate(link)); err != nil {
		return seen, err
	}
	p := &pageOf{ctx: ctx}
	p.await(`document.querySelector("form.stack button.main")`)
	p.eval(`document.querySelector("form.stack button.main").click()`, nil)
	p.await(`location.pathname === "/" && document.querySelectorAll(".row").length > 0`)
	p.eval(`[...document.querySelectorAll(".row .title")].map((e) => e.innerText.trim()).filter((s) => s)`, &seen.Titles)
	p.eval(`void (location.href = "/search?q=off+by+one+cent")`, nil)
	p.await(`location.pathname === "/search" && document.querySelector("mark")`)
	p.eval(`document.querySelectorAll("mark").length`, &seen.Hits)
	p.eval(`void document.querySelector(".found a.title").click()`, nil)
	p.await(`document.querySelector("[data-copy*='claude --resume']")`)
	p.eval(`document.querySelector("[data-copy*='claude --resume']").dataset.copy`, &seen.Resume)
	return seen, p.err
}

// pageOf is a browser's page; after an error nothing more is done.
type pageOf struct {
	ctx context.Context
	err error
}

// eval evaluates an expression; into may be nil.
func (p *pageOf) eval(expression string, into any) {
	if p.err != nil {
		return
	}
	raw, err := chromedp.Run(p.ctx, chromedp.Evaluate[[]byte](expression, chromedp.EvalAwaitPromise))
	if err == nil && into != nil {
		err = json.Unmarshal(raw, into)
	}
	if err != nil {
		p.err = fmt.Errorf("evaluate %s: %w", expression, err)
	}
}

// await waits until an expression is true.
func (p *pageOf) await(expression string) {
	if p.err != nil {
		return
	}
	is := func() bool {
		yes := false
		raw, err := chromedp.Run(p.ctx, chromedp.Evaluate[[]byte]("!!("+expression+")", chromedp.EvalAwaitPromise))
		return err == nil && json.Unmarshal(raw, &yes) == nil && yes
	}
	if !kit.Within(5*time.Minute, is) {
		text := ""
		p.eval(`location.href + "\n" + document.body.innerText.slice(0, 800)`, &text)
		p.err = fmt.Errorf("never true: %s\n%s", expression, text)
	}
}
