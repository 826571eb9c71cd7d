package derive

import (
	"testing"
	"time"
)

// TestPause: the first line after some quiet is derived at once; without a pause between lines there are at most five
// rounds a second, and cheap ones take a small share of the time.
func TestPause(t *testing.T) {
	const ms = time.Millisecond
	for _, tt := range []struct{ took, since, want time.Duration }{
		{0, time.Hour, gatherLeast},
		{100 * ms, time.Hour, gatherLeast},
		{time.Second, 0, gather},
		{time.Second, 150 * ms, gather - 150*ms},
		{4 * ms, 0, 60 * ms},
		{4 * ms, 55 * ms, gatherLeast},
	} {
		if got := pause(tt.took, tt.since); got != tt.want {
			t.Errorf("a round of %v that ended %v ago: %v, want %v", tt.took, tt.since, got, tt.want)
		}
	}
}
