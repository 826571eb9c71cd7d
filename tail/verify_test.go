package tail

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"testing"
	"testing/iotest"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/cespare/xxhash/v2"
)

// Verify sees each changed byte before the cursor, and says up to which mark the bytes are still the same.
func TestVerify(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	data := make([]byte, 700_000)
	for i := range data {
		data[i] = byte(rng.Uint32())
	}
	ends := []int64{70_000, 200_001, 640_000}
	var marks []Mark
	last := int64(0)
	for i, end := range ends {
		marks = append(marks, Mark{Offset: end, Line: int64(i+1) * 10, Hash: xxhash.Sum64(data[last:end])})
		last = end
	}
	c := Cursor{Offset: 690_000, Mark: last, Segment: xxhash.Sum64(data[last:690_000])}
	_, all, err := VerifyPrefix(iotest.HalfReader(bytes.NewReader(data)), marks, c)
	kit.Check(t, all && err == nil, "the very bytes: %v, %v", all, err)
	for at, want := range map[int64]int64{0: 0, 69_999: 0, 70_000: 70_000, 200_000: 70_000, 639_999: 200_001, 640_000: 640_000, 689_999: 640_000} {
		bad := bytes.Clone(data)
		bad[at] ^= 1
		m, all, err := VerifyPrefix(bytes.NewReader(bad), marks, c)
		kit.Check(t, !all && err == nil && m.Offset == want, "byte %d changed: %v, %v, the same up to %d, want %d", at,
			all, err, m.Offset, want)
	}
	_, all, err = VerifyPrefix(bytes.NewReader(data[:689_999]), marks, c)
	kit.Check(t, !all && err == nil, "cut short: %v, %v", all, err)
	data[695_000] ^= 1
	_, all, _ = VerifyPrefix(bytes.NewReader(data), marks, c)
	kit.Check(t, all, "what follows the cursor matters")
	broken := errors.New("broken")
	_, all, err = VerifyPrefix(io.MultiReader(bytes.NewReader(data[:1000]), iotest.ErrReader(broken)), marks, c)
	kit.Check(t, !all && errors.Is(err, broken), "a broken reader: %v, %v", all, err)
	_, all, err = VerifyPrefix(bytes.NewReader(nil), nil, Cursor{})
	kit.Check(t, all && err == nil, "nothing read: %v, %v", all, err)
}
