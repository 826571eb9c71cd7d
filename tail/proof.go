package tail

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/cespare/xxhash/v2"
)

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
