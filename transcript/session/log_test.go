package session

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

// TestForget: the oldest go, visible or hidden ones as asked, and the others keep their order, whatever lies between them.
func TestForget(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		var l Log
		for i := range rng.IntN(12) {
			l.messages = append(l.messages, logEntry{Message: Message{Line: int64(i)}, hidden: int64(rng.IntN(2))})
		}
		n, hidden := rng.IntN(8)-1, rng.IntN(2) == 0
		var want []int64
		left := n
		for _, m := range l.messages {
			if left > 0 && (m.hidden != 0) == hidden {
				left--
				continue
			}
			want = append(want, m.Line)
		}
		l.forget(n, hidden)
		var got []int64
		for _, m := range l.messages {
			got = append(got, m.Line)
		}
		kit.Require(t, slices.Equal(got, want), "forgetting %d, hidden %t, keeps %v, want %v", n, hidden, got, want)
	}
}
