package tail

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// inspection is one check of one file by one worker: what was known before, and what it found. It reads what is new.
type inspection struct {
	t              *Tailer
	f              *file // only for Tailer.finishInspection; the inspection itself does not touch it
	known          Tracked
	expect         Stat // device and inode the path is expected to have
	budget         int64
	deep           bool   // check all marks, not only the last bytes
	wishes         wishes // of the file when the inspection began
	wakes          uint64 // of the queue then
	alone          bool   // the only file of its job, so it may take long
	live           bool
	before         int64
	unchangedSince time.Duration // when the last change was seen
	pastHolds      bool          // everything before the cursor was verified for known.File.Stat
	long           *longLine     // a long line that has no end yet; nil: none

	// Found:
	st             Stat
	anchorBytes    []byte // copy of the bytes before the base; valid during the inspection
	walk           prefixWalker
	base           Cursor // where reading starts: known.Cursor, or the end of the unchanged prefix after a rewind
	sealed         bool
	provisionalNow Provisional // delivered before and still unchanged
	verified       bool        // everything up to the end of this inspection is verified for st
	chunk          *Chunk
	partial        int64 // bytes after the last newline, when the end was reached
	reached        bool  // the end was reached, as it was when the inspection began
	more           bool  // the end was not reached, or is elsewhere by now
	deferred       bool  // not done: it would delay the other files of the job
	replaced       bool  // another file is at the path
	partialTried   bool  // the partial line is not a JSON object, or was delivered
	rewound        bool
}

// maxSharedProof is the limit of bytes re-checked per file in a job of several files.
const maxSharedProof = 4 << 20

// maxTries is how often an inspection is repeated, while the file keeps changing, before other files have their turn.
const maxTries = 4

// run inspects the file. Afterwards chunk is what to deliver, or nil.
func (l *inspection) run(ctx context.Context, a *arena) error {
	for range maxTries {
		again := *l
		err := again.inspect(ctx, a)
		if errors.Is(err, errChanged) || errors.Is(err, io.EOF) {
			l.long, l.deep = nil, true
			continue
		}
		*l = again
		return err
	}
	return errChanged
}

// inspect opens the file, verifies the bytes before the cursor, reads on, and confirms that nothing changed meanwhile.
func (l *inspection) inspect(ctx context.Context, a *arena) error {
	h, err := l.t.open(l.known.File.Path)
	if err != nil {
		return fmt.Errorf("open transcript: %w", err)
	}
	defer h.Close()
	st, isRegular, err := h.stat()
	if err != nil {
		return fmt.Errorf("read transcript: %w", err)
	}
	if !isRegular || !st.sameFile(l.expect) {
		l.replaced = true
		return nil
	}
	l.st = st
	if err := l.decideRewind(ctx, h, a); err != nil || l.deferred {
		return err
	}
	lines, err := l.read(ctx, h, a)
	if err != nil || l.deferred {
		return err
	}
	if err := l.t.faults.on(l.t.faults.read, l.known.File.Path); err != nil {
		return err
	}
	return l.confirm(h, lines, a)
}

// read reads whole lines from the base, as many as the budget allows, and builds the chunk.
func (l *inspection) read(ctx context.Context, h *handle, a *arena) ([]byte, error) {
	left := l.st.Size - l.base.Offset
	if left < 0 {
		return nil, errChanged // it was short when the inspection began, and is longer again
	}
	n := min(left, l.budget)
	if l.long != nil && !l.long.fits(l.base, l.st, h, a) {
		l.long = nil
	}
	if n == 0 {
		l.long = nil
		l.buildChunk(nil)
		return nil, nil
	}
	if l.long != nil {
		return l.readLong(ctx, h, a, left)
	}
	buf := a.Take(n)
	if k, err := h.ReadAt(buf, l.base.Offset); k < len(buf) {
		return nil, err
	}
	cut := lastLine(buf)
	if cut == 0 && n < left || firstOver(buf, l.t.cfg.Cap) == 0 {
		a.Unread(n)
		l.long = &longLine{base: l.base} // the first line exceeds the budget or the cap
		return l.readLong(ctx, h, a, left)
	}
	return l.split(buf, cut, left)
}

