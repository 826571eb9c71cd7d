package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/ccship/ccship/server"
)

// Open implements server.Catalog.
func (s *SQLite) Open(ctx context.Context, ref server.Ref) (server.Snapshot, error) {
	return s.View(ctx, server.Scope{All: true}, ref)
}

// View implements server.Library. It waits while too many snapshots are open.
func (s *SQLite) View(ctx context.Context, scope server.Scope, ref server.Ref) (server.Snapshot, error) {
	free, err := s.open.take(ctx, scope.User)
	if err != nil {
		return nil, err
	}
	conn, err := s.read.Conn(ctx)
	if err != nil {
		free()
		return nil, fmt.Errorf("open snapshot: %w", err)
	}
	snap := &snapshot{conn: conn, free: free}
	// A read transaction sees one state until it ends: what WAL is for.
	if _, err := conn.ExecContext(ctx, "BEGIN"); err != nil {
		return nil, errors.Join(fmt.Errorf("open snapshot: %w", err), snap.Close())
	}
	if err := snap.load(ctx, scope, ref); err != nil {
		return nil, errors.Join(err, snap.Close())
	}
	return snap, nil
}

// snapshot is a read transaction on a connection of its own.
type snapshot struct {
	conn        *sql.Conn
	free        func() // gives its place back
	epoch       int64
	session     server.Session
	epochs      []server.Epoch
	generations []server.Generation
}

func (n *snapshot) load(ctx context.Context, scope server.Scope, ref server.Ref) error {
	x, err := resolve(ctx, sqliteDialect{n.conn}, scope, ref, lines(ref))
	if err != nil {
		return err
	}
	row := n.conn.QueryRowContext(ctx, selectSession+`WHERE s.id = ?`, ref.Epoch, ref.Epoch, x.Stream)
	found, epoch, err := scanSession(row)
	n.session, n.epoch = found.Session, epoch
	if err != nil {
		return fmt.Errorf("session %q: %w", ref.SessionID, translate(err))
	}
	if err := cmp.Or(n.loadEpochs(ctx), n.loadGenerations(ctx)); err != nil {
		return fmt.Errorf("read epochs: %w", err)
	}
	return nil
}

func (n *snapshot) loadEpochs(ctx context.Context) error {
	rows, err := n.conn.QueryContext(ctx,
		`SELECT id, name, rank, first_seen FROM epochs WHERE stream = ? ORDER BY rank DESC`, n.session.ID)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var e server.Epoch
		var first int64
		if err := rows.Scan(&e.ID, &e.Name, &e.Rank, &first); err != nil {
			return err
		}
		e.First = time.UnixMicro(first).UTC()
		n.epochs = append(n.epochs, e)
	}
	return rows.Err()
}

func (n *snapshot) loadGenerations(ctx context.Context) error {
	rows, err := n.conn.QueryContext(ctx, `
SELECT generation, rewound_to, end_line, end_offset, eof_newline, first_seen
FROM generations WHERE epoch = ? ORDER BY generation`, n.epoch)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var g server.Generation
		var first int64
		if err := rows.Scan(&g.Number, &g.RewoundTo, &g.EndLine, &g.EndOffset, &g.EOFNewline, &first); err != nil {
			return err
		}
		g.First = time.UnixMicro(first).UTC()
		n.generations = append(n.generations, g)
	}
	return rows.Err()
}

func (n *snapshot) Session() server.Session          { return n.session }
func (n *snapshot) Epochs() []server.Epoch           { return n.epochs }
func (n *snapshot) Generations() []server.Generation { return n.generations }

// Count implements server.Snapshot.
func (n *snapshot) Count(ctx context.Context, s server.Span) (lines, oversize int64, err error) {
	err = n.conn.QueryRowContext(ctx, `
SELECT count(*) - coalesce(sum(kind = 2), 0), coalesce(sum(kind = 2), 0) FROM lines
WHERE epoch = ? AND generation = ? AND line >= ? AND line < ?`, n.epoch, s.Generation, s.From, s.To).
		Scan(&lines, &oversize)
	if err != nil {
		return 0, 0, fmt.Errorf("count lines: %w", err)
	}
	return lines, oversize, nil
}

// Lines implements server.Snapshot.
func (n *snapshot) Lines(ctx context.Context, s server.Span, yield func(server.Line) error) error {
	rows, err := n.conn.QueryContext(ctx, `
SELECT line, kind, raw FROM lines
WHERE epoch = ? AND generation = ? AND line >= ? AND line < ? ORDER BY line`, n.epoch, s.Generation, s.From, s.To)
	if err != nil {
		return fmt.Errorf("read lines: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var l server.Line
		var kind int64
		var raw sql.RawBytes
		if err := rows.Scan(&l.Index, &kind, &raw); err != nil {
			return fmt.Errorf("read lines: %w", err)
		}
		l.Kind, l.Raw = server.Kind(kind), raw
		if err := yield(l); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("read lines: %w", err)
	}
	return nil
}

// Replaced implements server.Snapshot.
func (n *snapshot) Replaced(ctx context.Context, s server.Span, yield func(server.Line, time.Time) error) error {
	return replaced(ctx, sqliteDialect{n.conn}, yield, `
WHERE epoch = ? AND generation = ? AND line >= ? AND line < ?`, n.epoch, s.Generation, s.From, s.To)
}

// Close implements server.Snapshot.
func (n *snapshot) Close() error {
	defer n.free()
	// Fails when BEGIN did; a connection that is not fit for the next one is found bad there.
	_, _ = n.conn.ExecContext(context.Background(), "ROLLBACK")
	if err := n.conn.Close(); err != nil {
		return fmt.Errorf("close snapshot: %w", err)
	}
	return nil
}
