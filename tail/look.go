package tail

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// look is one look at one file, done by one worker: what was known before, and what it found.
type look struct {
	t      *Tailer
	f      *file // only for Tailer.finish; a look reads and writes nothing of it
	was    Tracked
	expect Stat // device and inode the path is expected to have
	turn   int64
	deep   bool // check all marks, not only the last bytes
	reread bool // from line 0 in a new generation
	solo   bool // alone in its round, so that it may take long
	live   bool
	before int64
	still  time.Duration // since when no change was seen
	sure   bool          // everything before the cursor was known to hold when the stat was was.File.Stat
	long   *longLine     // what is known of a line that had no end yet

	// Found:
	st      Stat
	prior   []byte // copy of the bytes before the base; valid while this look lasts
	walk    walker
	base    Cursor // where reading started: was.Cursor, or where a rewind leads
	sealed  bool
	tail    Provisional // delivered before and still there
	whole   bool        // everything before the end of this look is known to hold for st
	chunk   *Chunk
	partial int64 // bytes after the last newline, when the end was reached
	more    bool  // the end was not reached
	heavy   bool  // not done: it would have made the rest of the round wait
	swapped bool  // another file is at the path
	tried   bool  // the partial line is no JSON object, or was delivered
	rewound bool
}

// heavyPast is how much is re-checked or rewound within a round of several files.
const heavyPast = 4 << 20

// tries is how often a file that keeps changing is looked at again before others have their turn.
const tries = 4

// run looks. Afterwards chunk is what to deliver, if anything.
func (l *look) run(ctx context.Context, a *arena) error {
	for range tries {
		again := *l
		err := again.once(ctx, a)
		if errors.Is(err, errChanged) || errors.Is(err, io.EOF) {
			l.long, l.deep = nil, true
			continue
		}
		*l = again
		return err
	}
	return errChanged
}

// once opens the file, proves its past, reads on, and proves that nothing moved meanwhile.
func (l *look) once(ctx context.Context, a *arena) error {
	h, err := l.t.open(l.was.File.Path)
	if err != nil {
		return fmt.Errorf("open transcript: %w", err)
	}
	defer h.Close()
	st, isRegular, err := h.stat()
	if err != nil {
		return fmt.Errorf("read transcript: %w", err)
	}
	if !isRegular || !st.sameFile(l.expect) {
		l.swapped = true
		return nil
	}
	l.st = st
	if err := l.stand(ctx, h, a); err != nil || l.heavy {
		return err
	}
	lines, err := l.read(ctx, h, a)
	if err != nil || l.heavy {
		return err
	}
	if err := l.t.faults.on(l.t.faults.read, l.was.File.Path); err != nil {
		return err
	}
	return l.steady(h, lines, a)
}

// stand finds where to read on: at the cursor when its past holds, else where the unchanged part ends.
func (l *look) stand(ctx context.Context, h *handle, a *arena) error {
	l.base = l.was.Cursor
	proven := l.base.Offset == 0 || l.was.Verified == l.st || l.sure && l.was.File.Stat == l.st
	last := l.was.File.Stat
	suspect := l.deep || !last.sameFile(l.st) || l.st.Size < l.base.Offset ||
		last != (Stat{}) && last != l.st && last.Size == l.st.Size && l.base.Offset <= heavyPast
	switch {
	case l.reread:
		l.base, proven = Cursor{Generation: l.was.Cursor.Generation + 1}, true
	case suspect && l.base.Offset > 0:
		if err := l.prove(ctx, h, a); err != nil || l.heavy {
			return err
		}
		proven = true
	}
	g, err := readRegion(h, l.base, a)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if l.base == l.was.Cursor && (err != nil || !g.proves(l.base)) {
		if err := l.prove(ctx, h, a); err != nil || l.heavy {
			return err
		}
		if proven = true; l.base == l.was.Cursor {
			if !l.deep {
				return errChanged // it holds again: somebody is writing there
			}
			l.base.Generation++ // the cursor itself is damaged, its marks are not
		}
		if g, err = readRegion(h, l.base, a); err != nil {
			return err
		}
	}
	l.base.Anchor = sum(g.anchor())
	l.prior = a.prior[:copy(a.prior[:], g.anchor())]
	l.walk.start(l.base, g.segment(l.base))
	l.whole = proven
	return l.provisional(h, a)
}

// prove checks the whole past, and moves the base back to the end of what still holds of it.
func (l *look) prove(ctx context.Context, h *handle, a *arena) error {
	c := l.was.Cursor
	if c.Offset > heavyPast && !l.solo {
		l.heavy = true
		return nil
	}
	var marks []Mark
	if c.Mark > 0 {
		var err error
		if marks, err = l.t.cursors.Marks(ctx, l.was.File.ID); err != nil {
			return fmt.Errorf("load marks: %w", err)
		}
	}
	last, all, err := unchanged(ctx, proof{r: h, marks: marks, cursor: c, scratch: a.scratch})
	if err != nil {
		return err
	}
	if l.base = c; !all {
		l.base = Cursor{Offset: last.Offset, Line: last.Line, Mark: last.Offset, Generation: c.Generation + 1}
	}
	return nil
}

