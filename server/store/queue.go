package store

import (
	"context"
	"slices"
	"sync"

	"github.com/ccship/ccship/server"
)

// groupBytes bounds one transaction: enough that a backlog costs few syncs, little enough that a line that was just
// written does not wait long behind it.
const groupBytes = 8 << 20

// job is one batch on its way into a transaction. done is sent exactly one answer.
type job struct {
	batch *server.Batch
	bytes int
	done  chan error
}

// queue is where batches wait that will share a transaction.
type queue struct {
	// lead has room for as many tokens as groups may be written at once.
	lead chan struct{}

	mu      sync.Mutex
	pending []*job // batches not taken yet; guarded by mu
}

func newQueue(writers int) queue { return queue{lead: make(chan struct{}, writers)} }

// put has a batch written by write, which must answer every job of its group. A caller that finds a writer's place
// free takes all batches that wait as one group. It does not wait for more: that would delay a lone batch.
func (q *queue) put(ctx context.Context, b *server.Batch, write func(group []*job)) error {
	j := &job{batch: b, done: make(chan error, 1)}
	for _, l := range b.Lines {
		j.bytes += len(l.Raw)
	}
	q.mu.Lock()
	q.pending = append(q.pending, j)
	q.mu.Unlock()
	for {
		select {
		case err := <-j.done:
			return err
		default:
		}
		select {
		case err := <-j.done:
			return err
		case q.lead <- struct{}{}:
			if group := q.take(); len(group) > 0 {
				write(group)
			}
			<-q.lead
		case <-ctx.Done():
			if q.withdraw(j) {
				return ctx.Err()
			}
			return <-j.done // being written: its bytes are in use until there is an answer
		}
	}
}

// withdraw removes a job that is not taken yet.
func (q *queue) withdraw(j *job) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.pending, j)
	if i < 0 {
		return false
	}
	q.pending = slices.Delete(q.pending, i, i+1)
	return true
}

// take removes the oldest pending jobs, up to groupBytes but at least one.
func (q *queue) take() []*job {
	q.mu.Lock()
	defer q.mu.Unlock()
	n, bytes := 0, 0
	for n < len(q.pending) && (n == 0 || bytes+q.pending[n].bytes <= groupBytes) {
		bytes += q.pending[n].bytes
		n++
	}
	group := slices.Clone(q.pending[:n])
	q.pending = slices.Delete(q.pending, 0, n)
	return group
}

// answer sends the result to every job of a group.
func answer(group []*job, err error) {
	for _, j := range group {
		j.done <- err
	}
}
