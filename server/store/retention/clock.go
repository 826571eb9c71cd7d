package retention

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/ccship/ccship/server/store/sqlstore"
)

// mostForward is how far the clock may be ahead between two looks at it: behind a long weekend, or a laptop's sleep.
const mostForward = 3 * 24 * time.Hour

// clock is the time by which rules are applied that nobody looks at. A machine whose clock jumps years ahead would have
// them take everything: of a longer step the clock counts only mostForward. It begins at the newest line that was there
// when the store was opened. Somebody who applies rules by hand has seen what they take.
type clock struct {
	mu   sync.Mutex
	seen time.Time // the machine's clock at the last look; zero: there was no line
	now  time.Time
}

// Begin notes when the newest line came. It is called before any other comes.
func (p *Policy) Begin(ctx context.Context) error {
	newest := int64(0)
	err := p.reader.Query(ctx, `SELECT coalesce(max(last_received), 0) FROM streams`, nil,
		func(row sqlstore.Scanner) error { return row.Scan(&newest) })
	if err != nil {
		return fmt.Errorf("look for the newest line: %w", err)
	}
	if p.clock = new(clock); newest > 0 {
		p.clock.seen = sqlstore.Moment(newest)
		p.clock.now = p.clock.seen
	}
	return nil
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