// read reads whole lines from the base on, as many as this turn allows, and makes the chunk.
func (l *look) read(ctx context.Context, h *handle, a *arena) ([]byte, error) {
	left := l.st.Size - l.base.Offset
	if left < 0 {
		return nil, errChanged // it was cut when the look began, and is whole again
	}
	n := min(left, l.turn)
	if l.long != nil && !l.long.fits(l.base, l.st, h, a) {
		l.long = nil
	}
	if n == 0 {
		l.long = nil
		l.make(nil)
		return nil, nil
	}
	if l.long != nil {
		return l.readLong(ctx, h, a, left)
	}
	buf := a.take(n)
	if k, err := h.ReadAt(buf, l.base.Offset); k < len(buf) {
		return nil, err
	}
	cut := lastLine(buf)
	if cut == 0 && n < left || firstOver(buf, l.t.cfg.Cap) == 0 {
		a.giveBack(n)
		l.long = &longLine{base: l.base} // the first line is longer than the turn, or than the cap
		return l.readLong(ctx, h, a, left)
	}
	return l.split(buf, cut, left)
}

// split takes the whole lines of buf, the first cut bytes. left is how many bytes the file has from the base on.
func (l *look) split(buf []byte, cut int, left int64) ([]byte, error) {
	lines := buf[:cut]
	if over := firstOver(lines, l.t.cfg.Cap); over > 0 {
		lines = lines[:over]
	}
	rest := left - int64(len(lines))
	if len(lines) == cut && int64(len(buf)) == left {
		l.partial = rest
	}
	l.more = rest > l.partial
	l.long = nil
	if len(lines) == 0 && l.partial >= longFrom {
		l.long = &longLine{base: l.base, scanned: l.st.Size, tail: anchorOf(nil, buf)}
	}
	if l.sealed && len(lines) == 0 {
		return nil, errChanged
	}
	l.walk.add(lines)
	l.make(lines)
	if len(lines) == 0 && l.partial == int64(len(buf)) {
		l.offer(buf)
	}
	return lines, nil
}

// make makes the chunk when there is news: lines, or a rewind.
func (l *look) make(lines []byte) {
	if len(lines) == 0 && l.base == l.was.Cursor {
		return
	}
	l.begin()
	l.chunk.Lines = lines
	l.chunk.Sealed = l.sealed
	l.end(l.walk.cursor(l.base.Generation), anchorOf(l.prior, lines))
}

// begin makes a chunk of nothing, from the base to the base.
func (l *look) begin() {
	l.chunk = &Chunk{File: l.was.File, Prev: l.was.Cursor, From: l.base, To: l.base, Live: l.live, Before: l.before}
	l.chunk.File.Stat = l.st
	l.rewound = l.base != l.was.Cursor
}

// end closes the chunk at to.
func (l *look) end(to Cursor, anchor uint64) {
	to.Anchor = anchor
	l.chunk.To, l.chunk.Marks = to, l.walk.marks
}

// steady proves after reading that the bytes read were in the file at one time: unless only its size grew, and the
// ends of what was read are still there, the look starts again.
func (l *look) steady(h *handle, lines []byte, a *arena) error {
	now, _, err := h.stat()
	if err != nil {
		return fmt.Errorf("read transcript: %w", err)
	}
	if now != l.st {
		if now.Size <= l.st.Size || !now.sameFile(l.st) {
			return errChanged
		}
		l.whole, l.more = false, true
	}
	if l.chunk == nil {
		return l.settle()
	}
	last := lines[max(0, len(lines)-AnchorSize):]
	if !still(h, l.prior, l.base.Offset-int64(len(l.prior)), a) ||
		!still(h, last, l.chunk.From.Offset+int64(len(lines)-len(last)), a) ||
		!still(h, l.chunk.Provisional, l.chunk.To.Offset, a) {
		return errChanged
	}
	return l.settle()
}

// still says whether the bytes are in the file at an offset.
func still(h *handle, want []byte, off int64, a *arena) bool {
	for len(want) > 0 {
		n := min(len(want), len(a.scratch))
		got := a.scratch[:n]
		if k, _ := h.ReadAt(got, off); k < n || string(got) != string(want[:n]) {
			return false
		}
		want, off = want[n:], off+int64(n)
	}
	return true
}

// settle fills in what to remember.
func (l *look) settle() error {
	// A young change time proves nothing: another write within the same tick of the clock would leave it as it is.
	if l.st.age() < l.st.settled() {
		l.whole = false
	}
	if l.chunk == nil {
		return nil
	}
	tr := l.was
	tr.File, tr.Cursor = l.chunk.File, l.chunk.To
	tr.Provisional = Provisional{Length: int64(len(l.chunk.Provisional)), Hash: sum(l.chunk.Provisional)}
	tr.Gone, tr.Listings = 0, 0
	if l.whole && !l.more {
		tr.Verified = l.st
	}
	l.chunk.Tracked = tr
	return nil
}
