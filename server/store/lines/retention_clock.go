package lines

import (
	"sync"
	"time"
)

// mostForward is how far the clock may be ahead between two looks at it: behind a long weekend, or a laptop's sleep.
const mostForward = 3 * 24 * time.Hour

// clock is the time by which rules are applied that nobody looks at. A machine whose clock jumps years ahead would
// have them take everything: of a longer step, while the server runs, the clock counts only mostForward. Who applies
// rules by hand has seen what they take.
type clock struct {
	mu   sync.Mutex
	seen time.Time // the machine's clock at the last look; zero: there was none
	now  time.Time
}

// at is the time by which rules are applied when the machine's clock says now.
func (c *clock) at(now time.Time) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen.IsZero() {
		c.now = now
	} else {
		c.now = c.now.Add(min(max(now.Sub(c.seen), 0), mostForward))
	}
	if c.seen = now; c.now.After(now) {
		c.now = now
	}
	return c.now
}
