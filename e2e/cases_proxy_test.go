//go:build unix

package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

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
			t.Parallel()
			w := exactWorld(t)
			c, path := shipped(w, 61, 5)
			w.gate.set(onPost(func(*http.Request) *verdict { return v }))
			for range 5 {
				w.add(path, c.even(1, 1500))
				posts, _, _ := w.gate.counts()
				kit.Within(2*time.Second, func() bool { n, _, _ := w.gate.counts(); return n > posts })
			}
			w.gate.set(nil)
			w.sync()
			w.dead(0)
			w.same(c.session, path)
			w.verified()
		})
	}
}

// TestRefusedAlone: with one session and one line that the server refuses, the line becomes a dead letter only when the
// server accepted something after it.
func TestRefusedAlone(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		c, path := shipped(w, 62, 5)
		w.gate.set(onPost(func(r *http.Request) *verdict {
			if bytes.Contains(plainBody(t, r), []byte("POISON")) {
				return &verdict{status: 422, body: `{"error":{"code":"poison","message":"no"}}`}
			}
			return nil
		}))
		w.add(path, []byte(`{"type":"user","message":"POISON","cwd":"`+w.cwd()+"\"}\n"))
		w.until("status shows the refusal", func(s status) bool {
			return s.Outbox.Entries > 0 && len(s.Servers) > 0 && s.Servers[0].State == "refused"
		})
		w.dead(0)
		w.addAndSync(path, c.even(5, 1500))
		w.dead(1)
		w.gate.set(nil)
	})
}

// TestNamesThatAServerRefuses: transcripts whose names hold control characters are delivered.
func TestNamesThatAServerRefuses(t *testing.T) {
	w := aloneWorld(t)
	c, path := shipped(w, 63, 5)
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
		if raw, err := os.ReadFile(filepath.Clean(file)); err != nil || !bytes.Equal(w.exact.raw(name, ""), raw) {
			t.Errorf("%s: the server holds something else than the disk (%v)", name, err)
		}
	}
	w.verified()
}
