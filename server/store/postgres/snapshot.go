package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store/lines"
	"github.com/ccship/ccship/server/store/masks"
	"github.com/ccship/ccship/server/store/retired"
	"github.com/ccship/ccship/server/store/sqlstore"
)

// Open implements server.Catalog.
func (s *Store) Open(ctx context.Context, ref server.Ref) (server.Snapshot, error) {
	return s.View(ctx, server.Scope{All: true}, ref)
}

// View implements server.Library. It waits while too many snapshots are open.
func (s *Store) View(ctx context.Context, scope server.Scope, ref server.Ref) (server.Snapshot, error) {
	free, err := s.open.Take(ctx, scope.User)
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
func (s *Store) snapshot(ctx context.Context, free func()) (*pgSnapshot, error) {
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
	return &pgSnapshot{conn: conn, free: free, held: s.held}, nil
}

// pgSnapshot is a read transaction on a connection of its own.
type pgSnapshot struct {
	conn        *pgxpool.Conn
	free        func() // gives its place back
	held        *lines.Lines
	epoch       int64
	session     server.Session
	epochs      []server.Epoch
	generations []server.Generation
}

func (n *pgSnapshot) load(ctx context.Context, scope server.Scope, ref server.Ref) error {
	x, err := sqlstore.Resolve(ctx, dialect{n.conn}, scope, ref, sqlstore.WithLines(ref))
	if err != nil {
		return err
	}
	sql, args := numbered(pgSelectSession+`WHERE s.id = ?`, []any{ref.Epoch, sqlstore.Key(ref.Epoch), x.Stream})
	found, epoch, err := sqlstore.ScanSession(n.conn.QueryRow(ctx, sql, args...))
	n.session, n.epoch = found.Session, epoch
	if err != nil {
		return fmt.Errorf("session %q: %w", ref.SessionID, translate(err))
	}
	if err := cmp.Or(n.loadEpochs(ctx), n.loadGenerations(ctx)); err != nil {
		return fmt.Errorf("read epochs: %w", err)
	}
	return nil
}

func (n *pgSnapshot) loadEpochs(ctx context.Context) error {
	rows, err := n.conn.Query(ctx,
		`SELECT rank, name, first_seen FROM epochs WHERE owner = $1 AND stream = $2 ORDER BY rank DESC`,
		n.session.Owner, n.session.ID)
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
FROM generations WHERE owner = $1 AND stream = $2 AND epoch = $3 ORDER BY generation`,
		n.session.Owner, n.session.ID, n.epoch)
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
	return n.held.Count(ctx, dialect{n.conn}, n.at(), s)
}

// Lines implements server.Snapshot.
func (n *pgSnapshot) Lines(ctx context.Context, s server.Span, yield func(server.Line) error) error {
	return n.held.Read(ctx, dialect{n.conn}, n.at(), s, yield)
}

// at is where its lines are, but for the generation.
func (n *pgSnapshot) at() lines.Place {
	return lines.Place{Owner: n.session.Owner, Stream: n.session.ID, Epoch: n.epoch}
}

// Replaced implements server.Snapshot.
func (n *pgSnapshot) Replaced(ctx context.Context, s server.Span, yield func(server.Line, time.Time) error) error {
	return sqlstore.ReadReplaced(ctx, dialect{n.conn}, yield, `
WHERE owner = ? AND stream = ? AND epoch = ? AND generation = ? AND line >= ? AND line < ?`,
		n.session.Owner, n.session.ID, n.epoch, s.Generation, s.From, s.To)
}

// Retired implements server.Snapshot.
func (n *pgSnapshot) Retired(ctx context.Context, s server.Span, hashes bool,
	yield func(*server.RetiredRun) error) error {
	at := n.at()
	at.Generation = s.Generation
	q := retired.Query{Place: retired.Place(at), From: s.From, To: s.To, Hashes: hashes}
	return retired.Read(ctx, dialect{n.conn}, q, yield)
}

// Masked implements server.Snapshot.
func (n *pgSnapshot) Masked(ctx context.Context) ([]server.MaskedLine, error) {
	return masks.List(ctx, dialect{n.conn}, n.at())
}

// CopiedFrom implements server.Snapshot.
func (n *pgSnapshot) CopiedFrom(ctx context.Context) (string, error) {
	return sqlstore.CopiedFrom(ctx, dialect{n.conn}, &n.session)
}

// Folded implements server.Snapshot.
func (n *pgSnapshot) Folded(ctx context.Context) (p server.Position, state []byte, err error) {
	err = n.conn.QueryRow(ctx, `SELECT epoch, generation,
  CASE WHEN state_line < 0 THEN line ELSE state_line END, state FROM folds
WHERE owner = $1 AND stream = $2 AND epoch = $3`, n.session.Owner, n.session.ID, n.epoch).
		Scan(&p.Epoch, &p.Generation, &p.Line, &state)
	if errors.Is(err, pgx.ErrNoRows) {
		return server.Position{}, nil, nil
	}
	if err != nil {
		return server.Position{}, nil, fmt.Errorf("read what is derived: %w", err)
	}
	return p, state, nil
}

// Close implements server.Snapshot.
func (n *pgSnapshot) Close() error {
	defer n.free()
	// When this fails the connection is broken, and the pool throws it away.
	_, _ = n.conn.Exec(context.Background(), `ROLLBACK`)
	n.conn.Release()
	return nil
}
