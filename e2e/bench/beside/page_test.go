//go:build linux

package beside

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"github.com/ccship/ccship/e2e/kit"
)

// visits is how often the list is opened; the medians count.
const visits = 5

// browser is the one Chromium of this test process.
var browser struct {
	once  sync.Once
	ctx   context.Context
	close context.CancelFunc
}

func closeBrowser() {
	if browser.close != nil {
		browser.close()
	}
}

func chromium(t *testing.T) context.Context {
	t.Helper()
	browser.once.Do(func() {
		path := os.Getenv("CCSHIP_CHROMIUM")
		for _, name := range []string{"chromium-headless-shell", "chromium", "google-chrome"} {
			if found, err := exec.LookPath(name); path == "" && err == nil {
				path = found
			}
		}
		if path == "" {
			t.Fatal("no Chromium is installed; on Debian: apt-get install chromium, or name one in CCSHIP_CHROMIUM")
		}
		options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.DisableGPU, chromedp.NoSandbox,
			chromedp.UserDataDir(filepath.Join(kit.Workshop(), "chromium")), chromedp.WindowSize(1440, 900),
			chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"), chromedp.Env("HOME="+kit.Workshop()))
		alloc, free := chromedp.NewExecAllocator(context.Background(), options...)
		ctx, end := chromedp.NewContext(alloc)
		browser.ctx, browser.close = ctx, func() { end(); free() }
		must(t, chromedp.Do(ctx))
	})
	return browser.ctx
}

// seen is what a page says of its loading.
type seen struct {
	Bytes, Requests int64
	First, Sight    float64 // ms
}

// visit opens an address with an empty cache several times. login is where one gets in before that, "" for nowhere.
func visit(t *testing.T, address, login, shown string) (weight int64, requests int, paint, sight time.Duration) {
	t.Helper()
	ctx, done := chromedp.NewContext(chromium(t), chromedp.WithNewBrowserContext())
	defer done()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	must(t, chromedp.Do(ctx))
	evaluate := func(expression string, into any) bool {
		raw, err := chromedp.Run(ctx, chromedp.Evaluate[[]byte](expression, chromedp.EvalAwaitPromise))
		return err == nil && json.Unmarshal(raw, into) == nil
	}
	yes := func(expression string) func() bool {
		return func() bool { ok := false; return evaluate("!!("+expression+")", &ok) && ok }
	}
	if login != "" {
		must(t, chromedp.Do(ctx, chromedp.Navigate(login)))
		kit.Eventually(t, "the button of the link", patience, yes(`document.querySelector("form.stack button.main")`))
		evaluate(`document.querySelector("form.stack button.main").click()`, new(any))
		kit.Eventually(t, "logged in", patience, yes(`!location.href.includes("login") && document.readyState === "complete"`))
	}
	_, err := chromedp.Call(ctx, network.Enable, network.EnableParams{})
	must(t, err)
	_, err = chromedp.Call(ctx, network.SetCacheDisabled, network.SetCacheDisabledParams{CacheDisabled: true})
	must(t, err)
	var all []seen
	for range visits {
		must(t, chromedp.Do(ctx, chromedp.Navigate("about:blank")))
		must(t, chromedp.Do(ctx, chromedp.Navigate(address)))
		kit.Eventually(t, "rows of "+address, patience, yes(shown))
		var s seen
		evaluate("performance.now()", &s.Sight)
		kit.Pass(3 * time.Second) // what comes later counts too
		if !evaluate(`(() => { const r = [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")];
			return {Bytes: r.reduce((n, e) => n + e.transferSize, 0), Requests: r.length, First: performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? 0, Sight: `+
			number(s.Sight)+`} })()`, &s) {
			t.Fatal("the page does not say what it loaded")
		}
		all = append(all, s)
	}
	median := func(of func(seen) float64) float64 {
		var values []float64
		for _, s := range all {
			values = append(values, of(s))
		}
		slices.Sort(values)
		return values[len(values)/2]
	}
	ms := func(of func(seen) float64) time.Duration {
		return time.Duration(median(of) * float64(time.Millisecond))
	}
	return int64(median(func(s seen) float64 { return float64(s.Bytes) })), int(median(func(s seen) float64 { return float64(s.Requests) })),
		ms(func(s seen) float64 { return s.First }), ms(func(s seen) float64 { return s.Sight })
}

// number is a number as JavaScript has it.
func number(n float64) string { return strconv.FormatFloat(n, 'g', -1, 64) }
