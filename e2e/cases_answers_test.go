//go:build unix

package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/ccship/ccship/e2e/kit"
)

// TestRefusedForAWhile: whatever a server answers to everything for a while, in the end it has every line.
func TestRefusedForAWhile(t *testing.T) {
	tests := []struct {
		name  string
		fault fault
		taken bool   // the server took lines before it began to refuse
		state string // what status calls it meanwhile
	}{
		{"400 from the start", refuse(400), false, "refused"},
		{"422 later", refuse(422), true, "refused"},
		{"401", refuse(401), true, "refused"},
		{"403 from the start", refuse(403), false, "refused"},
		{"404", refuse(404), true, "refused"},
		{"408", refuse(408), true, "retrying"},
		{"429", refuse(429, "Retry-After", "1"), true, "retrying"},
		{"503", refuse(503), true, "retrying"},
		{"redirect to another host", refuse(302, "Location", "http://192.0.2.1/api/conversations"), true, "refused"},
		{"success is false", onPost(say(200, "application/json", `{"success":false,"error":"no"}`)), true, "retrying"},
		{"a web page", onPost(say(200, "text/html", "<html>Sign in to the hotel's network</html>")), true, "retrying"},
		{"connections cut", unreachable, true, "retrying"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			onBoth(t, func(t *testing.T, w *world) {
				c, path := w.conversation(40)
				w.add(path, c.even(20, 1500))
				if test.taken {
					w.startAndSync()
					w.gate.set(test.fault)
				} else {
					w.gate.set(test.fault)
					w.start()
				}
				w.add(path, c.even(20, 1500))
				w.until("status says "+test.state, func(s status) bool {
					return s.Outbox.Entries > 0 && len(s.Servers) > 0 && s.Servers[0].State == test.state
				})
				w.gate.set(nil)
				w.sync()
				w.same(c.session, path)
				w.dead(0)
				w.verified()
			})
		})
	}
}

// say answers everything alike.
func say(code int, kind, body string) fault {
	v := &verdict{status: code, header: map[string]string{"Content-Type": kind}, body: body}
	return func(*http.Request) *verdict { return v }
}

// plainBody is a request's body, decompressed.
func plainBody(t testing.TB, r *http.Request) []byte {
	body, err := io.ReadAll(r.Body)
	if err != nil || r.Header.Get("Content-Encoding") != "zstd" {
		return body
	}
	reader, err := zstd.NewReader(bytes.NewReader(body))
	if err != nil {
		t.Error(err)
		return nil
	}
	defer reader.Close()
	body, err = io.ReadAll(reader)
	kit.Check(t, err == nil, "zstd body: %v", err)
	return body
}

// TestAnswersLost: what was stored but not acknowledged is sent again and changes nothing.
func TestAnswersLost(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		c, path := shipped(w, 44, 5)
		var n atomic.Int64
		w.gate.set(onPost(func(*http.Request) *verdict { return kit.If(n.Add(1)%2 == 1, &verdict{lose: true}, nil) }))
		for range 4 {
			w.addAndSync(path, c.even(10, 1500))
		}
		w.proven(c.session, path)
	})
}

// TestKilledWhileTheServerIsDown: what was queued before the kill is there after it, and goes out once.
func TestKilledWhileTheServerIsDown(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		w.gate.set(refuse(503))
		streams := map[string]string{}
		total := 0
		for i := range 20 {
			c := newConversation(uint64(500+i), w.cwd())
			path := w.path(fmt.Sprintf("-work-%d", i%3), c.session+".jsonl")
			w.add(path, c.even(50, 1500))
			streams[c.session] = path
			total += 50
		}
		w.start()
		w.until("it has been refused, with lines queued", func(s status) bool {
			posts, _, _ := w.gate.counts()
			return posts > 0 && s.Outbox.Entries >= int64(total)
		})
		w.d.Kill()
		w.start()
		n := w.status().Outbox.Entries
		kit.Check(t, n == int64(total), "after the kill %d entries are queued, want %d", n, total)
		w.gate.set(nil)
		w.sync()
		for stream, path := range streams {
			w.same(stream, path)
		}
		if w.plain != nil {
			same, other := w.plain.repeats()
			kit.Check(t, same+other == 0, "%d lines were sent twice", same+other)
		}
		w.verified()
	})
}

// TestProxyRefusesForAWhile: a proxy refuses everything for a while, and a session writes one line now and then. No line
// is blamed for it.
func TestProxyRefusesForAWhile(t *testing.T) {
	page := map[string]string{"Content-Type": "text/html"}
	for name, v := range map[string]*verdict{
		"400 with a page": {status: 400, header: page, body: "<html>Bad Request</html>"},
		"413 with a page": {status: 413, header: page, body: "<html>Request Entity Too Large</html>"},
		"413 empty":       {status: 413},
		"200 with a page": {status: 200, header: page, body: "<html>Welcome</html>"},
		"200 uncounted":   {status: 200, header: map[string]string{"Content-Type": "application/json"}, body: `{"success":true}`},
	} {
		t.Run(name, func(t *testing.T) {
			w, c, path := aloneShipped(t, 61, 5)
			w.gate.set(onPost(func(*http.Request) *verdict { return v }))
			for range 5 {
				w.add(path, c.even(1, 1500))
				posts, _, _ := w.gate.counts()
				kit.Within(2*time.Second, func() bool { n, _, _ := w.gate.counts(); return n > posts })
			}
			w.gate.set(nil)
			w.sync()
			w.dead(0)
			w.proven(c.session, path)
		})
	}
}

// TestNamesThatAServerRefuses: transcripts whose names hold control characters are delivered.
func TestNamesThatAServerRefuses(t *testing.T) {
	w, c, path := aloneShipped(t, 63, 5)
	names := map[string]string{}
	for i := range 10 {
		odd := newConversation(uint64(700+i), w.cwd())
		file := w.path("-work-shop", fmt.Sprintf("odd\x07%d%%.jsonl", i))
		w.add(file, odd.even(10, 1500))
		names[fmt.Sprintf("odd%%07%d%%25", i)] = file
	}
	w.addAndSync(path, c.even(1, 1500))
	w.same(c.session, path)
	for name, file := range names {
		raw, err := os.ReadFile(filepath.Clean(file))
		kit.Check(t, err == nil && bytes.Equal(w.exact.raw(name, ""), raw), "%s: the server holds something else than the disk (%v)", name, err)
	}
	w.verified()
}
