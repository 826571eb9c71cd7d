package delivery

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/protocol"
)

// probing is servers whose own one is a test's, running until the end of the test.
func probing(t *testing.T, answer http.HandlerFunc) (s *Servers, key string, close func()) {
	t.Helper()
	web := httptest.NewServer(answer)
	t.Cleanup(web.Close)
	s, key = newServers(t, filepath.Join(t.TempDir(), "state.db"), &testOwner{})
	kit.Locked(&s.mu, func() { s.own, s.contacts.limit, s.contacts.fresh = web.URL, 10*time.Minute, time.Hour })
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		err := <-ended
		kit.Check(t, err == nil, "%v", err)
	})
	limit := time.After(5 * time.Minute)
	for s.drainer(web.URL) == nil {
		select {
		case <-limit:
			t.Fatal("the server is never opened")
		case <-time.After(time.Millisecond):
		}
	}
	return s, key, web.Close
}

// own is how the user's own server is listed.
func (s *Servers) listedOwn(t *testing.T) control.Server {
	t.Helper()
	list, _ := s.List(s.State.Outbox.Usage())
	kit.Require(t, len(list) == 1, "%d servers", len(list))
	return list[0]
}

// later lets every probe be so much older.
func (s *Servers) later(d time.Duration) {
	s.contacts.mu.Lock()
	defer s.contacts.mu.Unlock()
	for dest, c := range s.contacts.known {
		c.okAt, c.last.At = c.okAt.Add(-d), c.last.At.Add(-d)
		s.contacts.known[dest] = c
	}
}

// TestContact: what a probe finds is what the list of servers says.
func TestContact(t *testing.T) {
	for _, test := range []struct {
		name   string
		answer http.HandlerFunc
		state  string
		kind   string
	}{
		{"well", func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodGet || r.URL.Path != "/api/me" || r.Header.Get("X-API-Key") != "second-key" {
				t.Errorf("%s %s with key %q", r.Method, r.URL.Path, r.Header.Get("X-API-Key"))
			}
		}, outbox.StateOK, ""},
		{"plain", http.NotFound, outbox.StateOK, ""},
		{"401", status(401), outbox.StateRefused, outbox.KindRefusedKey},
		{"403", status(403), outbox.StateRefused, outbox.KindRefusedKey},
		{"502", status(502), outbox.StateRetrying, outbox.KindServerError},
		{"moved", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusPermanentRedirect)
		}, outbox.StateRefused, outbox.KindRedirect},
		{"cut", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, outbox.StateRetrying,
			outbox.KindUnreachable},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, _, _ := probing(t, test.answer)
			if got := s.listedOwn(t); got.Probe != nil || got.LastContactAt != nil {
				t.Errorf("before the probe: %+v", got)
			}
			s.Probe(t.Context(), true)
			got := s.listedOwn(t)
			kit.Check(t, got.State == test.state && got.Kind == test.kind && got.Probe != nil && got.Probe.Kind == test.kind &&
				got.Probe.OK == (test.kind == "") && (got.LastContactAt != nil) == got.Probe.OK,
				"%+v, probe %+v", got, got.Probe)
		})
	}
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

// TestContactLost: a server that answered and does not any more is distinguished from one that never did.
func TestContactLost(t *testing.T) {
	s, _, closeWeb := probing(t, status(200))
	s.Probe(t.Context(), true)
	before := s.listedOwn(t).LastContactAt
	closeWeb()
	s.Probe(t.Context(), true)
	if got := s.listedOwn(t); got.State != outbox.StateOK || !got.LastContactAt.Equal(*before) {
		t.Errorf("an answer does not speak for a while: %+v", got)
	}
	s.later(time.Hour)
	s.Probe(t.Context(), true)
	got := s.listedOwn(t)
	kit.Check(t, got.State == outbox.StateRetrying && got.Kind == outbox.KindUnreachable && !got.Probe.OK &&
		got.LastContactAt.Equal(before.Add(-time.Hour)) && got.ContactAge >= 3599,
		"%+v, probe %+v", got, got.Probe)
}