// split takes the whole lines of buf, the first cut bytes. left is how many bytes the file has from the base on.
func (l *inspection) split(buf []byte, cut int, left int64) ([]byte, error) {
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
	l.walk.Add(lines)
	l.buildChunk(lines)
	if len(lines) == 0 && l.partial == int64(len(buf)) {
		l.offerProvisional(buf)
	}
	return lines, nil
}

// buildChunk builds the chunk if there is anything new: lines, or a rewind.
func (l *inspection) buildChunk(lines []byte) {
	if len(lines) == 0 && l.base == l.known.Cursor {
		return
	}
	l.beginChunk()
	l.chunk.Lines = lines
	l.chunk.Sealed = l.sealed
	l.endChunk(l.walk.Cursor(l.base.Generation), anchorOf(l.anchorBytes, lines))
}

// beginChunk makes an empty chunk at the base.
func (l *inspection) beginChunk() {
	l.chunk = &Chunk{File: l.known.File, Prev: l.known.Cursor, From: l.base, To: l.base, Live: l.live, Before: l.before}
	l.chunk.File.Stat = l.st
	l.rewound = l.base != l.known.Cursor
}

// endChunk closes the chunk at to.
func (l *inspection) endChunk(to Cursor, anchor uint64) {
	to.Anchor = anchor
	l.chunk.To, l.chunk.Marks = to, l.walk.marks
}

// confirm checks after reading that all bytes read were in the file at the same time. Unless the file only grew, and
// both ends of what was read are unchanged, the inspection starts again.
func (l *inspection) confirm(h *handle, lines []byte, a *arena) error {
	now, _, err := h.stat()
	if err != nil {
		return fmt.Errorf("read transcript: %w", err)
	}
	l.reached = !l.more
	if now != l.st {
		if now.Size <= l.st.Size || !now.sameFile(l.st) {
			return errChanged
		}
		l.verified, l.more = false, true
	}
	if l.chunk == nil {
		return l.fillTracked()
	}
	last := lines[max(0, len(lines)-AnchorSize):]
	if !holdsAt(h, l.anchorBytes, l.base.Offset-int64(len(l.anchorBytes)), a) ||
		!holdsAt(h, last, l.chunk.From.Offset+int64(len(lines)-len(last)), a) ||
		!holdsAt(h, l.chunk.Provisional, l.chunk.To.Offset, a) {
		return errChanged
	}
	return l.fillTracked()
}

// holdsAt reports whether the file has these bytes at an offset.
func holdsAt(h *handle, want []byte, off int64, a *arena) bool {
	for len(want) > 0 {
		n := min(len(want), len(a.Scratch))
		got := a.Scratch[:n]
		if k, _ := h.ReadAt(got, off); k < n || string(got) != string(want[:n]) {
			return false
		}
		want, off = want[n:], off+int64(n)
	}
	return true
}

// fillTracked fills in what to store with the chunk.
func (l *inspection) fillTracked() error {
	// A recent change time proves nothing: another write within the same clock tick would not change it.
	if l.t.age(l.st) < l.st.settleTime() {
		l.verified = false
	}
	if l.chunk == nil {
		return nil
	}
	tr := l.known
	tr.File, tr.Cursor = l.chunk.File, l.chunk.To
	tr.Provisional = Provisional{Length: int64(len(l.chunk.Provisional)), Hash: hashOf(l.chunk.Provisional)}
	tr.Gone, tr.Missed = 0, 0
	if l.verified && !l.more {
		tr.Verified = l.st
	}
	l.chunk.Tracked = tr
	return nil
}

// errChanged means that a file changed while it was read. The inspection starts again.
var errChanged = errors.New("file changed while it was read")

