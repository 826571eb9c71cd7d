package tail

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/iotest"

	"github.com/ccship/ccship/e2e/kit"
)

// TestLineReader: lines of any length, below and above the buffer and the cap, are read as they are.
func TestLineReader(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 4))
	for range 300 {
		limit := []int64{0, 1, 15, 16, 17, 40, 1000}[rng.IntN(7)]
		var file []byte
		var want [][]byte
		for range rng.IntN(8) {
			line := bytes.Repeat([]byte{'a' + byte(rng.IntN(3))}, []int{0, 1, 14, 15, 16, 17, 39, 40, 41, 100, 3000}[rng.IntN(11)])
			file, want = append(append(file, line...), '\n'), append(want, line)
		}
		half := len(want) > 0 && rng.IntN(2) == 0 && len(want[len(want)-1]) > 0
		if half {
			file = file[:len(file)-1]
		}
		keep, offset := rng.IntN(2) == 0, int64(0)
		r := NewLineReader(iotest.OneByteReader(bytes.NewReader(file)), limit, []int64{0, int64(len(file)), 1 << 20}[rng.IntN(3)])
		r.Keep = keep
		for i, line := range want {
			l, err := r.Next()
			over := int64(len(line)) > limit
			whole := append(slices.Clone(line), '\n')
			switch {
			case err != nil || l.Index != int64(i) || l.Offset != offset || l.Length != int64(len(line)) || l.Oversize != over ||
				l.Newline == (half && i == len(want)-1):
				t.Fatalf("line %d of %d bytes, cap %d: %+v, %v", i, len(line), limit, l, err)
			case over && (l.SHA256 != sha256.Sum256(line) || l.Hash != sha256.Sum256(whole)):
				t.Fatalf("line %d: wrong digest", i)
			case (!over || keep) && (!bytes.Equal(l.Raw, line) || !bytes.Equal(l.Whole, file[offset:min(offset+int64(len(whole)), int64(len(file)))])):
				t.Fatalf("line %d: %q and %q, want %q", i, l.Raw, l.Whole, line)
			case over && !keep && (l.Raw != nil || l.Whole != nil):
				t.Fatalf("line %d is kept", i)
			}
			offset += int64(len(whole))
		}
		_, err := r.Next()
		kit.Require(t, errors.Is(err, io.EOF), "%v", err)
	}
	broken := errors.New("broken")
	r := NewLineReader(io.MultiReader(bytes.NewReader([]byte("a\nb")), iotest.ErrReader(broken)), 9, 9)
	_, err := r.Next()
	kit.Check(t, err == nil, "%v", err)
	l, err := r.Next()
	kit.Check(t, errors.Is(err, broken), "%+v, %v", l, err)
}
