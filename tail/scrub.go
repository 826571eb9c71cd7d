package tail

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/cespare/xxhash/v2"
)

// scrubQueue holds files of which all bytes before the cursor are to be checked again in the background: nothing else
// finds an edit far behind the cursor. Scrubbing has its own goroutine, so it does not delay files being written.
type scrubQueue struct {
	due  schedule[*file]
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
	pace := pacer{Rate: scrubRate}
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
	if t.queue.importing > 0 && t.scrub.due.Len() > 0 {
		return nil, time.Second
	}
	f, wait := t.scrub.due.Take(t.now(),
		func(f *file) time.Duration { return f.facts().scrubAt }, func(f *file) { f.scrubScheduled = false })
	if f != nil {
		f.facts().scrubAt = 0
	}
	return f, wait
}

// scrubFile checks all bytes before a file's cursor. If some changed, a worker finds that again and rewinds.
func (t *Tailer) scrubFile(ctx context.Context, f *file, pace *pacer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	defer t.rest(f)
	k := f.facts()
	was, seen := k.Tracked, k.seen
	if f.folder == nil || f.pathTaken || was.Verified == seen {
		return
	}
	t.mu.Unlock()
	holds, err := t.pastHolds(ctx, f, &was, seen, pace)
	t.mu.Lock()
	k = f.facts()
	switch {
	case ctx.Err() != nil, f.folder == nil:
	case errors.Is(err, errScrubObsolete) || k.Cursor != was.Cursor || k.seen != seen:
		if k.scrubAt == 0 {
			t.scheduleScrub(f, t.now()+t.cfg.ScrubAfter)
		}
	case err != nil:
		if !notExist(err) {
			t.scheduleScrub(f, t.now()+t.cfg.ScrubAfter)
		}
	case !holds:
		t.log.Info("past of transcript changed", "path", k.File.Path)
		f.wishes.deep.ask()
		t.enqueue(f)
	case t.age(seen) < seen.settleTime():
		t.scheduleScrub(f, t.now()+max(t.cfg.ScrubAfter, seen.settleTime())) // too young to prove anything for good
	default:
		k.Verified = seen
		f.pastHolds = f.pastHolds || k.File.Stat == seen
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
	proof := prefixProof{
		From: h, Marks: marks, Cursor: was.Cursor, Scratch: make([]byte, size),
		Pace: func(n int) error { return t.pace(ctx, f, was, pace, n) },
	}
	_, all, err := proof.Unchanged(ctx)
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
	moot := f.glance().Cursor != was.Cursor || f.folder == nil
	t.mu.Unlock()
	if moot {
		return errScrubObsolete
	}
	wait := p.Delay(t.now(), n)
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

// prefixProof is what Unchanged is asked.
type prefixProof struct {
	From    io.ReaderAt
	Marks   []Mark
	Cursor  Cursor
	Scratch []byte
	Pace    func(n int) error // called after every n bytes read; nil: no limit
}

// Unchanged returns the last Mark before which every byte is unchanged (the zero Mark if none), and whether the
// bytes from there to the cursor are unchanged too.
func (p *prefixProof) Unchanged(ctx context.Context) (last Mark, all bool, err error) {
	for _, m := range p.Marks {
		if m.Offset > p.Cursor.Offset {
			break // never stored; it proves nothing about this cursor
		}
		h, err := p.Hash(ctx, last.Offset, m.Offset)
		if err != nil || h != m.Hash {
			return last, false, ignoreShort(err)
		}
		last = m
	}
	if last.Offset != p.Cursor.Mark {
		return last, false, nil // marks and cursor were not stored together: trust what is proven
	}
	h, err := p.Hash(ctx, last.Offset, p.Cursor.Offset)
	if err != nil {
		return last, false, ignoreShort(err)
	}
	return last, h == p.Cursor.Segment, nil
}

// Hash reads and hashes the bytes between two offsets. io.EOF: the file ends before.
func (p *prefixProof) Hash(ctx context.Context, from, to int64) (uint64, error) {
	if from == to {
		return 0, nil
	}
	var d xxhash.Digest
	d.Reset()
	for from < to {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		n, err := p.From.ReadAt(p.Scratch[:min(int64(len(p.Scratch)), to-from)], from)
		if err != nil && (n == 0 || !errors.Is(err, io.EOF)) {
			return 0, err
		}
		d.Write(p.Scratch[:n])
		from += int64(n)
		if p.Pace == nil {
			continue
		}
		if err := p.Pace(n); err != nil {
			return 0, err
		}
	}
	return d.Sum64(), nil
}

// ignoreShort treats a file that is too short as one that differs.
func ignoreShort(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// VerifyPrefix reports whether the bytes of r, from its first, are those that were read before c: it checks every mark
// before it and what follows the last. last is the Mark up to which they are, whatever the answer. More bytes than c
// has do not matter, fewer do. An error is r's.
func VerifyPrefix(r io.Reader, marks []Mark, c Cursor) (last Mark, all bool, err error) {
	p := prefixProof{From: inOrder{r}, Marks: marks, Cursor: c, Scratch: make([]byte, scratchSize)}
	if last, all, err = p.Unchanged(context.Background()); err != nil {
		return last, false, fmt.Errorf("check transcript: %w", err)
	}
	return last, all, nil
}

// inOrder reads a stream for prefixProof, which asks for one piece behind the other.
type inOrder struct{ r io.Reader }

// ReadAt is io.ReaderAt for the next offset.
func (o inOrder) ReadAt(p []byte, _ int64) (int, error) {
	n, err := io.ReadFull(o.r, p)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = io.EOF
	}
	return n, err
}
