package sqlstore_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store/sqlstore"
)

// puts gives a queue n batches of so many bytes, one each interval, and tells how many groups they became and how long
// the slowest had to wait. Writing takes no time.
func puts(t *testing.T, n, bytes int, every time.Duration) (groups int, slowest time.Duration) {
	t.Helper()
	q := sqlstore.NewQueue(4)
	b := &server.Batch{Lines: []server.Line{{Raw: make([]byte, bytes)}}}
	var mu sync.Mutex
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			began := time.Now()
			err := q.Put(context.Background(), b, nil, func(group []*sqlstore.Job) {
				mu.Lock()
				defer mu.Unlock()
				groups++
				sqlstore.AnswerAll(group, nil)
			})
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
			}
			slowest = max(slowest, time.Since(began))
		})
		time.Sleep(every) // of a bubble's clock
	}
	all.Wait()
	return groups, slowest
}

// TestCrowd: batches that come in a crowd share transactions; others wait for nothing.
func TestCrowd(t *testing.T) {
	for name, c := range map[string]struct {
		bytes  int
		every  time.Duration
		groups int // at most
		wait   time.Duration
	}{
		"crowd":  {1000, time.Millisecond, 50, 10 * time.Millisecond},
		"few":    {1000, 5 * time.Millisecond, 300, 0},
		"import": {1 << 20, time.Millisecond, 300, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			groups, slowest := puts(t, 300, c.bytes, c.every)
			if groups > c.groups || slowest > c.wait {
				t.Errorf("%s: %d groups, the slowest waited %s", name, groups, slowest)
			}
		})
	}
}
