package tail

import (
	"context"
	"time"
)

// workState is the state of a file in the queue.
type workState uint8

const (
	idle workState = iota
	queued
	working
)

// priority is how urgent a file is.
type priority uint8

const (
	live     priority = iota // written just now
	backlog                  // written just now, but longer than a turn: has had its first turn
	imported                 // what was there before
)

// queue holds the files that wait for a worker. Level-triggered: a file is in it once, however often it changed.
type queue struct {
	live, backlog fifo[*file]
	imports       newestFirst[*file]
	limit         int // workers that may do other work than first turns of live files
	bulk          int // those that do
	importing     int // files in imports or being imported
	noSpace       [2]bool
	noSpaceAt     time.Duration
	wakes         uint64 // calls of Wake that were heeded: an answer from before one is out of date
	due           schedule[*file]
}

// job is a set of files that a worker inspects with one Deliver.
type job struct {
	files []*file
	class priority
}

// noSpaceFor reports whether the sink had no space for files of the class when last asked.
func (q *queue) noSpaceFor(c priority) bool { return q.noSpace[0] || c == imported && q.noSpace[1] }

const maxJobFiles = 256

// fileChanged records that a file has just changed, and queues it.
func (t *Tailer) fileChanged(f *file) {
	now := t.now()
	f.facts().changed = now
	f.partialTried = false
	t.table.touch(f.folder, now)
	t.activateSession(f, now)
	t.enqueue(f)
}

// activateSession marks the folders of a session as active when its main transcript is: agents may write there.
func (t *Tailer) activateSession(f *file, now time.Duration) {
	k := f.facts()
	if k.File.Kind != Main || f.folder == nil {
		return
	}
	d := f.folder.subs[k.File.Name]
	if d == nil || d.listSoon || now-d.touched < activeFor/2 {
		return
	}
	d.listSoon = true
	t.touchBelow(d, now)
	t.scan.toList = append(t.scan.toList, d)
	ring(t.wake)
}

func (t *Tailer) touchBelow(d *folder, now time.Duration) {
	t.table.touch(d, now)
	for _, s := range d.subs {
		t.touchBelow(s, now)
	}
}

// enqueue queues a file for the next free worker. The caller holds mu.
func (t *Tailer) enqueue(f *file) {
	if f.waiting {
		t.count(f, -1)
		f.waiting = false
		t.count(f, 1)
	}
	k := f.facts()
	k.inspectAt = 0
	if f.folder == nil || f.pathTaken {
		return
	}
	if f.state == working {
		f.changedAgain = true
		return
	}
	c := imported
	if t.now()-k.changed < activeFor {
		c = live
	}
	t.push(f, c)
}

func (t *Tailer) push(f *file, c priority) {
	q := &t.queue
	if f.state == queued {
		if c >= f.class {
			return
		}
		if f.class == imported {
			q.importing--
		}
	}
	f.state, f.class = queued, c
	switch c {
	case live:
		q.live.Push(f)
	case backlog:
		q.backlog.Push(f)
	case imported:
		q.importing++
		q.imports.Push(f, f.view().seen.ModTime)
	}
	t.cond.Signal()
}

// next waits for something to do, and for space for it. ok is false when ctx is done.
func (t *Tailer) next(ctx context.Context) (j job, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for ctx.Err() == nil {
		j := t.pick()
		if len(j.files) == 0 {
			t.cond.Wait()
			continue
		}
		if j.class != live {
			t.queue.bulk++
		}
		wakes := t.queue.wakes
		t.mu.Unlock()
		space := t.sink.HasSpace(j.class != imported)
		t.mu.Lock()
		if space {
			return j, true
		}
		t.putBack(j, wakes == t.queue.wakes)
	}
	return job{}, false
}

// pick takes files out of the queue: the most urgent class, and of it either one that is large or many small ones.
func (t *Tailer) pick() job {
	q := &t.queue
	if !q.noSpaceFor(live) {
		if files := t.gather(live, &q.live); len(files) > 0 {
			return job{files, live}
		}
	}
	if q.bulk >= q.limit {
		return job{}
	}
	if !q.noSpaceFor(live) {
		if files := t.gather(backlog, &q.backlog); len(files) > 0 {
			return job{files, backlog}
		}
	}
	if !q.noSpaceFor(imported) {
		return job{t.gather(imported, &q.imports), imported}
	}
	return job{}
}

// lane is the files of a class. One of them counts only if it is still queued in that class.
type lane interface {
	Peek() (*file, bool)
	Pop() *file
}

// gather takes files of a class until a turn's bytes are together.
func (t *Tailer) gather(c priority, from lane) []*file {
	var files []*file
	var bytes int64
	for len(files) < maxJobFiles {
		f, ok := from.Peek()
		if !ok {
			break
		}
		n := f.pending()
		if len(files) > 0 && (f.alone || bytes+n > t.cfg.TurnBytes) {
			break
		}
		if from.Pop(); f.state != queued || f.class != c {
			continue
		}
		f.state = working
		if f.folder == nil {
			t.done(f)
			continue
		}
		files = append(files, f)
		if bytes += n; f.alone || bytes >= t.cfg.TurnBytes {
			break
		}
	}
	return files
}

// pending returns how many bytes an inspection would read, as far as is known.
func (f *file) pending() int64 {
	k := f.view()
	return max(0, k.seen.Size-k.Cursor.Offset)
}

// done takes a file out of work.
func (t *Tailer) done(f *file) {
	f.state = idle
	if f.class == imported {
		t.queue.importing--
	}
}

// putBack returns a job for which there was no space. The files wait until space comes back, unless it may have
// meanwhile.
func (t *Tailer) putBack(j job, waits bool) {
	q := &t.queue
	if waits {
		q.noSpace[0] = q.noSpace[0] || j.class != imported
		q.noSpace[1] = q.noSpace[1] || j.class == imported
		q.noSpaceAt = t.now()
	}
	t.release(j)
	for _, f := range j.files {
		t.done(f)
		t.push(f, j.class)
	}
	t.notifySyncs()
	ring(t.wake)
}

// release frees a worker's slot. Another worker may be waiting for it.
func (t *Tailer) release(j job) {
	if j.class != live {
		t.queue.bulk--
		t.cond.Signal()
	}
}

// waitsForSpace reports whether files wait for space.
func (q *queue) waitsForSpace(t *Tailer) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return q.noSpace[0] || q.noSpace[1]
}

// retrySpace asks the sink for space again now and then, in case the owner does not call Wake.
func (t *Tailer) retrySpace(now time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now-t.queue.noSpaceAt >= spaceEvery {
		t.queue.noSpace = [2]bool{}
		t.cond.Broadcast()
	}
}

// wakeWaiting queues all files that were answered ErrLater, and asks for space again.
func (t *Tailer) wakeWaiting() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.queue.noSpace = [2]bool{}
	t.queue.wakes++
	for _, f := range t.table.byID {
		if f.waiting {
			t.enqueue(f)
		}
	}
	t.cond.Broadcast()
}
