package postgres

import (
	"context"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store/sqlstore"
)

const usageWhen = `(timestamp '1970-01-01' +
  least(greatest(u.at + ?::bigint, -62135596800), 253402300799) * interval '1 second')`

var usageTerms = sqlstore.UsageTerms{
	Day:  `to_char(` + usageWhen + `, 'YYYY-MM-DD')`,
	Hour: `((extract(isodow FROM ` + usageWhen + `)::int - 1) * 24 + extract(hour FROM ` + usageWhen + `)::int)`,
}

// Usage implements server.Library.
func (s *Store) Usage(ctx context.Context, scope server.Scope, q server.UsageQuery) ([]server.UsageRow, error) {
	terms := usageTerms
	terms.Want = s.Want
	return sqlstore.Usage(ctx, dialect{s.pool}, terms, scope, q)
}
