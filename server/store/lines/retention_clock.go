package lines

import (
	"context"
	"fmt"
	"time"

	"github.com/ccship/ccship/server/store/sqlstore"
)

// mostForward is how far the clock of rules moves between two applications: behind a long weekend, or a laptop's sleep.
const mostForward = 3 * 24 * time.Hour

// clock returns the time that unattended rules use. It is now, but at most mostForward after the last application
// (before the first: after the newest line): a machine whose clock is years ahead must not drop everything. A long stop
// is caught up with in some days. By hand, now is used: a person has seen the counts.
func (p *Policy) clock(ctx context.Context, now time.Time) (time.Time, error) {
	last, err := sqlstore.Number(ctx, p.reader, `SELECT coalesce((SELECT until FROM leases WHERE name = 'retention clock'),
  (SELECT max(last_received) FROM streams), CAST(? AS bigint))`, sqlstore.Micros(now))
	if err != nil {
		return now, fmt.Errorf("look when rules were applied: %w", err)
	}
	if most := sqlstore.Moment(last).Add(mostForward); most.Before(now) {
		return most, nil
	}
	return now, nil
}
