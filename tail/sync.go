package tail

import (
	"context"
	"errors"
	"fmt"
)

// WaitingError is what Sync answers when all that can be delivered now was, and some files still wait.
type WaitingError struct {
	Later  int      // files the sink does not take now (ErrLater with no After), and those of Unread
	Room   int      // files that are not read because the sink has no room
	Unread int      // files that cannot be opened or read
	Files  []FileID // those that are not taken now, unreadable ones aside
}

func (e *WaitingError) Error() string {
	return fmt.Sprintf("%d transcripts wait: %d not taken now, %d for room, %d unreadable",
		e.Later+e.Room, e.Later-e.Unread, e.Room, e.Unread)
}

// ErrStopped is what Sync answers when Run has ended.
var ErrStopped = errors.New("tailer is not running any more")

// syncing is one Sync that is not over.
type syncing struct {
	left map[*file]int64 // files to be looked at yet, and their size at the call
	bell chan struct{}
}

// Sync lists everything now, checks the whole past of every file whose stat changed since that was done last, and
// returns when every whole line that was on disk at the call has been delivered durably. When some can't be, it
// returns a *WaitingError as soon as nothing else is left. It waits for Run if that has not begun.
func (t *Tailer) Sync(ctx context.Context) error {
	listed := make(chan struct{})
	t.mu.Lock()
	t.asks.scanned = append(t.asks.scanned, listed)
	t.askFullLocked("sync")
	t.mu.Unlock()
	s := &syncing{left: map[*file]int64{}, bell: make(chan struct{}, 1)}
	if err := t.waitFor(ctx, listed); err != nil {
		return err
	}
	t.mu.Lock()
	for _, f := range t.table.byID {
		if f.folder != nil && f.unsettled() {
			f.deep = f.deep || f.Verified != f.seen
			s.left[f] = f.seen.Size
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
		if done, err := t.synced(s); done {
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

// unsettled says that something of the file may not be delivered yet, or its past may not be what it was.
func (f *file) unsettled() bool {
	return f.state != idle || f.lookAt != 0 || f.waiting || f.reread || f.deep || f.held || f.again || f.fails > 0 ||
		f.Verified != f.seen || f.seen.Size != f.Cursor.Offset+f.partial
}

// satisfy takes the file off the lists of all Syncs that waited for this look. The caller holds mu.
func (t *Tailer) satisfy(f *file, l *look, err error, r Result) {
	gone := err != nil && notExist(err) // no line of it is on disk
	if len(t.syncs) == 0 || err != nil && !gone || r.Err != nil || l.swapped || l.heavy {
		return
	}
	if !gone && (f.deep || f.reread || f.held) || f.again {
		return
	}
	for s := range t.syncs {
		if size, ok := s.left[f]; ok && (!l.more || f.Cursor.Offset >= size) {
			delete(s.left, f)
		}
	}
}

// unsync takes a file that is gone off all lists. The caller holds mu.
func (t *Tailer) unsync(f *file) {
	for s := range t.syncs {
		delete(s.left, f)
	}
	t.ringSyncs()
}

// synced says whether a Sync is over: nothing is left, or only files that wait for the sink.
func (t *Tailer) synced(s *syncing) (bool, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var e WaitingError
	for f := range s.left {
		switch {
		case f.waiting:
			e.Later++
			e.Files = append(e.Files, f.File.ID)
		case f.fails >= 2 && f.state == idle:
			e.Later++
			e.Unread++
		case f.state == queued && t.queue.full(f.class):
			e.Room++
		default:
			return false, nil
		}
	}
	if e.Later+e.Room > 0 {
		return true, &e
	}
	return true, nil
}

// ringSyncs has all Syncs look again whether they are over. The caller holds mu.
func (t *Tailer) ringSyncs() {
	for s := range t.syncs {
		select {
		case s.bell <- struct{}{}:
		default:
		}
	}
}
