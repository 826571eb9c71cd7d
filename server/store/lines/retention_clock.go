package lines

import (
	"context"
	"fmt"
	"time"

	"github.com/ccship/ccship/server/store/sqlstore"
)

// mostForward is how far the clock of rules moves between two applications: behind a long weekend, or a laptop's sleep.
const mostForward = 3 * 24 * time.Hour

// clock is the time by which rules are applied that nobody looks at, when the machine's clock says now. A machine whose
// clock is years ahead would have them take everything: from the last application, or before the first one from the
// newest line, the time moves by no more than mostForward, so that a long stop is caught up with in some days. Who
// applies rules by hand has seen what they take.
func (p *Policy) clock(ctx context.Context, now time.Time) (time.Time, error) {
	last := int64(0)
	err := p.reader.Query(ctx, `SELECT coalesce((SELECT until FROM leases WHERE name = 'retention clock'),
  (SELECT max(last_received) FROM streams), CAST(? AS bigint))`, []any{sqlstore.Micros(now)},
		func(row sqlstore.Scanner) error { return row.Scan(&last) })
	if err != nil {
		return now, fmt.Errorf("look when rules were applied: %w", err)
	}
	if most := sqlstore.Moment(last).Add(mostForward); most.Before(now) {
		return most, nil
	}
	return now, nil
}
