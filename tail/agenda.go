package tail

import (
	"container/heap"
	"time"
)

// agenda is files with a time at which something is due. The time itself is a field of the file: an appointment that
// comes early is put off to that time, and one whose file has no time any more is void.
type agenda []appointment

type appointment struct {
	at time.Duration
	f  *file
}

func (a agenda) Len() int           { return len(a) }
func (a agenda) Less(i, j int) bool { return a[i].at < a[j].at }
func (a agenda) Swap(i, j int)      { a[i], a[j] = a[j], a[i] }
func (a *agenda) Push(x any)        { *a = append(*a, x.(appointment)) }
func (a *agenda) Pop() any {
	last := len(*a) - 1
	x := (*a)[last]
	(*a)[last] = appointment{}
	*a = (*a)[:last]
	return x
}

// add makes an appointment.
func (a *agenda) add(f *file, at time.Duration) { heap.Push(a, appointment{at, f}) }

// take answers a file whose time has come, or nil and how long until the next may. when answers the time of a file
// and keep says whether it still has an appointment here.
func (a *agenda) take(now time.Duration, when func(*file) time.Duration, void func(*file)) (*file, time.Duration) {
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

// setLook has a file looked at at a time. The caller holds mu.
func (t *Tailer) setLook(f *file, at time.Duration) {
	if f.lookAt != 0 && f.lookAt <= at && f.inLook {
		return
	}
	sooner := f.lookAt == 0 || at < f.lookAt
	f.lookAt = at
	if !f.inLook || sooner {
		f.inLook = true
		t.queue.due.add(f, at)
		t.ring()
	}
}

// serveDue queues the files whose time has come, and answers how long until the next.
func (t *Tailer) serveDue() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	for {
		f, wait := t.queue.due.take(t.now(),
			func(f *file) time.Duration { return f.lookAt }, func(f *file) { f.inLook = false })
		if f == nil {
			return wait
		}
		t.enqueue(f)
	}
}

// setScrub has the whole past of a file checked at a time, or not at all when at is 0. The caller holds mu.
func (t *Tailer) setScrub(f *file, at time.Duration) {
	sooner := f.scrubAt == 0 || at < f.scrubAt
	f.scrubAt = at
	if at == 0 || f.inScrub && !sooner {
		return
	}
	f.inScrub = true
	t.scrub.due.add(f, at)
	select {
	case t.scrub.bell <- struct{}{}:
	default:
	}
}
