package api_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/api"
)

// ear listens to /api/events.
type ear struct {
	t     *testing.T
	lines chan string // closed at the end of the answer
	close context.CancelFunc
}

// listen returns once the server has started the stream.
func (r *rig) listen(query string, header map[string]string) *ear {
	r.t.Helper()
	t := r.t.(*testing.T)
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	req := kit.Try(http.NewRequestWithContext(ctx, http.MethodGet, r.http.URL+"/api/events"+query, nil)).Must(t)
	req.Header.Set("X-API-Key", r.key)
	for k, v := range header {
		req.Header.Set(k, v)
	}
	res := kit.Try(r.http.Client().Do(req)).Must(t)
	checkContract(t, req, res.StatusCode, res.Header.Get("Content-Type"), nil)
	kit.Require(t, res.StatusCode == http.StatusOK, "events: %d", res.StatusCode)
	e := &ear{t, make(chan string, 1000), cancel}
	go func() {
		defer close(e.lines)
		defer res.Body.Close()
		for in := bufio.NewScanner(res.Body); in.Scan(); {
			e.lines <- in.Text()
		}
	}()
	first := <-e.lines
	kit.Require(t, first == ": listening" || first == "event: missed", "it begins with %q", first)
	return e
}

// change is the next change event.
func (e *ear) change() map[string]any {
	e.t.Helper()
	for line := range e.lines {
		if data, ok := strings.CutPrefix(line, "data: {\"session_id\""); ok {
			var c map[string]any
			kit.Must(e.t, json.Unmarshal([]byte("{\"session_id\""+data), &c))
			return c
		}
	}
	e.t.Fatal("the answer has ended")
	return nil
}

// TestEvents: each listener receives the changes that it may see and has asked for.
func TestEvents(t *testing.T) {
	owner := newRig(t)
	ann, bob := owner.person("ann", server.Member), owner.person("bob", server.Member)
	all, own, one := owner.listen("", nil), bob.listen("", nil), owner.listen("?session=two&machine=m1&user=ann&project=ph", nil)
	ann.post(piece{lines: objects("a", 0, 3)}.body("one"))
	ann.post(piece{first: 0, lines: objects("a", 0, 2)}.body("two"))
	bob.post(piece{lines: objects("b", 0, 1)}.body("bobs"))
	for _, want := range []string{"one", "two", "bobs"} {
		c := all.change()
		kit.Check(t, c["session_id"] == want, "heard of %v, want %s", c, want)
	}
	c := own.change()
	kit.Check(t, c["session_id"] == "bobs" && c["user"] == "bob", "bob heard of %v", c)
	c = one.change()
	kit.Check(t, c["session_id"] == "two" && c["from_line"] == 0.0 && c["to_line"] == 2.0, "heard of %v", c)
	a := bob.listen("", map[string]string{"Last-Event-ID": "whatever"})
	kit.Check(t, a != nil, "who comes back is not heard")
}

// TestEventsEnd: a listener whose key is revoked is cut off, and all are when the server stops.
func TestEventsEnd(t *testing.T) {
	owner := newRig(t, func(s *api.Server) { api.SetBeat(s, 20*time.Millisecond) })
	ann := owner.person("ann", server.Member)
	hers, mine := ann.listen("", nil), owner.listen("", nil)
	owner.send("DELETE", "/api/keys/ann's%20key", "", 200)
	for range hers.lines { // ends
	}
	owner.post(piece{lines: objects("a", 0, 1)}.body("s"))
	c := mine.change()
	kit.Check(t, c["session_id"] == "s", "heard of %v", c)
	owner.end()
	for range mine.lines { // ends
	}
}

// TestEventsBusy: a listener takes no slot.
func TestEventsBusy(t *testing.T) {
	r := newRig(t, func(s *api.Server) { s.MaxRequests = 1 })
	for range 20 {
		r.listen("", nil)
	}
	r.send("GET", "/api/sessions", "", 200)
}

