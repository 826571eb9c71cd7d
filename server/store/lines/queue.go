package lines

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync"

	"github.com/ccship/ccship/server"
)

// groupBytes bounds one transaction: enough that a backlog costs few syncs, little enough that a line that was just
// written does not wait long behind it.
const groupBytes = 8 << 20

// Job is one batch on its way into a transaction. Done is sent exactly one answer.
type Job struct {
	Batch  *server.Batch
	Blocks []Block // all lines of the batch, packed; nil: they stay hot
	Bytes  int
	Done   chan error
}

// Batches yields the batches of jobs.
func Batches(jobs []*Job) iter.Seq[*server.Batch] {
	return func(yield func(*server.Batch) bool) {
		for _, j := range jobs {
			if !yield(j.Batch) {
				return
			}
		}
	}
}

// Queue is where batches wait that will share a transaction: those that come while others are written.
type Queue struct {
	// Lead has space for as many tokens as groups may be written at once.
	Lead chan struct{}

	mu      sync.Mutex
	pending []*Job // batches not taken yet; guarded by mu
}

// NewQueue returns an empty queue for that many writers at once.
func NewQueue(writers int) Queue { return Queue{Lead: make(chan struct{}, writers)} }

// Put queues a batch and returns its answer. If a writer's slot is free, the caller writes all queued batches as one
// group with write, which answers every job. blocks are the batch's lines, packed; nil: they become rows.
func (q *Queue) Put(ctx context.Context, b *server.Batch, blocks []Block, write func(group []*Job)) error {
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
			if q.lead(j, write) {
				return <-j.Done // to look for a free slot again and again meanwhile would cost more than the writing
			}
		case <-ctx.Done():
			if q.withdraw(j) {
				return ctx.Err()
			}
			return <-j.Done // being written: its bytes are in use until there is an answer
		}
	}
}

// lead writes the next group, unless j was taken by another caller. It reports whether j was taken.
func (q *Queue) lead(j *Job, write func(group []*Job)) bool {
	defer func() { <-q.Lead }()
	group, done := []*Job(nil), false
	if q.waits(j) {
		group = q.Take()
	}
	if len(group) == 0 {
		return true // another caller took it meanwhile
	}
	defer func() { // behind a panic too, no job of the group waits on
		for _, j := range group {
			if done {
				break
			}
			select {
			case j.Done <- errPanicked:
			default: // it has its answer
			}
		}
	}()
	write(group)
	done = true
	return !q.waits(j)
}

// errPanicked answers jobs that share a group with a panic, which goes on: the server of its caller recovers from it.
var errPanicked = errors.New("a programming error ended the transaction")

// waits reports whether a job is not taken yet.
func (q *Queue) waits(j *Job) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Contains(q.pending, j)
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
