package lines

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
)

// TestGroups: batches that come while others are written share a transaction, and none waits behind one that is stuck
// while there is another writer.
func TestGroups(t *testing.T) {
	for _, writers := range []int{1, 4} {
		synctest.Test(t, func(t *testing.T) {
			q := NewQueue(writers)
			var all sync.WaitGroup
			var groups, late atomic.Int64
			for range 300 {
				all.Go(func() {
					began := time.Now()
					err := q.Put(t.Context(), &server.Batch{}, nil, func(jobs []*Job) {
						n := groups.Add(1)
						<-time.After(30 * time.Millisecond)
						if n == 1 && writers > 1 {
							<-time.After(time.Minute)
						}
						AnswerAll(jobs, nil)
					})
					kit.Should(t, err)
					if time.Since(began) > 100*time.Millisecond {
						late.Add(1)
					}
				})
				<-time.After(time.Millisecond)
			}
			all.Wait()
			kit.Check(t, groups.Load() <= 50 && late.Load() <= 1, "%d writers: %d groups, %d late", writers, groups.Load(), late.Load())
		})
	}
}

// TestPanic: a panic goes on to its caller, and keeps nobody waiting: not those of its group, nor who comes next.
func TestPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewQueue(1)
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
