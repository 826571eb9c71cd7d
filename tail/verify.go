package tail

import (
	"errors"
	"fmt"
	"io"

	"github.com/cespare/xxhash/v2"
)

// VerifyPrefix reports whether the bytes of r, from its first, are those that were read before c: it checks every mark
// before it and what follows the last. last is the Mark up to which they are, whatever the answer. More bytes than c
// has do not matter, fewer do. It reads a stream; prefixProof reads a file at offsets, with a pace. An error is r's.
func VerifyPrefix(r io.Reader, marks []Mark, c Cursor) (last Mark, all bool, err error) {
	buf := make([]byte, scratchSize)
	for _, m := range marks {
		if m.Offset > c.Offset {
			break
		}
		h, err := hashNext(r, buf, m.Offset-last.Offset)
		if err != nil || h != m.Hash {
			return last, false, ignoreCut(err)
		}
		last = m
	}
	if last.Offset != c.Mark {
		return last, false, nil
	}
	h, err := hashNext(r, buf, c.Offset-last.Offset)
	if err != nil {
		return last, false, ignoreCut(err)
	}
	return last, h == c.Segment, nil
}

// hashNext reads and hashes n bytes. io.ErrUnexpectedEOF: there are fewer.
func hashNext(r io.Reader, buf []byte, n int64) (uint64, error) {
	if n == 0 {
		return 0, nil
	}
	var d xxhash.Digest
	d.Reset()
	for n > 0 {
		part := buf[:min(int64(len(buf)), n)]
		if _, err := io.ReadFull(r, part); err != nil {
			return 0, err
		}
		d.Write(part)
		n -= int64(len(part))
	}
	return d.Sum64(), nil
}

// ignoreCut makes an end that came too early a mere difference.
func ignoreCut(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("check transcript: %w", err)
	}
	return nil
}
