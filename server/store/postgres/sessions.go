package postgres

import (
	"strconv"

	"github.com/ccship/ccship/server/store/sqlstore"
)

// numbered turns a query's question marks, which are nothing but places of values, into PostgreSQL's $1, $2 …, and
// makes the values fit for it.
func numbered(sql string, args []any) (string, []any) {
	out := make([]byte, 0, len(sql)+2*len(args))
	n := int64(0)
	for i := range len(sql) {
		switch c := sql[i]; c {
		case '?':
			n++
			out = strconv.AppendInt(append(out, '$'), n, 10)
		default:
			out = append(out, c)
		}
	}
	return string(out), sqlstore.CleanValues(args)
}

// selectSession is the query of a sqlstore.Finder.
var selectSession = `SELECT ` + sqlstore.SessionColumns + `
FROM streams s
CROSS JOIN LATERAL (SELECT rank, name FROM epochs o
  WHERE o.owner = s.owner AND o.stream = s.id AND (?::text = '' OR name_key = ?) ORDER BY rank DESC LIMIT 1) e
CROSS JOIN LATERAL (SELECT * FROM generations n
  WHERE n.owner = s.owner AND n.stream = s.id AND n.epoch = e.rank ORDER BY generation DESC LIMIT 1) g
LEFT JOIN facts f ON f.owner = s.owner AND f.stream = s.id
`
