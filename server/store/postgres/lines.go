package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"

	"github.com/ccship/ccship/server/store/lines"
	"github.com/ccship/ccship/server/store/sqlstore"
)

// writeLines writes the lines of a group, and their generations, in one round trip, after a look at what is there of
// lines that may be stored. Lines that the server has masked get their tokens again.
func (s *Store) writeLines(ctx context.Context, tx pgx.Tx, group []*lines.Job, done []stored) error {
	batch, again := &pgx.Batch{}, make([][]int64, len(group))
	d := queueing{dialect: dialect{tx}, batch: batch}
	for i, j := range group {
		x := &done[i]
		if x.Stream == 0 {
			continue
		}
		now, list, err := s.Known(ctx, d, x.Stream, x.Masked, j)
		if err == nil {
			again[i] = list
			x.written, err = s.lines.Put(ctx, d, x.place(j), x.To, now)
		}
		if err != nil {
			return err
		}
	}
	queueGenerations(batch, group, done)
	for i, j := range group {
		if done[i].Stream == 0 {
			continue
		}
		if err := s.Settle(ctx, d, done[i].place(j), j.Batch, again[i]); err != nil {
			return err
		}
	}
	if batch.Len() == 0 {
		return nil
	}
	return sqlstore.Wrap(tx.SendBatch(ctx, batch).Close(), "write lines")
}

// Scrub implements server.Masker. What PostgreSQL removed is overwritten when it vacuums.
func (s *Store) Scrub(ctx context.Context, _ func(done, total int64)) error {
	err := s.Index.Purge(ctx)
	if err == nil {
		_, err = s.pool.Exec(ctx, `DELETE FROM leases WHERE name = 'scrub'`)
	}
	return sqlstore.Wrap(err, "overwrite what was masked")
}

// Vacuum implements server.Retention. It has PostgreSQL use again what was removed, or with full give it back to the
// disk, which locks one table after the other. It passes over tables that are not of the role.
func (s *Store) Vacuum(ctx context.Context, full bool) (err error) {
	conn, err := pgx.ConnectConfig(ctx, s.direct)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	query := `VACUUM`
	if full {
		query = `VACUUM (FULL)`
	}
	for _, text := range []string{`SET statement_timeout = 0`, query} {
		if _, err := conn.Exec(ctx, text, pgx.QueryExecModeSimpleProtocol); err != nil {
			return fmt.Errorf("give space back: %w", err)
		}
	}
	return nil
}

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
