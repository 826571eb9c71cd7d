package tail

import (
	"context"
	"errors"
	"fmt"
)

// WaitingError is returned by Sync when everything that can be delivered now was, and some files still wait.
type WaitingError struct {
	Later   int      // files the sink does not take now (ErrLater with no After), and those of Unread
	NoSpace int      // files that are not read because the sink has no space
	Unread  int      // files that cannot be opened or read
	Files   []FileID // those that are not taken now, unreadable ones aside
}

func (e *WaitingError) Error() string {
	return fmt.Sprintf("%d transcripts wait: %d not taken now, %d for space, %d unreadable",
		e.Later+e.NoSpace, e.Later-e.Unread, e.NoSpace, e.Unread)
}

// ErrStopped is returned by Sync when Run has ended.
var ErrStopped = errors.New("the tailer has stopped")

// syncWaiter is a running Sync.
type syncWaiter struct {
	left map[*file]target // files still to be inspected
	bell chan struct{}
}

// target is what a Sync waits for of a file.
type target struct {
	size int64 // at the call
	look wish  // as asked for by the call
}

// Sync lists everything now, verifies every file whose stat changed since its last full check, and returns when every
// whole line that was on disk at the call is durable. If some cannot be delivered, it returns a *WaitingError as soon
// as nothing else is left. It waits for Run to begin.
func (t *Tailer) Sync(ctx context.Context) error {
	listed := make(chan struct{})
	t.mu.Lock()
	t.requests.scanned = append(t.requests.scanned, listed)
	t.askFullLocked("sync")
	t.mu.Unlock()
	s := &syncWaiter{left: map[*file]target{}, bell: make(chan struct{}, 1)}
	if err := t.waitFor(ctx, listed); err != nil {
		return err
	}
	t.mu.Lock()
	for _, f := range t.table.byID {
		if f.folder != nil && f.needsSync() {
			k := f.glance()
			if k.Verified != k.seen {
				f.wishes.deep.ask()
			}
			f.wishes.look.ask()
			s.left[f] = target{k.seen.Size, f.wishes.look}
			t.enqueue(f)
		}
	}
	t.syncs[s] = struct{}{}
	t.mu.Unlock()
	defer func() {
		t.mu.Lock()
		delete(t.syncs, s)
		t.mu.Unlock()
	}()
	for {
		if done, err := t.syncDone(s); done {
			return err
		}
		if err := t.waitFor(ctx, s.bell); err != nil {
			return err
		}
	}
}

func (t *Tailer) waitFor(ctx context.Context, c <-chan struct{}) error {
	select {
	case <-c:
		return nil
	case <-t.ended:
		return ErrStopped
	case <-ctx.Done():
		return fmt.Errorf("sync transcripts: %w", ctx.Err())
	}
}

// needsSync reports whether the file may have undelivered lines or unverified changes.
func (f *file) needsSync() bool {
	k := f.glance()
	return f.state != idle || k.inspectAt != 0 || f.waiting || f.wishes.open() || f.pathTaken ||
		f.changedAgain || f.fails > 0 || k.Verified != k.seen || k.seen.Size != k.Cursor.Offset+k.partial
}

// completeSyncs removes the file from all Syncs that waited for this inspection: it began after their call, and read
// all that was there when it began, or at the call. What was written since does not matter. The caller holds mu.
func (t *Tailer) completeSyncs(f *file, l *inspection, err error, r Result) {
	gone := err != nil && notExist(err) // no line of it is on disk
	if len(t.syncs) == 0 || err != nil && !gone || r.Err != nil || l.replaced || l.deferred {
		return
	}
	if !gone && (f.wishes.reload.open() || f.pathTaken) || gone && f.changedAgain {
		return
	}
	for s := range t.syncs {
		w, ok := s.left[f]
		if ok && (gone || f.wishes.look.grantedSince(w.look) && (l.reached || f.glance().Cursor.Offset >= w.size)) {
			delete(s.left, f)
		}
	}
}

// removeFromSyncs removes a missing file from all Syncs. The caller holds mu.
func (t *Tailer) removeFromSyncs(f *file) {
	for s := range t.syncs {
		delete(s.left, f)
	}
	t.notifySyncs()
}

// syncDone reports whether a Sync is complete: nothing is left, or only files that wait for the sink.
func (t *Tailer) syncDone(s *syncWaiter) (bool, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var e WaitingError
	for f := range s.left {
		switch {
		case f.waiting:
			e.Later++
			e.Files = append(e.Files, f.id)
		case f.fails >= 2 && f.state == idle:
			e.Later++
			e.Unread++
		case f.state == queued && t.queue.noSpaceFor(f.class):
			e.NoSpace++
		default:
			return false, nil
		}
	}
	if e.Later+e.NoSpace > 0 {
		return true, &e
	}
	return true, nil
}

// notifySyncs wakes all Syncs to check whether they are complete. The caller holds mu.
func (t *Tailer) notifySyncs() {
	for s := range t.syncs {
		ring(s.bell)
	}
}
