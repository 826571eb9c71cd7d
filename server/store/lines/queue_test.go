package lines

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
)

// puts gives a queue of some writers n batches of so many bytes, one each interval, and tells how many groups they
// became, how many were written at once, and how long the slowest batch had to wait.
func puts(t *testing.T, writers, n, bytes int, every, writing time.Duration) (
	groups, most int, slowest time.Duration) {
	t.Helper()
	q := NewQueue(writers, 10*time.Millisecond)
	b := &server.Batch{Lines: []server.Line{{Raw: make([]byte, bytes)}}}
	var mu sync.Mutex
	var now int
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			began := time.Now()
			err := q.Put(context.Background(), b, nil, func(jobs []*Job) {
				mu.Lock()
				groups, now = groups+1, now+1
				most = max(most, now)
				mu.Unlock()
				<-time.After(writing)
				mu.Lock()
				now--
				mu.Unlock()
				AnswerAll(jobs, nil)
			})
			mu.Lock()
			defer mu.Unlock()
			kit.Should(t, err)
			slowest = max(slowest, time.Since(began))
		})
		<-time.After(every) // of a bubble's clock
	}
	all.Wait()
	return groups, most, slowest
}

// TestCrowd: batches that come in a crowd share transactions; others wait for nothing.
func TestCrowd(t *testing.T) {
	for name, c := range map[string]struct {
		writers       int
		bytes         int
		every, writes time.Duration
		groups, most  int // at most
		wait          time.Duration
	}{
		"crowd":           {1, 1000, time.Millisecond, 0, 50, 1, 10 * time.Millisecond},
		"slow database":   {1, 1000, time.Millisecond, 30 * time.Millisecond, 30, 1, 70 * time.Millisecond},
		"few":             {1, 1000, 5 * time.Millisecond, 0, 300, 1, 0},
		"import":          {1, 1 << 20, time.Millisecond, 0, 300, 1, 0},
		"several writers": {4, 1000, time.Millisecond, 30 * time.Millisecond, 40, 4, 70 * time.Millisecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			groups, most, slowest := puts(t, c.writers, 300, c.bytes, c.every, c.writes)
			kit.Check(t, groups <= c.groups && most <= c.most && slowest <= c.wait,
				"%s: %d groups, %d at once, the slowest waited %s", name, groups, most, slowest)
		})
	}
}

// TestFewCallers: callers that each come again once they are answered, as those of an import do, wait for nothing most
// of the time: waiting gains them nothing.
func TestFewCallers(t *testing.T) {
	for _, writers := range []int{1, 4} {
		synctest.Test(t, func(t *testing.T) {
			q := NewQueue(writers, 10*time.Millisecond)
			l := Lookups[int, int]{Ask: func(context.Context, []int) (map[int]int, error) {
				<-time.After(100 * time.Microsecond)
				return nil, nil
			}}
			began := time.Now()
			var all sync.WaitGroup
			for range 4 {
				all.Go(func() {
					for range 1000 {
						if _, _, err := l.Find(t.Context(), 1); err != nil {
							t.Error(err)
						}
						err := q.Put(t.Context(), &server.Batch{}, nil, func(jobs []*Job) {
							<-time.After(time.Millisecond)
							AnswerAll(jobs, nil)
						})
						kit.Should(t, err)
					}
				})
			}
			all.Wait()
			took := time.Since(began)
			kit.Check(t, took <= 3*time.Second, "%d writers: 4000 batches of 1.1 ms took four callers %s", writers, took)
		})
	}
}

// TestStuck: in a crowd, a group that takes very long does not hold up batches that come later.
func TestStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewQueue(4, 10*time.Millisecond)
		var all sync.WaitGroup
		var held, late atomic.Int64
		for range 100 {
			all.Go(func() {
				began := time.Now()
				err := q.Put(context.Background(), &server.Batch{}, nil, func(jobs []*Job) {
					if len(jobs) > 1 && held.CompareAndSwap(0, int64(len(jobs))) {
						<-time.After(time.Minute)
					}
					AnswerAll(jobs, nil)
				})
				kit.Should(t, err)
				if time.Since(began) > 10*time.Second {
					late.Add(1)
				}
			})
			<-time.After(time.Millisecond)
		}
		all.Wait()
		if held.Load() == 0 || late.Load() != held.Load() {
			t.Errorf("%d batches were late, of which %d were in the group that was held", late.Load(), held.Load())
		}
	})
}

// TestPanic: a panic goes on to its caller, and keeps nobody waiting: not those of its group, nor who comes next.
func TestPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewQueue(1, 0)
		q.Lead <- struct{}{} // so that both are in one group
		ended := make(chan bool, 2)
		for range 2 {
			go func() {
				defer func() { ended <- recover() != nil }()
				err := q.Put(t.Context(), &server.Batch{}, nil, func([]*Job) { panic("a mistake") })
				kit.Check(t, err != nil, "what was not written is said to be")
			}()
		}
		synctest.Wait()
		<-q.Lead
		first := <-ended
		kit.Check(t, first != <-ended, "not one of two panicked")
		kit.Should(t, q.Put(t.Context(), &server.Batch{}, nil, func(g []*Job) { AnswerAll(g, nil) }))
	})
}
