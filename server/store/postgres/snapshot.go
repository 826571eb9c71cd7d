package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ccship/ccship/server"

	"github.com/ccship/ccship/server/store/lines"

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
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		free()
		return nil, fmt.Errorf("open snapshot: %w", err)
	}
	snap := &pgSnapshot{conn: conn, free: free, held: s.held}
	if scope.All && ref.Stream != 0 && ref.Owner != 0 && ref.Epoch == "" {
		err = snap.loadStream(ctx, ref)
	} else {
		err = snap.load(ctx, scope, ref)
	}
	if err != nil {
		return nil, errors.Join(err, snap.Close())
	}
	return snap, nil
}

// pgSnapshot is a read transaction on a connection of its own. It sees one state until it ends. Reading a long stream
// may take as long as it takes.
type pgSnapshot struct {
	conn        *pgxpool.Conn
	free        func() // gives its slot back
	held        *lines.Lines
	epoch       int64
	session     server.Session
	epochs      []server.Epoch
	generations []server.Generation
}

const (
	beginSnapshot     = `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY`
	unboundTime       = `SELECT set_config('statement_timeout', '0', true)`
	selectEpochs      = `SELECT rank, name, first_seen FROM epochs WHERE owner = $1 AND stream = $2 ORDER BY rank DESC`
	selectGenerations = `
SELECT generation, rewound_to, end_line, end_offset, eof_newline, first_seen
FROM generations WHERE owner = $1 AND stream = $2 AND epoch = $3 ORDER BY generation`
	newestGenerations = `
SELECT generation, rewound_to, end_line, end_offset, eof_newline, first_seen FROM generations
WHERE owner = $1 AND stream = $2 AND epoch = (SELECT max(rank) FROM epochs WHERE owner = $1 AND stream = $2)
ORDER BY generation`
)

// load opens the snapshot of what a ref names.
func (n *pgSnapshot) load(ctx context.Context, scope server.Scope, ref server.Ref) error {
	batch := &pgx.Batch{}
	batch.Queue(beginSnapshot)
	batch.Queue(unboundTime)
	if err := n.conn.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("open snapshot: %w", err)
	}
	x, err := sqlstore.Resolve(ctx, dialect{n.conn}, scope, ref, sqlstore.WithLines(ref))
	if err != nil {
		return err
	}
	sql, args := numbered(selectSession+`WHERE s.id = ?`, []any{ref.Epoch, sqlstore.Key(ref.Epoch), x.Stream})
	if err := n.scanSession(ref)(n.conn.QueryRow(ctx, sql, args...)); err != nil {
		return err
	}
	rows, err := n.conn.Query(ctx, selectEpochs, n.session.Owner, n.session.ID)
	if err == nil {
		err = n.scanEpochs(rows)
	}
	if err != nil {
		return fmt.Errorf("read epochs: %w", err)
	}
	rows, err = n.conn.Query(ctx, selectGenerations, n.session.Owner, n.session.ID, n.epoch)
	if err == nil {
		err = n.scanGenerations(rows)
	}
	if err != nil {
		return fmt.Errorf("read generations: %w", err)
	}
	return nil
}

// loadStream opens the snapshot of a stream that is known by owner and id, in one round trip: derivers open one for
// each stream that is written.
func (n *pgSnapshot) loadStream(ctx context.Context, ref server.Ref) error {
	batch := &pgx.Batch{}
	batch.Queue(beginSnapshot)
	batch.Queue(unboundTime)
	sql, args := numbered(selectSession+`WHERE s.owner = ? AND s.id = ?`,
		[]any{"", sqlstore.Key(""), ref.Owner, ref.Stream})
	batch.Queue(sql, args...).QueryRow(n.scanSession(ref))
	batch.Queue(selectEpochs, ref.Owner, ref.Stream).Query(n.scanEpochs)
	batch.Queue(newestGenerations, ref.Owner, ref.Stream).Query(n.scanGenerations)
	if err := n.conn.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("open snapshot: %w", err)
	}
	return nil
}

func (n *pgSnapshot) scanSession(ref server.Ref) func(pgx.Row) error {
	return func(row pgx.Row) error {
		found, epoch, err := sqlstore.ScanSession(row)
		n.session, n.epoch = found.Session, epoch
		if err != nil {
			return fmt.Errorf("session %q: %w", ref.SessionID, translate(err))
		}
		return nil
	}
}

func (n *pgSnapshot) scanEpochs(rows pgx.Rows) (err error) {
	n.epochs, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (e server.Epoch, err error) {
		var first int64
		err = row.Scan(&e.Rank, &e.Name, &first)
		e.ID, e.First = e.Rank, time.UnixMicro(first).UTC()
		return e, err
	})
	return err
}

func (n *pgSnapshot) scanGenerations(rows pgx.Rows) (err error) {
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
	of := sqlstore.OwnedStream{Owner: n.session.Owner, Stream: n.session.ID}
	return sqlstore.ReadReplaced(ctx, dialect{n.conn}, sqlstore.EpochSpan{OwnedStream: of, Epoch: n.epoch, Span: s}, yield)
}

// Retired implements server.Snapshot.
func (n *pgSnapshot) Retired(ctx context.Context, s server.Span, hashes bool,
	yield func(*server.RetiredRun) error) error {
	at := n.at()
	at.Generation = s.Generation
	q := lines.RetiredQuery{RetiredPlace: lines.RetiredPlace(at), From: s.From, To: s.To, Hashes: hashes}
	return lines.ReadRetired(ctx, dialect{n.conn}, q, yield)
}

// Masked implements server.Snapshot.
func (n *pgSnapshot) Masked(ctx context.Context) ([]server.MaskedLine, error) {
	return lines.ListMasks(ctx, dialect{n.conn}, n.at())
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
