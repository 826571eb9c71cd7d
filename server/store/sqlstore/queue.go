package sqlstore

import (
	"context"
	"slices"
	"sync"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store/block"
)

// groupBytes bounds one transaction: enough that a backlog costs few syncs, little enough that a line that was just
// written does not wait long behind it.
const groupBytes = 8 << 20

// Job is one batch on its way into a transaction. Done is sent exactly one answer.
type Job struct {
	Batch  *server.Batch
	Blocks []block.Block // all lines of the batch, packed; nil: they stay hot
	Bytes  int
	Done   chan error
}

// Queue is where batches wait that will share a transaction.
type Queue struct {
	// Lead has room for as many tokens as groups may be written at once.
	Lead chan struct{}

	mu      sync.Mutex
	pending []*Job // batches not taken yet; guarded by mu
}

// NewQueue returns an empty queue for that many writers at once.
func NewQueue(writers int) Queue { return Queue{Lead: make(chan struct{}, writers)} }

// Put has a batch written by write, which must answer every job of its group; blocks are its lines, if they are packed.
// A caller that finds a writer's place free takes all batches that wait as one group. It does not wait for more: that
// would delay a lone batch.
func (q *Queue) Put(ctx context.Context, b *server.Batch, blocks []block.Block, write func(group []*Job)) error {
	j := &Job{Batch: b, Blocks: blocks, Done: make(chan error, 1)}
	for _, l := range b.Lines {
		j.Bytes += len(l.Raw)
	}
	q.mu.Lock()
	q.pending = append(q.pending, j)
	q.mu.Unlock()
	for {
		select {
		case err := <-j.Done:
			return err
		default:
		}
		select {
		case err := <-j.Done:
			return err
		case q.Lead <- struct{}{}:
			if group := q.Take(); len(group) > 0 {
				write(group)
			}
			<-q.Lead
		case <-ctx.Done():
			if q.withdraw(j) {
				return ctx.Err()
			}
			return <-j.Done // being written: its bytes are in use until there is an answer
		}
	}
}

// withdraw removes a job that is not taken yet.
func (q *Queue) withdraw(j *Job) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.pending, j)
	if i < 0 {
		return false
	}
	q.pending = slices.Delete(q.pending, i, i+1)
	return true
}

// Take removes the oldest pending jobs, up to groupBytes but at least one.
func (q *Queue) Take() []*Job {
	q.mu.Lock()
	defer q.mu.Unlock()
	n, bytes := 0, 0
	for n < len(q.pending) && (n == 0 || bytes+q.pending[n].Bytes <= groupBytes) {
		bytes += q.pending[n].Bytes
		n++
	}
	group := slices.Clone(q.pending[:n])
	q.pending = slices.Delete(q.pending, 0, n)
	return group
}

// AnswerAll sends the result to every job of a group.
func AnswerAll(group []*Job, err error) {
	for _, j := range group {
		j.Done <- err
	}
}
