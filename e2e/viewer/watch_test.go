//go:build unix

package viewer_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

// TestTabSeesTrouble proves that a tab would see what no page of ours may do.
func TestTabSeesTrouble(t *testing.T) {
	t.Parallel()
	needBrowser(t)
	for name, c := range map[string]struct{ page, want string }{
		"harmless":           {`<h1>x</h1><script>1</script><img alt="" src="data:image/gif;base64,R0lGODlhAQABAAAAACw=">`, ""},
		"dialog":             {`<script>alert("hello")</script>`, "a dialog: hello"},
		"console":            {`<script>console.warn("careful", 5)</script>`, "console warning: careful"},
		"exception":          {`<script>nothing()</script>`, "exception: Uncaught ReferenceError"},
		"rejection":          {`<script>Promise.reject(new Error("no"))</script>`, "exception: Uncaught (in promise) Error: no"},
		"image elsewhere":    {`<img alt="" src="http://elsewhere.example/p.png">`, "a request to http://elsewhere.example/p.png"},
		"fetch elsewhere":    {`<script>fetch("http://elsewhere.example/x").catch(() => {})</script>`, "a request to http://elsewhere.example/x"},
		"other port":         {`<img alt="" src="http://127.0.0.1:9/p.png">`, "a request to http://127.0.0.1:9/p.png"},
		"missing file":       {`<img alt="" src="/missing.png">`, "404"},
		"breach of a policy": {`<meta http-equiv="Content-Security-Policy" content="img-src 'none'"><img alt="" src="/x.png">`, "policy: img-src"},
		"web socket":         {`<script>new WebSocket("ws://127.0.0.1:9/x").onerror = () => {}</script>`, "a web socket to ws://127.0.0.1:9/x"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/" {
					w.WriteHeader(http.StatusNotFound)
					return
				}
				fmt.Fprintf(w, `<!doctype html><title>x</title><link rel="icon" href="data:image/gif;base64,R0lGODlhAQABAAAAACw=">%s`, c.page)
			}))
			defer server.Close()
			b := watchTab(t, server.URL)
			b.open("/")
			if c.want == "" {
				seen := b.seen()
				kit.Check(t, len(seen) == 0, "a harmless page: %q", seen)
				return
			}
			eventually(t, "the tab sees "+c.want, time.Minute, func() bool { return strings.Contains(strings.Join(b.seen(), "\n"), c.want) })
			b.allow(c.want)
			for _, part := range []string{"net::ERR", "404", "policy:", "Content Security Policy", "WebSocket connection"} {
				b.allow(part) // what the same fault is called elsewhere
			}
			seen := b.seen()
			kit.Check(t, len(seen) == 0, "besides: %q", seen)
		})
	}
}
