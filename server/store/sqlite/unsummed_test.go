package sqlite

import (
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

// TestUnsummed: a stream that sums do not have as it is stays marked while it is written, and is marked again by the
// first write after it was summed up.
func TestUnsummed(t *testing.T) {
	s := openTexts(t)
	summed := func() (n int64) {
		kit.Must(t, s.read.QueryRowContext(t.Context(), `SELECT summed FROM streams`).Scan(&n))
		return n
	}
	for i, want := range []int64{1, 3} {
		putText(t, s, 1, "s", int64(2*i), "a")
		kit.Check(t, summed() == -1, "after a write summed is %d", summed())
		if i > 0 {
			putText(t, s, 1, "s", 1, "b")
		}
		kit.Try(s.SumUp(t.Context())).Must(t)
		kit.Equal(t, "summed", summed(), want)
	}
}
