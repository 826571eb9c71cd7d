//go:build unix

package viewer_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/ccship/ccship/e2e/kit"
)

// TestBasePath follows links behind a reverse proxy that gives the server one path: nothing is asked outside of it.
func TestBasePath(t *testing.T) {
	t.Parallel()
	s := newSite(t, "--base-path", "/ccship", "--trusted-proxies", "127.0.0.1")
	must(t, s.send(s.key, where(taleID, "harbour", false), firstOf(tale(t0)).lines))
	s.settled(t)
	to := kit.Try(url.Parse(strings.TrimSuffix(s.url, "/ccship"))).Must(t)
	mux := http.NewServeMux()
	mux.Handle("/ccship/", &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(to)
		r.SetXForwarded()
	}})
	proxy := httptest.NewServer(mux)
	t.Cleanup(proxy.Close)
	t.Cleanup(proxy.CloseClientConnections) // the stream of changes has no end
	b := newTab(t, proxy.URL+"/ccship")
	b.login(s.key)
	below(b)
	b.clickWait("a.title", "the conversation is open", `document.querySelector("#items")`)
	b.loaded()
	b.wait("the prompts are listed", `document.querySelector(".toc li a")`)
	below(b)
	b.wait("it follows", `!document.querySelector("#following").hidden`)
	b.clickWait(".toc li:not(.moment) a", "the prompt is there", `location.hash`)
	b.clickWait(eval[string](b, "location.hash")+" a.raw", "the record is shown", `document.querySelector(".provenance")`)
	below(b)
	b.open("/usage")
	below(b)
	b.fill("#find", taleWord)
	b.wait("something is found", `document.querySelector(".hit")`)
	below(b)
	b.clickWait(`.theme button[value="dark"]`, "the theme is dark", `document.documentElement.dataset.theme === "dark"`)
	b.open("/")
	b.wait("the theme stays", `document.documentElement.dataset.theme === "dark"`)
	b.clickWait(`form[action$="/logout"] button`, "logged out", formAt)
	for _, r := range b.requests() {
		kit.Check(t, strings.HasPrefix(r, proxy.URL+"/ccship/") || strings.HasPrefix(r, "data:image/") || r == "about:blank",
			"asked for %s", r)
	}
}

// firstOf is the first of two.
func firstOf[A, B any](a A, _ B) A { return a }

// below demands that everything a page leads to or asks for lies below the base path.
func below(b *tab) {
	b.t.Helper()
	for _, fault := range eval[[]string](b, `[...document.querySelectorAll("[href], [src], [action], [data-src], [data-tail]")].flatMap((e) =>
		["href", "src", "action", "data-src", "data-tail"].map((a) => e.getAttribute(a)).filter((v) => v)).filter((v) => {
			const u = new URL(v, location.href);
			return u.origin === location.origin && !u.pathname.startsWith("/ccship/");
		})`) {
		b.t.Errorf("%s leads to %s", eval[string](b, `location.pathname`), fault)
	}
}

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

// launch starts a program.
func launch(env []string, program string, args ...string) (*kit.Process, error) {
	cmd := exec.Command(program, args...)
	cmd.Env = env
	return kit.Start(cmd)
}

// output runs a program to its end and answers its standard output.
func output(env []string, program string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = env
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return "", fmt.Errorf("%s %s: %w: %s", program, strings.Join(args, " "), err, exit.Stderr)
	}
	return strings.TrimSpace(string(out)), err
}

// stream is a transcript as a client tells the server of it.
type stream struct {
	id, parent    string
	machine, host string
	project, cwd  string
	generation    int64
	rewoundTo     int64
}

// requestBytes is about how much one request holds.
const requestBytes = 4 << 20

// send posts the lines of a generation, in as many requests as it takes.
func (s *site) send(key string, x stream, lines []string) error {
	for from := 0; from < len(lines) || from == 0; {
		to, size := from, 0
		for ; to < len(lines) && size < requestBytes; to++ {
			size += len(lines[to])
		}
		body, err := x.body(lines[from:to], x.rewoundTo+int64(from))
		if err != nil {
			return err
		}
		if err := s.posts("POST", "/api/conversations", key, body); err != nil {
			return err
		}
		if from = to; len(lines) == 0 {
			break
		}
	}
	return nil
}

// body is one request. Lines that are no objects travel as opaque ones.
func (x stream) body(lines []string, first int64) ([]byte, error) {
	head := x.head()
	head["generation"], head["rewound_to"], head["to"] = x.generation, x.rewoundTo, object{"line": first + int64(len(lines))}
	entries := make([]any, len(lines))
	for i, l := range lines {
		n := first + int64(i)
		entries[i] = object{"line_index": n, "type": "ccship.opaque", "encoding": "base64", "data": []byte(l)}
		if strings.HasPrefix(l, "{") && json.Valid([]byte(l)) {
			entries[i] = json.RawMessage(fmt.Sprintf(`{"line_index":%d,%s`, n, l[1:]))
		}
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // lines travel as they are
	if err := e.Encode(object{"session_id": x.id, "project_hash": "hash-of-" + x.project, "ccship": head, "entries": entries}); err != nil {
		return nil, fmt.Errorf("write a request: %w", err)
	}
	return b.Bytes(), nil
}
