package tail

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/cespare/xxhash/v2"
)

// errChanged says that the bytes of a file moved while they were read; the look starts again.
var errChanged = errors.New("file changed while it was read")

// Holds says whether the bytes before c are still those that were read, all of them: every Mark and the open
// segment is checked against the file at path. A file that is shorter by now does not hold.
func Holds(path string, marks []Mark, c Cursor) (bool, error) {
	h, err := openHandle(path)
	if err != nil {
		return false, fmt.Errorf("check transcript: %w", err)
	}
	defer h.Close()
	_, all, err := unchanged(context.Background(), proof{r: h, marks: marks, cursor: c, scratch: make([]byte, scratchSize)})
	return all, err
}

// proof is what unchanged needs to know.
type proof struct {
	r       io.ReaderAt
	marks   []Mark
	cursor  Cursor
	scratch []byte
	pace    func(n int) error // called after every n bytes read; nil: as fast as it goes
}

// unchanged finds the last Mark before which every byte is still what was read, or the zero Mark, and whether the
// bytes from there to the cursor are, too.
func unchanged(ctx context.Context, p proof) (last Mark, all bool, err error) {
	for _, m := range p.marks {
		if m.Offset > p.cursor.Offset {
			break // never stored so; it could prove nothing about this cursor
		}
		h, err := p.hash(ctx, last.Offset, m.Offset)
		if err != nil || h != m.Hash {
			return last, false, ignoreShort(err)
		}
		last = m
	}
	if last.Offset != p.cursor.Mark {
		return last, false, nil // the marks and the cursor were not stored together: trust what is proven
	}
	h, err := p.hash(ctx, last.Offset, p.cursor.Offset)
	if err != nil {
		return last, false, ignoreShort(err)
	}
	return last, h == p.cursor.Segment, nil
}

// hash reads and hashes the bytes between two offsets. io.EOF: the file ends before.
func (p *proof) hash(ctx context.Context, from, to int64) (uint64, error) {
	if from == to {
		return 0, nil
	}
	var d xxhash.Digest
	d.Reset()
	for from < to {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		n, err := p.r.ReadAt(p.scratch[:min(int64(len(p.scratch)), to-from)], from)
		if n == 0 && err != nil {
			return 0, err
		}
		d.Write(p.scratch[:n])
		from += int64(n)
		if p.pace == nil {
			continue
		}
		if err := p.pace(n); err != nil {
			return 0, err
		}
	}
	return d.Sum64(), nil
}

// ignoreShort makes a file that is too short one that merely differs.
func ignoreShort(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// region is the bytes before a cursor that every look reads: from its Mark, or from AnchorSize before it.
type region struct {
	start int64
	bytes []byte
}

func readRegion(r io.ReaderAt, c Cursor, a *arena) (region, error) {
	g := region{start: min(c.Mark, max(0, c.Offset-AnchorSize))}
	g.bytes = a.room(c.Offset - g.start)
	if len(g.bytes) == 0 {
		return g, nil
	}
	if n, err := r.ReadAt(g.bytes, g.start); n < len(g.bytes) {
		return g, err
	}
	return g, nil
}

// segment is the bytes from the cursor's Mark on.
func (g region) segment(c Cursor) []byte { return g.bytes[c.Mark-g.start:] }

// anchor is the up to AnchorSize bytes before the cursor.
func (g region) anchor() []byte { return g.bytes[max(0, len(g.bytes)-AnchorSize):] }

// proves says whether the region is what was read when the cursor was there.
func (g region) proves(c Cursor) bool {
	return sum(g.anchor()) == c.Anchor && sum(g.segment(c)) == c.Segment
}
