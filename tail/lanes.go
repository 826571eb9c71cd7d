package tail

import (
	"container/heap"
	"time"
)

// fifo gives back first what was put in first.
type fifo[T any] struct {
	all  []T
	head int
}

// Push adds one.
func (q *fifo[T]) Push(v T) { q.all = append(q.all, v) }

// Peek returns the first one, and whether there is one.
func (q *fifo[T]) Peek() (first T, ok bool) {
	if q.head == len(q.all) {
		if q.all, q.head = q.all[:0], 0; cap(q.all) > 1024 {
			q.all = nil // it has grown for an import
		}
		return first, false
	}
	return q.all[q.head], true
}

// Pop takes the first one out. There must be one.
func (q *fifo[T]) Pop() T {
	var none T
	v := q.all[q.head]
	q.all[q.head] = none
	if q.head++; q.head > 1024 && q.head*2 > len(q.all) {
		q.all, q.head = append([]T(nil), q.all[q.head:]...), 0
	}
	return v
}

// newestFirst gives back first what has the latest time.
type newestFirst[T any] struct{ all timers[T] }

// Push adds one with its time.
func (q *newestFirst[T]) Push(v T, at int64) { heap.Push(&q.all, timer[T]{time.Duration(-at), v}) }

// Peek returns the one with the latest time, and whether there is one.
func (q *newestFirst[T]) Peek() (first T, ok bool) {
	if len(q.all) == 0 {
		q.all = nil // it has grown for an import
		return first, false
	}
	return q.all[0].of, true
}

// Pop takes the one with the latest time out. There must be one.
func (q *newestFirst[T]) Pop() T { return heap.Pop(&q.all).(timer[T]).of }
