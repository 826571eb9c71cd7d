package tail

import (
	"context"
	"errors"
	"time"
)

// scrubs is the files whose whole past is to be checked again, in their own time: an edit far behind the cursor is
// seen by nothing else. It happens beside the workers, so that a file being written is not kept waiting by it.
type scrubs struct {
	due  agenda
	bell chan struct{}
}

// scrubRate is how many bytes a second are re-read at the most.
const scrubRate = 32 << 20

// errMoot says that a file changed while it was scrubbed: the change has it scrubbed again.
var errMoot = errors.New("file changed")

// scrubbing scrubs until ctx is done.
func (t *Tailer) scrubbing(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	var pace pacer
	for {
		f, wait := t.nextScrub()
		if f != nil {
			t.scrubFile(ctx, f, &pace)
			continue
		}
		timer.Reset(wait)
		select {
		case <-ctx.Done():
			return
		case <-t.scrub.bell:
		case <-timer.C:
		}
	}
}

// nextScrub answers the file that is due, or how long until one is. An import goes first.
func (t *Tailer) nextScrub() (*file, time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.queue.importing > 0 && len(t.scrub.due) > 0 {
		return nil, time.Second
	}
	f, wait := t.scrub.due.take(t.now(),
		func(f *file) time.Duration { return f.scrubAt }, func(f *file) { f.inScrub = false })
	if f != nil {
		f.scrubAt = 0
	}
	return f, wait
}

// scrubFile checks all of a file's past. What does not hold is left to a worker, who finds out again and rewinds.
func (t *Tailer) scrubFile(ctx context.Context, f *file, pace *pacer) {
	t.mu.Lock()
	was, seen, there := f.Tracked, f.seen, f.folder != nil && !f.held
	t.mu.Unlock()
	if !there || was.Verified == seen {
		return
	}
	holds, err := t.scrubbed(ctx, f, &was, seen, pace)
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case ctx.Err() != nil, f.folder == nil:
	case errors.Is(err, errMoot) || f.Cursor != was.Cursor || f.seen != seen:
		if f.scrubAt == 0 {
			t.setScrub(f, t.now()+t.cfg.ScrubAfter)
		}
	case err != nil:
		if !notExist(err) {
			t.setScrub(f, t.now()+t.cfg.ScrubAfter)
		}
	case !holds:
		t.log.Info("past of transcript changed", "path", f.File.Path)
		f.deep = true
		t.enqueue(f)
	case seen.age() < seen.settled():
		t.setScrub(f, t.now()+max(t.cfg.ScrubAfter, seen.settled())) // too young to prove anything for good
	default:
		f.Verified = seen
		f.sure = f.sure || f.File.Stat == seen
	}
}

func (t *Tailer) scrubbed(ctx context.Context, f *file, was *Tracked, seen Stat, pace *pacer) (bool, error) {
	h, err := t.open(was.File.Path)
	if err != nil {
		return false, err
	}
	defer h.Close()
	if st, _, err := h.stat(); err != nil || st != seen {
		return false, errMoot
	}
	var marks []Mark
	if was.Cursor.Mark > 0 {
		if marks, err = t.cursors.Marks(ctx, was.File.ID); err != nil {
			return false, err
		}
	}
	size := min(scratchSize, max(was.Cursor.Offset, 1))
	_, all, err := unchanged(ctx, proof{
		r: h, marks: marks, cursor: was.Cursor, scratch: make([]byte, size),
		pace: func(n int) error { return t.pace(ctx, f, was, pace, n) },
	})
	if err != nil {
		return false, err
	}
	if st, _, err := h.stat(); err != nil || st != seen {
		return false, errMoot
	}
	return all, nil
}

// pace waits as long as n bytes may take, and stops a scrub that has become moot.
func (t *Tailer) pace(ctx context.Context, f *file, was *Tracked, p *pacer, n int) error {
	t.mu.Lock()
	moot := f.Cursor != was.Cursor || f.folder == nil
	t.mu.Unlock()
	if moot {
		return errMoot
	}
	wait := p.spend(t.now(), n)
	if wait <= 0 {
		return nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// pacer spreads bytes over time; up to a second's worth may be spent at once after a rest.
type pacer struct{ next time.Duration }

// spend says how long to wait after n more bytes.
func (p *pacer) spend(now time.Duration, n int) time.Duration {
	p.next = max(p.next, now-time.Second) + time.Duration(n)*time.Second/scrubRate
	return p.next - now
}
