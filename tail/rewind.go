package tail

import (
	"context"
	"errors"
	"fmt"
	"io"
)

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
