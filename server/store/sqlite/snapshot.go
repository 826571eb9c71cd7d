package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

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
	place, number := free, s.numbers.take()
	free = func() { number(); place() }
	conn, err := s.read.Conn(ctx)
	if err != nil {
		free()
		return nil, fmt.Errorf("open snapshot: %w", err)
	}
	snap := &snapshot{conn: conn, db: brief{conn}, free: free, held: s.held}
	// A read transaction sees one state until it ends: what WAL is for.
	if _, err := snap.db.ExecContext(ctx, "BEGIN"); err != nil {
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
	db          brief
	free        func() // gives its slot back
	held        *lines.Lines
	epoch       int64
	session     server.Session
	epochs      []server.Epoch
	generations []server.Generation
}

func (n *snapshot) load(ctx context.Context, scope server.Scope, ref server.Ref) error {
	x, err := sqlstore.Resolve(ctx, dialect{n.db}, scope, ref, sqlstore.WithLines(ref))
	if err != nil {
		return err
	}
	row := n.db.QueryRowContext(ctx, selectSession+`WHERE s.id = ?`, ref.Epoch, sqlstore.Key(ref.Epoch), x.Stream)
	found, epoch, err := sqlstore.ScanSession(row)
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
	rows, err := n.db.QueryContext(ctx,
		`SELECT rank, name, first_seen FROM epochs WHERE owner = ? AND stream = ? ORDER BY rank DESC`,
		n.session.Owner, n.session.ID)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var e server.Epoch
		var first int64
		if err := rows.Scan(&e.Rank, &e.Name, &first); err != nil {
			return err
		}
		e.ID, e.First = e.Rank, time.UnixMicro(first).UTC()
		n.epochs = append(n.epochs, e)
	}
	return rows.Err()
}

func (n *snapshot) loadGenerations(ctx context.Context) error {
	rows, err := n.db.QueryContext(ctx, `
SELECT generation, rewound_to, end_line, end_offset, eof_newline, first_seen
FROM generations WHERE owner = ? AND stream = ? AND epoch = ? ORDER BY generation`, n.session.Owner, n.session.ID,
		n.epoch)
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
	return n.held.Count(ctx, dialect{n.db}, n.at(), s)
}

// Lines implements server.Snapshot.
func (n *snapshot) Lines(ctx context.Context, s server.Span, yield func(server.Line) error) error {
	return n.held.Read(ctx, dialect{n.db}, n.at(), s, yield)
}

// at is where its lines are, but for the generation.
func (n *snapshot) at() lines.Place {
	return lines.Place{Owner: n.session.Owner, Stream: n.session.ID, Epoch: n.epoch}
}

// Replaced implements server.Snapshot.
func (n *snapshot) Replaced(ctx context.Context, s server.Span, yield func(server.Line, time.Time) error) error {
	of := sqlstore.OwnedStream{Owner: n.session.Owner, Stream: n.session.ID}
	return sqlstore.ReadReplaced(ctx, dialect{n.db}, sqlstore.EpochSpan{OwnedStream: of, Epoch: n.epoch, Span: s}, yield)
}

// Retired implements server.Snapshot.
func (n *snapshot) Retired(ctx context.Context, s server.Span, hashes bool,
	yield func(*server.RetiredRun) error) error {
	at := n.at()
	at.Generation = s.Generation
	q := lines.RetiredQuery{RetiredPlace: lines.RetiredPlace(at), From: s.From, To: s.To, Hashes: hashes}
	return lines.ReadRetired(ctx, dialect{n.db}, q, yield)
}

// Masked implements server.Snapshot.
func (n *snapshot) Masked(ctx context.Context) ([]server.MaskedLine, error) {
	return lines.ListMasks(ctx, dialect{n.db}, n.at())
}

// Folded implements server.Snapshot.
func (n *snapshot) Folded(ctx context.Context) (p server.Position, state []byte, err error) {
	err = n.db.QueryRowContext(ctx, `SELECT epoch, generation,
  CASE WHEN state_line < 0 THEN line ELSE state_line END, state FROM folds
WHERE owner = ? AND stream = ? AND epoch = ?`, n.session.Owner, n.session.ID, n.epoch).
		Scan(&p.Epoch, &p.Generation, &p.Line, &state)
	if errors.Is(err, sql.ErrNoRows) {
		return server.Position{}, nil, nil
	}
	if err != nil {
		return server.Position{}, nil, fmt.Errorf("read what is derived: %w", err)
	}
	return p, state, nil
}

// CopiedFrom implements server.Snapshot.
func (n *snapshot) CopiedFrom(ctx context.Context) (string, error) {
	return sqlstore.CopiedFrom(ctx, dialect{n.db}, &n.session)
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
