package limit_test

import (
	"context"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/limit"
)

// TestSlotsInTurn: one user gets at most its share, others wait for their turn and for nobody who waits for its own bytes.
func TestSlotsInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := limit.NewSlots(100, 40)
		var order []int64
		ask := func(ctx context.Context, user, n int64) (release func()) {
			got := make(chan func(), 1)
			go func() {
				if r, err := b.Acquire(ctx, user, n, time.Hour); err == nil {
					order = append(order, 1000*user+min(n, 40))
					got <- r
				}
			}()
			synctest.Wait()
			return func() { (<-got)(); synctest.Wait() }
		}
		expect := func(when string, want ...int64) {
			t.Helper()
			for i, w := range want {
				if i >= len(order) || order[i] != w {
					t.Fatalf("%s: %v, want %v", when, order, want)
				}
			}
			if len(order) != len(want) {
				t.Fatalf("%s: %v, want %v", when, order, want)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		one := ask(ctx, 1, 1000) // all that is one user's
		_ = ask(ctx, 1, 1)       // waits for the user's own
		two := ask(ctx, 2, 30)
		expect("of one", 1040, 2030)
		gone, give := context.WithCancel(t.Context())
		_ = ask(gone, 3, 40) // more than is free
		four := ask(ctx, 4, 10)
		expect("in turn", 1040, 2030)
		give()
		synctest.Wait()
		expect("after one gave up", 1040, 2030, 4010)
		one()
		expect("after a release", 1040, 2030, 4010, 1001)
		two()
		four()
		five := ask(ctx, 5, 40)
		six := ask(ctx, 6, 40)
		expect("everything is given back", 1040, 2030, 4010, 1001, 5040, 6040)
		five()
		six()
		cancel()
	})
}

// TestHugeLines: readers of huge lines hold a share of the server's memory at most. More of the same user wait and are
// told to come back; those of another user, and of lines that are not huge, do not.
func TestHugeLines(t *testing.T) {
	s := newSite(t, func(st server.Store, _ *site) server.Store {
		f := limit.NewFair(st)
		f.Patience = 50 * time.Millisecond
		return f
	})
	huge := `{"text":"` + strings.Repeat("x", 30<<20) + `"}`
	for _, u := range []server.User{s.viewer, s.other} {
		b := &server.Batch{Owner: u.ID, Received: time.Now(), Head: server.Head{SessionID: "s", Machine: "m", Epoch: "e", EndLine: 2}}
		for n, raw := range []string{`{"a":1}`, huge} {
			b.Lines = append(b.Lines, server.Line{Index: int64(n), Kind: server.Object, Raw: []byte(raw)})
		}
		kit.Must(t, s.store.Put(t.Context(), b))
	}
	const raw, whole = "/api/sessions/s/raw", "/api/sessions/s/entries?after=0"
	slow, leave := context.WithCancel(t.Context())
	s.begin(slow, s.eve, raw)
	for _, path := range []string{raw, whole, "/api/sessions/s/export?format=jsonl", "/api/sessions/s/export?format=json"} {
		if code, h := s.ask(t.Context(), s.eve, "GET", path, ""); code != http.StatusServiceUnavailable || h.Get("Retry-After") == "" {
			t.Errorf("%s beside a slow reader of a huge line: %d, %v", path, code, h)
		}
	}
	for key, paths := range map[string][]string{
		s.eve: {"/api/sessions/s/entries?limit=1", whole + "&most=100"}, s.ann: {raw, whole},
	} {
		for _, path := range paths {
			if code, _ := s.ask(t.Context(), key, "GET", path, ""); code != http.StatusOK {
				t.Errorf("%s: %d", path, code)
			}
		}
	}
	leave()
	for late := time.After(5 * time.Minute); ; runtime.Gosched() {
		if code, _ := s.ask(t.Context(), s.eve, "GET", whole, ""); code == http.StatusOK {
			return
		}
		select {
		case <-late:
			t.Fatal("a reader who is gone still holds a line")
		default:
		}
	}
}

// begin makes a request of which it reads the beginning of the answer.
func (s *site) begin(ctx context.Context, key, path string) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+path, nil)
	kit.Must(s.t, err)
	req.Header.Set("X-API-Key", key)
	req.Header.Set("Accept-Encoding", "identity") // or the answer is small
	res, err := http.DefaultClient.Do(req)
	if err == nil {
		_, err = io.ReadFull(res.Body, make([]byte, 1<<20))
	}
	kit.Must(s.t, err)
	s.t.Cleanup(func() { _ = res.Body.Close() })
}
