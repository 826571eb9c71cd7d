package tail

import (
	"context"
	"errors"
	"fmt"
	"time"
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

// facts is what is known of a file. Most files of a history are quiet for good: they rest, with their facts in a few
// bytes.
type facts struct {
	Tracked        // File.Stat is from the last inspection
	seen      Stat // from the last listing; its device and inode belong to the cursor's file
	long      *longLine
	changed   time.Duration // when it was last seen to change
	inspectAt time.Duration // next scheduled inspection; 0: when it changes
	scrubAt   time.Duration // next scheduled scrub; 0: none
	partial   int64         // bytes after the last newline, at the last inspection
}

// longAgo is when a file changed that rests.
const longAgo = -24 * time.Hour

// facts wakes the file. The caller that makes it active has it rest again: see rest.
func (f *file) facts() *facts {
	if f.awake == nil {
		k := f.view()
		f.awake, f.packed = &k, ""
	}
	return f.awake
}

// view returns a copy of what is known, and lets the file rest.
func (f *file) view() facts {
	k := f.glance()
	if f.awake == nil {
		k.File.Path, k.File.Root = joinPath(f.folder.path, f.base), f.folder.root.Dir
		k.File.Kind, k.File.Name, _ = f.folder.transcript(f.base)
	}
	return k
}

// glance returns a copy that may lack what the folder says: Kind, Path, Root and Name.
func (f *file) glance() (k facts) {
	if f.awake != nil {
		return *f.awake
	}
	b := []byte(f.packed) // does not leave this function, so that nothing is copied
	flags := b[0]
	b, k.seen = unpackStat(b[1:])
	k.File.ID, k.File.Copy, k.changed = f.id, 1, longAgo
	if k.File.Stat = k.seen; flags&packedStat != 0 {
		b, k.File.Stat = unpackStat(b)
	}
	if flags&packedVerified != 0 {
		b, k.Verified = unpackStat(b)
	} else if flags&packedUnverified == 0 {
		k.Verified = k.seen
	}
	if flags&packedCopy != 0 {
		var n int64
		b = takePacked(b, &n)
		k.File.Copy = int(n)
	}
	if flags&packedCursor != 0 {
		k.Cursor = unpackCursor(b)
	}
	return k
}

// The first of the packed bytes says which facts follow the last stat. What is missing is as in most files.
const (
	packedStat       = 1 << iota // an inspection has seen another stat than the last listing
	packedVerified               // the marks were verified with another stat
	packedUnverified             // they were not
	packedCopy                   // it is not the first of its name
	packedCursor                 // something of it was read
)

// rest keeps a file's facts in a few bytes until they are needed, if nothing is due for it and nothing about it is out
// of the ordinary.
func (t *Tailer) rest(f *file) {
	k, d := f.awake, f.folder
	if k == nil || d == nil || f.state == working || f.state == queued && f.class != imported {
		return
	}
	if now := t.now(); now-k.changed < t.restAt {
		if !f.drowsy {
			f.drowsy = true
			t.drowsy.Push(doze{f, now + t.restAt})
		}
		return
	}
	if k.long != nil || k.inspectAt != 0 || k.scrubAt != 0 || k.partial != 0 || k.Provisional != (Provisional{}) ||
		k.Gone != 0 || k.Missed != 0 || f.inspectScheduled || f.scrubScheduled {
		return
	}
	kind, name, ok := d.transcript(f.base)
	if !ok || kind != k.File.Kind || name != k.File.Name || k.File.Root != d.root.Dir ||
		k.File.Path != joinPath(d.path, f.base) {
		return
	}
	f.packed, f.awake = k.pack(), nil
}

// doze is a file that is too young to rest, and when to try again.
type doze struct {
	f  *file
	at time.Duration
}

// restDrowsy has files rest that are old enough now. It looks at those that are due only.
func (t *Tailer) restDrowsy() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for now := t.now(); ; {
		first, ok := t.drowsy.Peek()
		if !ok || first.at > now {
			return
		}
		t.drowsy.Pop()
		first.f.drowsy = false
		t.rest(first.f)
	}
}

func (k *facts) pack() string {
	var space [160]byte
	b := append(space[:0], 0)
	b = packStat(b, k.seen)
	if k.File.Stat != k.seen {
		b[0] |= packedStat
		b = packStat(b, k.File.Stat)
	}
	switch k.Verified {
	case k.seen:
	case Stat{}:
		b[0] |= packedUnverified
	default:
		b[0] |= packedVerified
		b = packStat(b, k.Verified)
	}
	if k.File.Copy != 1 {
		b[0] |= packedCopy
		b = appendPacked(b, int64(k.File.Copy))
	}
	if k.Cursor != (Cursor{}) {
		b[0] |= packedCursor
		b = packCursor(b, k.Cursor)
	}
	return string(b)
}

func packStat(b []byte, s Stat) []byte {
	return appendPacked(b, int64(s.Device), int64(s.Inode), s.Size, s.ModTime, s.ChangeTime-s.ModTime)
}

func unpackStat(b []byte) (left []byte, s Stat) {
	var device, inode int64
	b = takePacked(b, &device, &inode, &s.Size, &s.ModTime, &s.ChangeTime)
	s.Device, s.Inode, s.ChangeTime = uint64(device), uint64(inode), s.ChangeTime+s.ModTime
	return b, s
}

func packCursor(b []byte, c Cursor) []byte {
	return appendPacked(b, c.Offset, c.Line, int64(c.Generation), int64(c.Anchor), c.Mark, int64(c.Segment))
}

func unpackCursor(b []byte) (c Cursor) {
	var generation, anchor, segment int64
	takePacked(b, &c.Offset, &c.Line, &generation, &anchor, &c.Mark, &segment)
	c.Generation, c.Anchor, c.Segment = uint32(generation), uint64(anchor), uint64(segment)
	return c
}
