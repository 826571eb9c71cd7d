package lines

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/ccship/ccship/server"
)

// groupBytes bounds one transaction: enough that a backlog costs few syncs, little enough that a line that was just
// written does not wait long behind it.
const groupBytes = 8 << 20

// In a crowd one group is written at a time, and groups begin at least a pace apart from each other, unless fullBytes
// wait: a thousand daemons that write a line each share some transactions instead of paying for a thousand. Several
// writers at once would only wait for each other's rows. A group that takes longer than stuck does not keep others
// waiting.
const (
	fullBytes = 1 << 20
	stuck     = time.Second
)

// Job is one batch on its way into a transaction. Done is sent exactly one answer.
type Job struct {
	Batch  *server.Batch
	Blocks []Block // all lines of the batch, packed; nil: they stay hot
	Bytes  int
	Done   chan error

	taken bool // it is being written, or was; guarded by the queue's mu
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

// Queue is where batches wait that will share a transaction.
type Queue struct {
	// Lead has space for as many tokens as groups may be written at once.
	Lead chan struct{}

	pace   time.Duration
	single chan struct{} // has space for the one that writes in a crowd

	mu      sync.Mutex
	pending []*Job    // batches not taken yet; guarded by mu, as all below
	bytes   int       // of theirs
	taken   time.Time // when the last group was taken
	crowd   meter
}

// NewQueue returns an empty queue for that many writers at once. In a crowd groups begin pace apart.
func NewQueue(writers int, pace time.Duration) Queue {
	return Queue{Lead: make(chan struct{}, writers), single: make(chan struct{}, 1), pace: pace}
}

// Put queues a batch and returns its answer. If a writer's slot is free, the caller writes all queued batches as one
// group with write, which answers every job. blocks are the batch's lines, packed; nil: they become rows. A lone batch
// never waits; in a crowd groups start pace apart.
func (q *Queue) Put(ctx context.Context, b *server.Batch, blocks []Block, write func(group []*Job)) error {
	j := &Job{Batch: b, Blocks: blocks, Done: make(chan error, 1)}
	for _, l := range b.Lines {
		j.Bytes += len(l.Raw)
	}
	q.add(j)
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
			if q.lead(ctx, j, write) {
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

// add lets a job wait, and counts it.
func (q *Queue) add(j *Job) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.pending = append(q.pending, j)
	q.bytes += j.Bytes
	q.crowd.count(time.Now())
}

// lead writes the next group when it is time. It reports whether j was taken, by this caller or by another.
func (q *Queue) lead(ctx context.Context, j *Job, write func(group []*Job)) bool {
	defer func() { <-q.Lead }()
	if q.isCrowded() {
		select {
		case q.single <- struct{}{}:
			defer func() { <-q.single }()
		case <-time.After(stuck):
		case <-ctx.Done():
			return q.isTaken(j)
		}
	}
	for wait := q.due(j); wait > 0; wait = q.due(j) {
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return q.isTaken(j)
		}
	}
	if q.isTaken(j) {
		return true
	}
	group, done := q.Take(), false
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
	return q.isTaken(j)
}

// errPanicked answers jobs that share a group with a panic, which goes on: the server of its caller recovers from it.
var errPanicked = errors.New("a programming error ended the transaction")

// isCrowded reports whether batches come in a crowd.
func (q *Queue) isCrowded() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.crowd.waits(time.Now())
}

// isTaken reports whether a job is being written, or was.
func (q *Queue) isTaken(j *Job) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return j.taken
}

// due is in how long the group that j will be in is to be taken.
func (q *Queue) due(j *Job) time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.crowd.waits(time.Now()) || q.bytes >= fullBytes || j.taken {
		return 0
	}
	return q.pace - time.Since(q.taken)
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
	q.bytes -= j.Bytes
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
	q.bytes -= bytes
	for _, j := range group {
		j.taken = true
	}
	if now := time.Now(); n > 0 {
		if q.crowd.waits(now) {
			q.crowd.together(n, now)
		}
		q.taken = now
	}
	return group
}

// AnswerAll sends the result to every job of a group.
func AnswerAll(group []*Job, err error) {
	for _, j := range group {
		j.Done <- err
	}
}