// decideRewind decides where reading continues: at the cursor if the bytes before it are unchanged, else, after a
// rewind, at the end of the unchanged prefix in a new generation.
func (l *inspection) decideRewind(ctx context.Context, h *handle, a *arena) error {
	l.base = l.known.Cursor
	proven := l.base.Offset == 0 || l.known.Verified == l.st || l.pastHolds && l.known.File.Stat == l.st
	last := l.known.File.Stat
	suspect := l.deep || !last.sameFile(l.st) || l.st.Size < l.base.Offset ||
		last != (Stat{}) && last != l.st && last.Size == l.st.Size && l.base.Offset <= maxSharedProof
	switch {
	case l.wishes.reread.open():
		l.base, proven = Cursor{Generation: l.known.Cursor.Generation + 1}, true
	case suspect && l.base.Offset > 0:
		if err := l.verifyPast(ctx, h, a); err != nil || l.deferred {
			return err
		}
		proven = true
	}
	g, err := readRegion(h, l.base, a)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if l.base == l.known.Cursor && (err != nil || !g.proves(l.base)) {
		if err := l.verifyPast(ctx, h, a); err != nil || l.deferred {
			return err
		}
		if proven = true; l.base == l.known.Cursor {
			if !l.deep {
				return errChanged // it is unchanged again: another process is writing there
			}
			l.base.Generation++ // the cursor is damaged, its marks are not
		}
		if g, err = readRegion(h, l.base, a); err != nil {
			return err
		}
	}
	l.base.Anchor = hashOf(g.anchor())
	l.anchorBytes = a.Prior[:copy(a.Prior, g.anchor())]
	l.walk.Start(l.base, g.segment(l.base))
	l.verified = proven
	return l.checkProvisional(h, a)
}

// verifyPast checks all bytes before the cursor, and after a rewind moves the base to the end of the unchanged prefix.
func (l *inspection) verifyPast(ctx context.Context, h *handle, a *arena) error {
	c := l.known.Cursor
	if c.Offset > maxSharedProof && !l.alone {
		l.deferred = true
		return nil
	}
	var marks []Mark
	if c.Mark > 0 {
		var err error
		if marks, err = l.t.cursors.Marks(ctx, l.known.File.ID); err != nil {
			return fmt.Errorf("load marks: %w", err)
		}
	}
	proof := prefixProof{From: h, Marks: marks, Cursor: c, Scratch: a.Scratch}
	last, all, err := proof.Unchanged(ctx)
	if err != nil {
		return err
	}
	if l.base = c; !all {
		l.base = Cursor{Offset: last.Offset, Line: last.Line, Mark: last.Offset, Generation: c.Generation + 1}
	}
	return nil
}

// Holds reports whether all bytes before c are still those that were read: it checks every Mark and the open segment
// against the file at path. For a file that is shorter now it returns false.
func Holds(path string, marks []Mark, c Cursor) (bool, error) {
	h, err := openHandle(path)
	if err != nil {
		return false, fmt.Errorf("check transcript: %w", err)
	}
	defer h.Close()
	before := prefixProof{From: h, Marks: marks, Cursor: c, Scratch: make([]byte, scratchSize)}
	_, all, err := before.Unchanged(context.Background())
	return all, err
}

// prefixRegion is the bytes before a cursor that every inspection reads: from its Mark, or AnchorSize bytes.
type prefixRegion struct {
	start int64
	bytes []byte
}

func readRegion(r io.ReaderAt, c Cursor, a *arena) (prefixRegion, error) {
	g := prefixRegion{start: min(c.Mark, max(0, c.Offset-AnchorSize))}
	g.bytes = a.Bytes(c.Offset - g.start)
	if len(g.bytes) == 0 {
		return g, nil
	}
	if n, err := r.ReadAt(g.bytes, g.start); n < len(g.bytes) {
		return g, err
	}
	return g, nil
}

// segment returns the bytes from the cursor's Mark on.
func (g prefixRegion) segment(c Cursor) []byte { return g.bytes[c.Mark-g.start:] }

// anchor returns the up to AnchorSize bytes before the cursor.
func (g prefixRegion) anchor() []byte { return g.bytes[max(0, len(g.bytes)-AnchorSize):] }

// proves reports whether the region is what was read when the cursor was stored.
func (g prefixRegion) proves(c Cursor) bool {
	return hashOf(g.anchor()) == c.Anchor && hashOf(g.segment(c)) == c.Segment
}
