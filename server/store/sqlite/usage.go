package sqlite

import (
	"context"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store/sqlstore"
)

const usageWhen = `min(max(u.at + ?, -62135596800), 253402300799)`

var usageTerms = sqlstore.UsageTerms{
	Day: `strftime('%Y-%m-%d', ` + usageWhen + `, 'unixepoch')`,
	// 1970 began on a Thursday.
	Hour: `((((` + usageWhen + ` - (` + usageWhen + ` % 3600 + 3600) % 3600) / 3600 + 72) % 168 + 168) % 168)`,
}

// Usage implements server.Library.
func (s *Store) Usage(ctx context.Context, scope server.Scope, q server.UsageQuery) ([]server.UsageRow, error) {
	terms := usageTerms
	terms.Want = s.Want
	return sqlstore.Usage(ctx, dialect{s.read}, terms, scope, q)
}
