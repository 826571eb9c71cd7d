package tail

import (
	"testing"
	"time"
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
		if got := c.Jump(start.Add(tt.wall), 5+tt.mono); got != tt.want {
			t.Errorf("wall %v, monotonic %v: jump %v, want %v", tt.wall, tt.mono, got, tt.want)
		}
	}
}