// TestListenersEach: one user who listens too often leaves space for others.
func TestListenersEach(t *testing.T) {
	owner := newRig(t)
	ann := owner.person("ann", server.Member)
	var ears []*ear
	for range 64 {
		ears = append(ears, ann.listen("", nil))
	}
	ann.send("GET", "/api/events", "", http.StatusServiceUnavailable)
	owner.listen("", nil)
	ears[0].close()
	for range ears[0].lines { // until it has gone here
	}
	for { // and there
		ctx, cancel := context.WithCancel(t.Context())
		req := kit.Try(http.NewRequestWithContext(ctx, http.MethodGet, ann.http.URL+"/api/events", nil)).Must(t)
		req.Header.Set("X-API-Key", ann.key)
		res := kit.Try(ann.http.Client().Do(req)).Must(t)
		cancel()
		res.Body.Close()
		if res.StatusCode == http.StatusOK {
			return
		}
	}
}

// TestEventsUnshared: what is no longer shared is not heard any more.
func TestEventsUnshared(t *testing.T) {
	owner := newRig(t)
	ann, bob := owner.person("ann", server.Member), owner.person("bob", server.Member)
	const share = `{"with":"bob","project":"ph"}`
	ann.post(piece{lines: objects("a", 0, 1)}.body("shared"))
	ann.send("POST", "/api/shares", share, 201)
	bobs := bob.listen("", nil)
	ann.post(piece{first: 1, lines: objects("a", 1, 1)}.body("shared"))
	c := bobs.change()
	kit.Check(t, c["session_id"] == "shared", "bob heard of %v", c)
	ann.send("DELETE", "/api/shares", share, 200)
	ann.post(piece{first: 2, lines: objects("a", 2, 1)}.body("shared"))
	bob.post(piece{lines: objects("b", 0, 1)}.body("bobs"))
	c = bobs.change()
	kit.Check(t, c["session_id"] == "bobs", "after the unshare bob heard of %v", c)
}

// sample is a line of Prometheus' text format.
var sample = regexp.MustCompile(`^[a-z_]+(\{([a-z_]+="([^"\\]|\\.)*"(,|\}))+)? -?[0-9.e+-]+$`)

func TestMetrics(t *testing.T) {
	r := newRig(t, func(s *api.Server) { s.Version = "1.0 \"quoted\\\"\n" })
	r.post(piece{lines: []string{`{"a":1}`, `{"b":2}`}}.body("s"))
	r.get("/api/sessions/none")
	r.get("/no/such/page")
	r.as("").send("GET", "/metrics", "", http.StatusUnauthorized)
	text := string(r.get("/metrics").body)
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		kit.Check(t, strings.HasPrefix(line, "# ") || sample.MatchString(line), "no sample: %q", line)
	}
	for _, want := range []string{
		"ccship_server_ingested_entries_total 2\n", "ccship_server_ingested_bytes_total 16\n",
		`ccship_server_requests_total{route="POST /api/conversations",code="200"} 1`,
		`ccship_server_requests_total{route="GET /api/sessions/{id}",code="404"} 1`,
		`ccship_server_request_seconds_bucket{route="POST /api/conversations",le="+Inf"} 1`,
		`ccship_server_request_seconds_count{route="POST /api/conversations"} 1`,
		`ccship_server_info{version="1.0 \"quoted\\\"\n"} 1`, "ccship_server_store_streams 1\n", "ccship_server_store_bytes ",
		"ccship_server_derive_lag_streams ", "ccship_server_requests_in_work 1\n", "ccship_server_listeners 0\n",
	} {
		kit.Has(t, "is missing", text, want)
	}
	kit.Check(t, !strings.Contains(text, "/api/sessions/none") && !strings.Contains(text, "/no/such/page"),
		"what was asked for is a label")
	kit.Equal(t, "a metric is declared more than once", strings.Count(text, "# TYPE ccship_server_requests_total "), 1)
}

func TestMetricsOpen(t *testing.T) {
	r := newRig(t, func(s *api.Server) { s.MetricsOpen = true })
	r.as("").send("GET", "/metrics", "", 200)
	for host, want := range map[string]int{"localhost:5000": 200, "[::1]": 200, "rebound.example:5000": http.StatusUnauthorized} {
		req := kit.Try(http.NewRequestWithContext(t.Context(), http.MethodGet, r.http.URL+"/metrics", nil)).Must(t)
		req.Host = host
		res := kit.Try(r.http.Client().Do(req)).Must(t)
		res.Body.Close()
		kit.Equal(t, "by the name "+host, res.StatusCode, want)
	}
	r.as("").send("GET", "/api/sessions", "", http.StatusUnauthorized)
}

// logBook is a log that tests read.
type logBook struct {
	mu sync.Mutex
	b  bytes.Buffer // guarded by mu
}

