package outbox

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

func status(code int, header ...string) *canned {
	c := &canned{status: code, header: map[string]string{}}
	for i := 0; i+1 < len(header); i += 2 {
		c.header[header[i]] = header[i+1]
	}
	return c
}

// trouble is an answer that acknowledges nothing, and how it is shown.
type trouble struct {
	name        string
	answer      *canned
	state, kind string
	detail      string
}

func troubles() []trouble {
	return []trouble{
		{"401", &canned{status: 401, body: `{"error":{"code":"unauthorized","message":"unknown key"}}`}, StateRefused, KindRefusedKey, "unknown key"},
		{"403", status(403), StateRefused, KindRefusedKey, "403 Forbidden"},
		{"404", status(404), StateRefused, KindNotFound, "404"},
		{"405", status(405), StateRefused, KindNotFound, "405"},
		{"402", status(402), StateRefused, KindRefused, "402"},
		{"415", status(415), StateRefused, KindRefused, "415"},
		{"400 before anything was taken", status(400), StateRefused, KindRefused, "400"},
		{"301", status(301, "Location", "http://elsewhere.test/"), StateRefused, KindRedirect, "http://elsewhere.test/"},
		{"307 to another host", status(307, "Location", "http://elsewhere.test/base/api/conversations"), StateRefused, KindRedirect, "elsewhere"},
		{"308 without a place", status(308), StateRefused, KindRedirect, "308"},
		{"408", status(408), StateRetrying, KindBusy, "408"},
		{"425", status(425), StateRetrying, KindBusy, "425"},
		{"429", status(429), StateRetrying, KindBusy, "429"},
		{"500", status(500), StateRetrying, KindServerError, "500"},
		{"503", status(503), StateRetrying, KindServerError, "503"},
		{"success:false", &canned{status: 200, body: `{"success":false,"error":"disk full"}`}, StateRetrying, KindProtocol, "disk full"},
		{"HTML", &canned{status: 200, body: "<html>Log in to the hotel</html>"}, StateRetrying, KindProtocol, "not this protocol"},
		{"empty 204", status(204), StateRetrying, KindProtocol, "204"},
		{"JSON without success", &canned{status: 200, body: `{"ok":true}`}, StateRetrying, KindProtocol, "not this"},
		{"stored too few", &canned{status: 200, body: `{"success":true,"entries_stored":1}`}, StateRetrying, KindProtocol, "stored 1 of 5"},
		{"stored too many", &canned{status: 200, body: `{"success":true,"entries_stored":999999}`}, StateRetrying, KindProtocol, "of 5 entries"},
		{"connection cut", &canned{cut: true}, StateRetrying, KindUnreachable, "EOF"},
		{"answer lost after storing", &canned{cut: true, store: true}, StateRetrying, KindUnreachable, "EOF"},
	}
}

// TestTrouble: whatever a server answers to everything for a while, it is shown, nothing is lost, and delivery goes
// on by itself.
func TestTrouble(t *testing.T) {
	for _, test := range troubles() {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.set(func(*seen) *canned { return test.answer })
			r.queue.add(conversation(1), rowsOf(0, 5, 5)...)
			r.start()
			r.troubled(test.state, test.kind)
			h := r.drainer.Health()
			kit.Check(t, strings.Contains(h.Detail, test.detail) && !h.RetryAt.IsZero(), "health %+v does not say %q", h, test.detail)
			kit.Equal(t, "rows wait", r.queue.waiting(), 1)
			r.set(nil)
			r.retried()
			r.holds("session-1", numbers(0, 5)...)
			sum := r.queue.total()
			kit.Check(t, len(sum.Dead) <= 0 && sum.Entries == 5, "settled %+v", sum)
			r.until("the trouble is forgotten", func() bool { return r.drainer.Health().State == StateOK })
		})
	}
}

// TestUnreachable: no connection at all, for each of the reasons.
func TestUnreachable(t *testing.T) {
	secure := httptest.NewTLSServer(newServer(t))
	defer secure.Close()
	dead := httptest.NewServer(nil)
	dead.Close()
	lookup := &http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		return nil, &net.DNSError{Err: "no such host", Name: "server.test", IsNotFound: true}
	}}}
	tests := []struct {
		name, base string
		client     *http.Client
		detail     string
		hint       string
	}{
		{"certificate", secure.URL, &http.Client{Transport: &http.Transport{}}, "x509", "certificate"},
		{"name", "http://server.test", lookup, "no such host", ""},
		{"refused", dead.URL, nil, "refused", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := rigOf(t, newServer(t), test.base, test.client)
			r.queue.add(conversation(1), rowsOf(0, 5, 5)...)
			r.start()
			r.troubled(StateRetrying, KindUnreachable)
			h := r.drainer.Health()
			kit.Check(t, strings.Contains(h.Detail, test.detail) && strings.Contains(h.Hint, test.hint), "detail %q, hint %q", h.Detail, h.Hint)
		})
	}
}

// TestRedirects: the key and the entries follow to the same server only.
func TestRedirects(t *testing.T) {
	r := newRig(t)
	var stolen []string
	thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		stolen = append(stolen, q.Header.Get("X-API-Key"))
	}))
	defer thief.Close()
	r.set(func(*seen) *canned { return status(308, "Location", thief.URL+"/base/api/conversations") })
	r.queue.add(conversation(1), rowsOf(0, 3, 3)...)
	r.start()
	r.troubled(StateRefused, KindRedirect)
	kit.Check(t, len(stolen) <= 0, "another server got the key %q", stolen)
	r.set(func(q *seen) *canned {
		return kit.If(q.number%2 == 0, status(307, "Location", "/base/api/conversations"), nil)
	})
	r.retried()
	r.holds("session-1", 0, 1, 2)
}

// TestKeyCannotBeRead stops without a request, and goes on when the key is there.
func TestKeyCannotBeRead(t *testing.T) {
	r := newRig(t)
	missing := make(chan struct{})
	r.key = func() (string, error) {
		select {
		case <-missing:
			return "ccs_secret", nil
		default:
			return "", errors.New("open key: no such file")
		}
	}
	r.queue.add(conversation(1), rowsOf(0, 3, 3)...)
	r.start()
	r.troubled(StateRefused, KindRefusedKey)
	kit.Equal(t, "requests without a key", r.count(), 0)
	close(missing)
	r.drainer.Retry(true)
	r.drained()
	got := r.last().header
	kit.Check(t, got.Get("X-API-Key") == "ccs_secret" && got.Get("User-Agent") == "ccship/test", "headers %v", got)
}

// TestOneStreamRefused: a stream whose requests alone fail does not keep the others waiting.
func TestOneStreamRefused(t *testing.T) {
	for _, answer := range []*canned{status(500), status(403)} {
		t.Run(fmt.Sprint(answer.status), func(t *testing.T) {
			r := newRig(t)
			r.set(func(q *seen) *canned { return kit.If(q.session == "session-1", answer, nil) })
			r.backlog(10, 0, 20, 5)
			r.start()
			r.until("the others are through", func() bool {
				if r.drainer.Health().State == StateRefused {
					r.drainer.Retry(false)
				}
				return r.queue.waiting() == 4
			})
			r.set(nil)
			r.retried()
		})
	}
}
