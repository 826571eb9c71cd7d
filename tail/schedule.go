package tail

import "time"

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