func (l *logBook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBook) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// TestLog: each request has a name that the answer has too, and neither keys nor what was sent or asked is logged.
func TestLog(t *testing.T) {
	book := &logBook{}
	r := newRig(t, func(s *api.Server) {
		s.Log = slog.New(slog.NewJSONHandler(book, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	r.post(piece{lines: []string{`{"type":"user","secret":"sesame"}`}}.body("s"))
	a := r.get("/api/search?q=sesame")
	made := r.send("POST", "/api/keys", `{"name":"k"}`, 201)
	link := r.send("POST", "/api/tickets", `{}`, 201)
	r.as("ccs_wrong").get("/api/me")
	text := book.String()
	id := a.header.Get("X-Request-Id")
	kit.Check(t, id != "" && strings.Contains(text, `"request":"`+id+`"`), "request %q is not in the log", id)
	key := decode[struct{ Key string }](t, made).Key
	ticket := decode[struct{ URL string }](t, link).URL
	_, ticket, _ = strings.Cut(ticket, "ticket=")
	for _, secret := range []string{"sesame", r.key, key, ticket, "ccs_"} {
		kit.Check(t, !strings.Contains(text, secret), "%q is in the log", secret)
	}
	for line := range strings.Lines(text) {
		kit.Check(t, json.Valid([]byte(line)), "no JSON: %s", line)
	}
}

// TestBasePath: everything is below the base path, and health at the root too.
func TestBasePath(t *testing.T) {
	pages := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "page %s", r.URL.Path) })
	r := newRig(t, func(s *api.Server) { s.Base, s.Viewer = "/some/base", pages })
	for path, want := range map[string]int{
		"/some/base/api/me": 200, "/api/me": 404, "/some/base/healthz": 200, "/healthz": 200, "/some/basement/api/me": 404,
		"/some/base/api/nothing": 404, "/some": 404, "/": 404, "/some/base/x": 200,
		"/some/base//api/me": 200, "/some/base/x/../api/me": 200, "/some/base/../base/api/me?a=b": 200, // redirected
	} {
		r.send("GET", path, "", want)
	}
	a := r.get("/some/base")
	kit.Check(t, a.status == 200 && string(a.body) == "page /", "the base itself: %d %q", a.status, a.body) // redirected
	got := string(r.get("/some/base/a%2Fb").body)
	kit.Check(t, got == "page /a/b", "%q", got)
	link := decode[struct{ URL string }](t, r.send("POST", "/some/base/api/tickets", `{}`, 201)).URL
	kit.Check(t, strings.HasPrefix(link, r.http.URL+"/some/base/login?ticket="), "the link is %s", link)
}

// TestHosts: with a public address other names are refused, so that no page can have one of its own point here.
func TestHosts(t *testing.T) {
	r := newRig(t, func(s *api.Server) {
		s.Hosts = []string{"ccship.example.org"}
		s.PublicURL = "https://ccship.example.org"
	})
	for host, want := range map[string]int{
		"ccship.example.org": 200, "CCSHIP.example.org:443": 200, "ccship.example.org.": 200, "127.0.0.1:5000": 200, "[::1]": 200, "[::1]:80": 200,
		"localhost": 200, "evil.example.org": 421, "ccship.example.org.evil.org": 421, "127.0.0.1.evil.org": 421, "": 421, "10.0.0.1": 421,
	} {
		got := r.statusAs(host, "/api/me")
		kit.Check(t, got == want || host == "", "host %q: %d, want %d", host, got, want)
	}
	kit.Equal(t, "health", r.statusAs("evil.example.org", "/healthz"), 200)
	link := decode[struct{ URL string }](t, r.send("POST", "/api/tickets", `{}`, 201)).URL
	kit.Check(t, strings.HasPrefix(link, "https://ccship.example.org/login?ticket="), "the link is %s", link)
}

// statusAs asks with a Host header.
func (r *rig) statusAs(host, path string) int {
	r.t.Helper()
	req := kit.Try(http.NewRequestWithContext(r.t.Context(), http.MethodGet, r.http.URL+path, nil)).Must(r.t)
	req.Host = host
	req.Header.Set("X-API-Key", r.key)
	res := kit.Try(r.http.Client().Do(req)).Must(r.t)
	defer res.Body.Close()
	return res.StatusCode
}
