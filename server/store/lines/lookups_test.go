package lines

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

// TestLookups: in a crowd few statements answer all, each with its own key's value, and none that began before the
// lookup; a lone lookup waits for nothing.
func TestLookups(t *testing.T) {
	for name, c := range map[string]struct {
		every, asks, wait time.Duration // between lookups; for a statement; at most for a lookup
		statements        int           // at most
	}{
		"crowd": {time.Millisecond, 2 * time.Millisecond, 12 * time.Millisecond, 60},
		"few":   {4 * time.Millisecond, time.Millisecond, time.Millisecond, 300},
	} {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			statements := 0
			now := 0 // what the database says; it rises
			l := Lookups[int, [2]int]{Ask: func(_ context.Context, keys []int) (map[int][2]int, error) {
				mu.Lock()
				statements++
				at := now
				mu.Unlock()
				<-time.After(c.asks)
				found := map[int][2]int{}
				for _, k := range keys {
					if k%10 != 9 {
						found[k] = [2]int{k, at}
					}
				}
				return found, nil
			}}
			var all sync.WaitGroup
			for n := range 300 {
				mu.Lock()
				now++
				least := now
				mu.Unlock()
				all.Go(func() {
					began := time.Now()
					v, ok, err := l.Find(t.Context(), n/2)
					switch {
					case err != nil || ok != (n/2%10 != 9) || ok && v[0] != n/2:
						t.Errorf("%s: %d: %v, %t, %v", name, n/2, v, ok, err)
					case ok && v[1] < least:
						t.Errorf("%s: %d was answered by a statement that began before it", name, n/2)
					}
					took := time.Since(began)
					kit.Check(t, took <= c.wait, "%s: waited %s", name, took)
				})
				<-time.After(c.every)
			}
			all.Wait()
			kit.Check(t, statements <= c.statements, "%s: %d statements", name, statements)
		})
	}
}

// TestLookupLeft: the caller that began a shared lookup may go away; others get their answers.
func TestLookupLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := Lookups[int, int]{Ask: func(ctx context.Context, keys []int) (map[int]int, error) {
			found := map[int]int{}
			for _, k := range keys {
				found[k] = k
			}
			return found, ctx.Err()
		}}
		gone, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for n := range 100 {
			ctx := t.Context()
			if n%2 == 0 {
				ctx = gone
			}
			all.Go(func() {
				v, ok, err := l.Find(ctx, n)
				kit.Check(t, ctx == gone || v == n && ok && err == nil, "%d: %d, %t, %v", n, v, ok, err)
			})
			if n == 90 {
				cancel()
			}
			<-time.After(500 * time.Microsecond)
		}
		all.Wait()
		cancel()
	})
}
