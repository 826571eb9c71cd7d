package tail

import (
	"container/heap"
	"time"
)

// schedule is a heap of timers. What a timer is for holds the time that counts: one that fires early is scheduled again
// for that time, and one that has no time any more is dropped.
type schedule[T any] struct{ all timers[T] }

type timers[T any] []timer[T]

type timer[T any] struct {
	at time.Duration
	of T
}

func (a timers[T]) Len() int           { return len(a) }
func (a timers[T]) Less(i, j int) bool { return a[i].at < a[j].at }
func (a timers[T]) Swap(i, j int)      { a[i], a[j] = a[j], a[i] }
func (a *timers[T]) Push(x any)        { *a = append(*a, x.(timer[T])) }
func (a *timers[T]) Pop() any {
	last := len(*a) - 1
	x := (*a)[last]
	(*a)[last] = timer[T]{}
	*a = (*a)[:last]
	return x
}

// Len returns how many timers there are.
func (a *schedule[T]) Len() int { return len(a.all) }

// Add adds a timer.
func (a *schedule[T]) Add(of T, at time.Duration) { heap.Push(&a.all, timer[T]{at, of}) }

// Take returns what is due, or the zero T and how long until the next may be. when returns the time of what a timer is
// for; void is called with each that is dropped.
func (a *schedule[T]) Take(now time.Duration, when func(T) time.Duration, void func(T)) (due T, wait time.Duration) {
	for len(a.all) > 0 {
		first := a.all[0]
		if first.at > now {
			return due, first.at - now
		}
		heap.Pop(&a.all)
		switch at := when(first.of); {
		case at == 0:
			void(first.of)
		case at > now:
			a.Add(first.of, at)
		default:
			void(first.of)
			return first.of, 0
		}
	}
	a.all = nil
	return due, time.Hour
}
