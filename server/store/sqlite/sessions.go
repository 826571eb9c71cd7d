package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"

	"github.com/ccship/ccship/server/store/sqlstore"
)

// selectSession is the query of a sqlstore.Finder. SQLite keeps the order of a CROSS JOIN: the streams' order is the
// listing's.
var selectSession = `SELECT ` + sqlstore.SessionColumns + `
FROM streams s
CROSS JOIN epochs e ON e.owner = s.owner AND e.stream = s.id
  AND e.rank = (SELECT max(rank) FROM epochs WHERE owner = s.owner AND stream = s.id AND (? = '' OR name_key = ?))
CROSS JOIN generations g ON g.owner = e.owner AND g.stream = e.stream AND g.epoch = e.rank AND g.generation =
  (SELECT max(generation) FROM generations WHERE owner = e.owner AND stream = e.stream AND epoch = e.rank)
LEFT JOIN facts f ON f.owner = s.owner AND f.stream = s.id
`

// querier is a pool or one connection of it.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// jsonList returns a list as one value of a query.
func jsonList[T int64 | string](list []T) string {
	if list == nil {
		list = []T{}
	}
	b, _ := json.Marshal(list) // numbers and strings always can be
	return string(b)
}
