package tail

import (
	"container/heap"
	"time"
)

// schedule is a heap of timers. The file holds the time that counts: a timer that fires early is scheduled again for
// that time, and one whose file has no time any more is dropped.
type schedule []timer

type timer struct {
	at time.Duration
	f  *file
}

func (a schedule) Len() int           { return len(a) }
func (a schedule) Less(i, j int) bool { return a[i].at < a[j].at }
func (a schedule) Swap(i, j int)      { a[i], a[j] = a[j], a[i] }
func (a *schedule) Push(x any)        { *a = append(*a, x.(timer)) }
func (a *schedule) Pop() any {
	last := len(*a) - 1
	x := (*a)[last]
	(*a)[last] = timer{}
	*a = (*a)[:last]
	return x
}

// add adds a timer.
func (a *schedule) add(f *file, at time.Duration) { heap.Push(a, timer{at, f}) }

// take returns a file that is due, or nil and how long until the next may be. when returns the time of a file; void is
// called with each file whose timer is dropped.
func (a *schedule) take(now time.Duration, when func(*file) time.Duration, void func(*file)) (*file, time.Duration) {
	for len(*a) > 0 {
		first := (*a)[0]
		if first.at > now {
			return nil, first.at - now
		}
		heap.Pop(a)
		switch at := when(first.f); {
		case at == 0:
			void(first.f)
		case at > now:
			a.add(first.f, at)
		default:
			void(first.f)
			return first.f, 0
		}
	}
	*a = nil
	return nil, time.Hour
}

// scheduleInspection schedules an inspection of a file. The caller holds mu.
func (t *Tailer) scheduleInspection(f *file, at time.Duration) {
	if f.inspectAt != 0 && f.inspectAt <= at && f.inspectScheduled {
		return
	}
	sooner := f.inspectAt == 0 || at < f.inspectAt
	f.inspectAt = at
	if !f.inspectScheduled || sooner {
		f.inspectScheduled = true
		t.queue.due.add(f, at)
		t.ring()
	}
}

// serveDue queues the files that are due, and returns how long until the next.
func (t *Tailer) serveDue() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	for {
		f, wait := t.queue.due.take(t.now(),
			func(f *file) time.Duration { return f.inspectAt }, func(f *file) { f.inspectScheduled = false })
		if f == nil {
			return wait
		}
		t.enqueue(f)
	}
}

// scheduleScrub schedules a scrub of a file; at 0 cancels it. The caller holds mu.
func (t *Tailer) scheduleScrub(f *file, at time.Duration) {
	sooner := f.scrubAt == 0 || at < f.scrubAt
	f.scrubAt = at
	if at == 0 || f.scrubScheduled && !sooner {
		return
	}
	f.scrubScheduled = true
	t.scrub.due.add(f, at)
	select {
	case t.scrub.bell <- struct{}{}:
	default:
	}
}
