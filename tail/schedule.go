package tail

import (
	"container/heap"
	"context"
	"time"
)

// scheduleInspection schedules an inspection of a file. The caller holds mu.
func (t *Tailer) scheduleInspection(f *file, at time.Duration) {
	k := f.facts()
	if k.inspectAt != 0 && k.inspectAt <= at && f.inspectScheduled {
		return
	}
	sooner := k.inspectAt == 0 || at < k.inspectAt
	k.inspectAt = at
	if !f.inspectScheduled || sooner {
		f.inspectScheduled = true
		t.queue.due.Add(f, at)
		ring(t.wake)
	}
}

// serveDue queues the files that are due, and returns how long until the next.
func (t *Tailer) serveDue() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	for {
		f, wait := t.queue.due.Take(t.now(),
			func(f *file) time.Duration { return f.facts().inspectAt }, func(f *file) { f.inspectScheduled = false })
		if f == nil {
			return wait
		}
		t.enqueue(f)
	}
}

// scheduleScrub schedules a scrub of a file; at 0 cancels it. The caller holds mu.
func (t *Tailer) scheduleScrub(f *file, at time.Duration) {
	k := f.facts()
	sooner := k.scrubAt == 0 || at < k.scrubAt
	k.scrubAt = at
	if at == 0 || f.scrubScheduled && !sooner {
		return
	}
	f.scrubScheduled = true
	t.scrub.due.Add(f, at)
	ring(t.scrub.bell)
}

// allInterval returns how long to wait between two listings of everything. Without events that is as short as its share
// of the time allows, and with them as long as configured.
func (t *Tailer) allInterval() time.Duration {
	if !t.polling() {
		return t.cfg.ScanAll
	}
	return min(max(idleShare*t.scan.cost, 5*t.cfg.PollInterval), t.cfg.ScanAll)
}

// idleShare limits the time that unprompted listings may take: one part in 2000.
const idleShare = 2000

// tickInterval returns how often the main loop looks what is due: being woken is most of what an idle program costs.
func (t *Tailer) tickInterval() time.Duration {
	if t.polling() {
		return min(t.cfg.ScanActive, t.cfg.PollInterval)
	}
	return t.cfg.ScanActive
}

// quickLimit returns how many quick listings of everything may follow each other. Where the last one took every folder
// as it was, on the word of the system's events, a thorough one takes its share of the time, but comes once an hour.
func (t *Tailer) quickLimit() int {
	if t.scan.looked > 0 {
		return quickRun
	}
	return min(max(quickRun, int(idleShare*t.scan.thorough/t.cfg.ScanAll)), 59)
}

// activeInterval returns how long to wait between two listings of the active folders. With events they are only a
// safety net, and are limited to their share of the time: after an import of ten thousand young files all folders are
// active.
func (t *Tailer) activeInterval() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.watch.mode == "poll" {
		const share = 500
		return max(t.cfg.PollInterval, share*t.scan.activeCost)
	}
	part := float64(len(t.table.active)) / float64(max(1, len(t.table.folders)))
	guess := time.Duration(part * float64(t.scan.cost))
	return max(t.cfg.ScanActive, min(idleShare*max(guess, t.scan.activeCost), t.cfg.ScanAll))
}

// scanActive lists the folders that changed lately, and tries again those that could not be listed.
func (t *Tailer) scanActive(ctx context.Context) {
	now := t.now()
	defer func() { t.scan.activeCost = t.now() - now }()
	var folders []*folder
	t.mu.Lock()
	for d := range t.table.active {
		if now-d.touched < activeFor || t.table.unlisted[d.path] != nil {
			folders = append(folders, d)
		} else {
			delete(t.table.active, d)
		}
	}
	polling := t.watch.mode == "poll"
	for _, d := range t.table.folders {
		if polling && d.level != historyLevel && !d.ofSession() {
			folders = append(folders, d)
		}
	}
	t.mu.Unlock()
	for _, r := range t.table.roots {
		if r.history != nil {
			folders = append(folders, r.history)
		}
	}
	if len(folders) == 0 {
		return
	}
	p := t.newListing(false)
	for _, d := range folders {
		if d.listing != p.number && !d.root.alias && (t.isActive(d, now) || d.moved()) {
			p.list(ctx, d, false)
		}
	}
	p.finish(ctx)
}

func (t *Tailer) isActive(d *folder, now time.Duration) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return now-d.touched < activeFor || t.table.unlisted[d.path] != nil || d.level == historyLevel
}

// moved reports whether names were added to or removed from a folder since it was listed.
func (d *folder) moved() bool {
	st, _, err := statEntry(d.path)
	return err == nil && st != d.self && !(d.level == rootLevel && st.Inode != d.self.Inode)
}

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
