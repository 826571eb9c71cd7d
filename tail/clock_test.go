package tail

import (
	"fmt"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

func TestClock(t *testing.T) {
	start := time.Date(2026, 8, 20, 9, 0, 0, 0, time.UTC)
	for _, tt := range []struct{ wall, mono, want time.Duration }{
		{time.Second, time.Second, 0},
		{0, 4 * time.Second, 0},
		{time.Hour, time.Second, time.Hour - time.Second},
		{-time.Hour, time.Second, -time.Hour - time.Second},
		{time.Hour, time.Hour, 0},
	} {
		c := clock{Wall: start, Mono: 5}
		kit.Equal(t, fmt.Sprintf("wall %v, monotonic %v: jump", tt.wall, tt.mono), c.Jump(start.Add(tt.wall), 5+tt.mono),
			tt.want)
	}
}