// TestContactShared: many askers share one probe; those who do not wait have one each ten seconds.
func TestContactShared(t *testing.T) {
	var asked, code atomic.Int64
	code.Store(200)
	s, _, _ := probing(t, func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.WriteHeader(int(code.Load()))
	})
	many := func(wait bool, want int64) {
		t.Helper()
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() { s.Probe(t.Context(), wait) })
		}
		all.Wait()
		s.contactsEnd(t)
		kit.Equal(t, "probes", asked.Load(), want)
	}
	many(true, 1)
	code.Store(502)
	s.later(time.Hour)
	s.Probe(t.Context(), true) // a failed probe is no contact: only those who do not wait are spared another
	many(false, 2)
	s.Probe(t.Context(), true)
	many(false, 3)
}

// contactsEnd waits for the probes that nobody waits for.
func (s *Servers) contactsEnd(t *testing.T) {
	t.Helper()
	under := func() (one chan struct{}) {
		s.contacts.mu.Lock()
		defer s.contacts.mu.Unlock()
		for _, one = range s.contacts.under {
			break
		}
		return one
	}
	limit := time.After(5 * time.Minute)
	for one := under(); one != nil; one = under() {
		select {
		case <-one:
		case <-limit:
			t.Fatal("a probe does not end")
		}
	}
}

// TestContactStalled: a server that takes the request and says nothing has a second, and so has who asks.
func TestContactStalled(t *testing.T) {
	free := make(chan struct{})
	s, _, _ := probing(t, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-free:
		case <-r.Context().Done():
		}
	})
	s.contacts.limit = 50 * time.Millisecond
	s.Probe(t.Context(), true)
	s.contactsEnd(t)
	got := s.listedOwn(t)
	kit.Check(t, got.State == outbox.StateRetrying && got.Kind == outbox.KindUnreachable, "%+v, probe %+v", got, got.Probe)
	close(free)
	s.later(time.Hour)
	s.contacts.ask(s.Own()) // a probe that nothing makes: the servers were not notified
	done := make(chan struct{})
	go func() { defer close(done); s.Probe(t.Context(), true) }()
	select {
	case <-done:
	case <-time.After(5 * time.Minute):
		t.Error("who asks waits for ever")
	}
}

// TestContactUnproven: a server that was known, and does not prove to know the key now, is reported with what it is.
func TestContactUnproven(t *testing.T) {
	for code, want := range map[string][2]string{
		protocol.CodeUnknownKey: {outbox.KindRefusedKey, outbox.StateRefused},
		"unauthorized":          {outbox.KindUnproven, outbox.StateRetrying},
	} {
		t.Run(want[0], func(t *testing.T) {
			s, _, _ := probing(t, func(w http.ResponseWriter, r *http.Request) {
				kit.Check(t, r.Header.Get("X-API-Key") == "", "it got the key")
				w.WriteHeader(http.StatusUnauthorized)
				_, _ = io.WriteString(w, `{"error":{"code":"`+code+`"}}`)
			})
			kit.Must(t, s.Proven.Add(s.Own()))
			s.Probe(t.Context(), true)
			got := s.listedOwn(t)
			kit.Check(t, got.Kind == want[0] && got.State == want[1] && got.Hint != "", "%+v, probe %+v", got, got.Probe)
		})
	}
}

// TestContactWhilePaused: while the user has paused delivery nothing is sent.
func TestContactWhilePaused(t *testing.T) {
	s, _, _ := probing(t, func(http.ResponseWriter, *http.Request) { t.Error("a request") })
	s.setPaused(true)
	s.Probe(t.Context(), true)
	got := s.listedOwn(t)
	kit.Check(t, got.Probe == nil, "probe %+v", got.Probe)
}

// TestContactWithoutKey: a key that cannot be used is reported with what fixes it, and nothing is sent.
func TestContactWithoutKey(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no modes")
	}
	s, key, _ := probing(t, func(http.ResponseWriter, *http.Request) { t.Error("a request") })
	kit.Must(t, os.Chmod(key, 0o644))
	s.Probe(t.Context(), true)
	got := s.listedOwn(t)
	kit.Check(t, got.State == outbox.StateRefused && strings.Contains(got.Hint, "chmod 600 "+key), "%+v", got)
}
