package tail

import (
	"context"
	"errors"
	"time"
)

// scrubQueue holds files of which all bytes before the cursor are to be checked again in the background: nothing else
// finds an edit far behind the cursor. Scrubbing has its own goroutine, so it does not delay files being written.
type scrubQueue struct {
	due  schedule
	bell chan struct{}
}

// scrubRate is the limit of bytes re-read per second.
const scrubRate = 32 << 20

// errScrubObsolete means that a file changed while it was scrubbed. The change schedules another scrub.
var errScrubObsolete = errors.New("file changed")

// runScrub scrubs until ctx is done.
func (t *Tailer) runScrub(ctx context.Context) {
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

// nextScrub returns the file that is due, or how long until one is. Imports go first.
func (t *Tailer) nextScrub() (*file, time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.queue.importing > 0 && len(t.scrub.due) > 0 {
		return nil, time.Second
	}
	f, wait := t.scrub.due.take(t.now(),
		func(f *file) time.Duration { return f.scrubAt }, func(f *file) { f.scrubScheduled = false })
	if f != nil {
		f.scrubAt = 0
	}
	return f, wait
}

// scrubFile checks all bytes before a file's cursor. If some changed, a worker finds that again and rewinds.
func (t *Tailer) scrubFile(ctx context.Context, f *file, pace *pacer) {
	t.mu.Lock()
	was, seen, there := f.Tracked, f.seen, f.folder != nil && !f.pathTaken
	t.mu.Unlock()
	if !there || was.Verified == seen {
		return
	}
	holds, err := t.pastHolds(ctx, f, &was, seen, pace)
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case ctx.Err() != nil, f.folder == nil:
	case errors.Is(err, errScrubObsolete) || f.Cursor != was.Cursor || f.seen != seen:
		if f.scrubAt == 0 {
			t.scheduleScrub(f, t.now()+t.cfg.ScrubAfter)
		}
	case err != nil:
		if !notExist(err) {
			t.scheduleScrub(f, t.now()+t.cfg.ScrubAfter)
		}
	case !holds:
		t.log.Info("past of transcript changed", "path", f.File.Path)
		f.deep = true
		t.enqueue(f)
	case seen.age() < seen.settleTime():
		t.scheduleScrub(f, t.now()+max(t.cfg.ScrubAfter, seen.settleTime())) // too young to prove anything for good
	default:
		f.Verified = seen
		f.pastHolds = f.pastHolds || f.File.Stat == seen
	}
}

func (t *Tailer) pastHolds(ctx context.Context, f *file, was *Tracked, seen Stat, pace *pacer) (bool, error) {
	h, err := t.open(was.File.Path)
	if err != nil {
		return false, err
	}
	defer h.Close()
	if st, _, err := h.stat(); err != nil || st != seen {
		return false, errScrubObsolete
	}
	var marks []Mark
	if was.Cursor.Mark > 0 {
		if marks, err = t.cursors.Marks(ctx, was.File.ID); err != nil {
			return false, err
		}
	}
	size := min(scratchSize, max(was.Cursor.Offset, 1))
	_, all, err := unchangedPrefix(ctx, proof{
		r: h, marks: marks, cursor: was.Cursor, scratch: make([]byte, size),
		pace: func(n int) error { return t.pace(ctx, f, was, pace, n) },
	})
	if err != nil {
		return false, err
	}
	if st, _, err := h.stat(); err != nil || st != seen {
		return false, errScrubObsolete
	}
	return all, nil
}

// pace delays a scrub to scrubRate, and stops one that is obsolete.
func (t *Tailer) pace(ctx context.Context, f *file, was *Tracked, p *pacer, n int) error {
	t.mu.Lock()
	moot := f.Cursor != was.Cursor || f.folder == nil
	t.mu.Unlock()
	if moot {
		return errScrubObsolete
	}
	wait := p.delay(t.now(), n)
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

// pacer limits a byte rate; after a rest it allows a burst of one second's bytes.
type pacer struct{ next time.Duration }

// delay returns how long to wait after n more bytes.
func (p *pacer) delay(now time.Duration, n int) time.Duration {
	p.next = max(p.next, now-time.Second) + time.Duration(n)*time.Second/scrubRate
	return p.next - now
}
