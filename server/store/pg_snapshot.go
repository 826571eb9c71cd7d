package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ccship/ccship/server"
)

// Open implements server.Catalog.
func (s *Postgres) Open(ctx context.Context, ref server.Ref) (server.Snapshot, error) {
	return s.View(ctx, server.Scope{All: true}, ref)
}

// View implements server.Library. It waits while too many snapshots are open.
func (s *Postgres) View(ctx context.Context, scope server.Scope, ref server.Ref) (server.Snapshot, error) {
	free, err := s.open.take(ctx, scope.User)
	if err != nil {
		return nil, err
	}
	snap, err := s.snapshot(ctx, free)
	if err != nil {
		free()
		return nil, fmt.Errorf("open snapshot: %w", err)
	}
	if err := snap.load(ctx, scope, ref); err != nil {
		return nil, errors.Join(err, snap.Close())
	}
	return snap, nil
}

// snapshot opens a transaction that sees one state until it ends, and calls free then. Reading a long stream may take
// as long as it takes.
func (s *Postgres) snapshot(ctx context.Context, free func()) (*pgSnapshot, error) {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	_, err = conn.Exec(ctx, `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL statement_timeout = 0`,
		pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		conn.Release()
		return nil, err
	}
	return &pgSnapshot{conn: conn, free: free}, nil
}

// pgSnapshot is a read transaction on a connection of its own.
type pgSnapshot struct {
	conn        *pgxpool.Conn
	free        func() // gives its place back
	epoch       int64
	session     server.Session
	epochs      []server.Epoch
	generations []server.Generation
}

func (n *pgSnapshot) load(ctx context.Context, scope server.Scope, ref server.Ref) error {
	x, err := resolve(ctx, pgDialect{n.conn}, scope, ref, lines(ref))
	if err != nil {
		return err
	}
	sql, args := numbered(pgSelectSession+`WHERE s.id = ?`, []any{ref.Epoch, key(ref.Epoch), x.Stream})
	found, epoch, err := scanSession(n.conn.QueryRow(ctx, sql, args...))
	n.session, n.epoch = found.Session, epoch
	if err != nil {
		return fmt.Errorf("session %q: %w", ref.SessionID, translatePg(err))
	}
	if err := cmp.Or(n.loadEpochs(ctx), n.loadGenerations(ctx)); err != nil {
		return fmt.Errorf("read epochs: %w", err)
	}
	return nil
}

func (n *pgSnapshot) loadEpochs(ctx context.Context) error {
	rows, err := n.conn.Query(ctx,
		`SELECT rank, name, first_seen FROM epochs WHERE stream = $1 ORDER BY rank DESC`, n.session.ID)
	if err != nil {
		return err
	}
	n.epochs, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (e server.Epoch, err error) {
		var first int64
		err = row.Scan(&e.Rank, &e.Name, &first)
		e.ID, e.First = e.Rank, time.UnixMicro(first).UTC()
		return e, err
	})
	return err
}

func (n *pgSnapshot) loadGenerations(ctx context.Context) error {
	rows, err := n.conn.Query(ctx, `
SELECT generation, rewound_to, end_line, end_offset, eof_newline, first_seen
FROM generations WHERE stream = $1 AND epoch = $2 ORDER BY generation`, n.session.ID, n.epoch)
	if err != nil {
		return err
	}
	n.generations, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (g server.Generation, err error) {
		var first int64
		err = row.Scan(&g.Number, &g.RewoundTo, &g.EndLine, &g.EndOffset, &g.EOFNewline, &first)
		g.First = time.UnixMicro(first).UTC()
		return g, err
	})
	return err
}

func (n *pgSnapshot) Session() server.Session          { return n.session }
func (n *pgSnapshot) Epochs() []server.Epoch           { return n.epochs }
func (n *pgSnapshot) Generations() []server.Generation { return n.generations }

// Count implements server.Snapshot.
func (n *pgSnapshot) Count(ctx context.Context, s server.Span) (lines, oversize int64, err error) {
	err = n.conn.QueryRow(ctx, `
SELECT count(*) FILTER (WHERE kind <> 2), count(*) FILTER (WHERE kind = 2) FROM lines
WHERE stream = $1 AND epoch = $2 AND generation = $3 AND line >= $4 AND line < $5`,
		n.session.ID, n.epoch, s.Generation, s.From, s.To).Scan(&lines, &oversize)
	if err != nil {
		return 0, 0, fmt.Errorf("count lines: %w", err)
	}
	return lines, oversize, nil
}

// Lines implements server.Snapshot. It asks for a page at a time: ending early drops one page, not the rest of the
// stream, and a slow reader keeps no query running.
func (n *pgSnapshot) Lines(ctx context.Context, s server.Span, yield func(server.Line) error) error {
	for {
		read, next, err := n.page(ctx, s, yield)
		if err != nil || read < pgPage {
			return err
		}
		s.From = next
	}
}

// Replaced implements server.Snapshot.
func (n *pgSnapshot) Replaced(ctx context.Context, s server.Span, yield func(server.Line, time.Time) error) error {
	return replaced(ctx, pgDialect{n.conn}, yield, `
WHERE stream = ? AND epoch = ? AND generation = ? AND line >= ? AND line < ?`,
		n.session.ID, n.epoch, s.Generation, s.From, s.To)
}

// pgPage is how many lines are asked for at once.
const pgPage = 500

// page yields up to pgPage lines of a span and answers where the next page begins.
func (n *pgSnapshot) page(ctx context.Context, s server.Span,
	yield func(server.Line) error) (read int, next int64, err error) {
	rows, err := n.conn.Query(ctx, `
SELECT line, kind, raw FROM lines
WHERE stream = $1 AND epoch = $2 AND generation = $3 AND line >= $4 AND line < $5 ORDER BY line LIMIT $6`,
		n.session.ID, n.epoch, s.Generation, s.From, s.To, pgPage)
	if err != nil {
		return 0, 0, fmt.Errorf("read lines: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var l server.Line
		var kind int16
		var raw pgRaw
		if err := rows.Scan(&l.Index, &kind, &raw); err != nil {
			return 0, 0, fmt.Errorf("read lines: %w", err)
		}
		l.Kind, l.Raw = server.Kind(kind), raw
		read, next = read+1, l.Index+1
		if err := yield(l); err != nil {
			return 0, 0, err
		}
	}
	if err := rows.Err(); err != nil {
		return 0, 0, fmt.Errorf("read lines: %w", err)
	}
	return read, next, nil
}

// pgRaw takes a line's bytes without copying them; they are valid until the next row.
type pgRaw []byte

// ScanBytes implements pgtype.BytesScanner.
func (r *pgRaw) ScanBytes(b []byte) error {
	*r = b
	return nil
}

// Close implements server.Snapshot.
func (n *pgSnapshot) Close() error {
	defer n.free()
	// When this fails the connection is broken, and the pool throws it away.
	_, _ = n.conn.Exec(context.Background(), `ROLLBACK`)
	n.conn.Release()
	return nil
}
