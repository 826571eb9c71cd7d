package api_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"strings"
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
