//go:build unix

package viewer_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/ccship/ccship/e2e/kit"
)

// chromiums are the names under which systems have it. The first ones are the same browser without windows, tool bars
// and what else is around a page: that takes half of the time.
var chromiums = []string{"chromium-headless-shell", "chrome-headless-shell", "headless_shell",
	"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"}

// browser is the one Chromium of this test process. Each tab has cookies of its own.
var browser struct {
	once  sync.Once
	ctx   context.Context
	close context.CancelFunc
	err   error
}

// needBrowser starts Chromium, or skips the test where there is none. In CI there must be one.
func needBrowser(t testing.TB) context.Context {
	t.Helper()
	path := os.Getenv("CCSHIP_CHROMIUM")
	for _, name := range chromiums {
		if path == "" {
			path, _ = exec.LookPath(name) // the next name, or none
		}
	}
	if path == "" {
		kit.Require(t, os.Getenv("CCSHIP_CI") == "", "no Chromium is installed")
		t.Skip("no Chromium is installed; on Debian: apt-get install chromium, or name one in CCSHIP_CHROMIUM")
	}
	browser.once.Do(func() { browser.ctx, browser.close, browser.err = startBrowser(path) })
	must(t, browser.err)
	return browser.ctx
}

// startBrowser has an empty profile and resolves no name: nothing leaves the machine, but what asks is seen.
func startBrowser(path string) (context.Context, context.CancelFunc, error) {
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.DisableGPU, chromedp.NoSandbox,
		chromedp.UserDataDir(filepath.Join(kit.Workshop(), "chromium")), chromedp.WindowSize(1440, 900),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost"),
		chromedp.Flag("hide-scrollbars", true), chromedp.Flag("lang", "en-GB"),
		chromedp.Env("HOME="+kit.Workshop(), "TZ=UTC", "LANG=en_GB.UTF-8"),
	)
	alloc, free := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, end := chromedp.NewContext(alloc)
	stop := func() { end(); free() }
	if err := chromedp.Do(ctx); err != nil {
		stop()
		return nil, nil, err
	}
	return ctx, stop, nil
}

func closeBrowser() {
	if browser.close != nil {
		browser.close()
	}
}
