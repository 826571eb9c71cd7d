package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/ccship/ccship/server"

	"github.com/ccship/ccship/server/store/lines"

	"github.com/ccship/ccship/server/store/sqlstore"
)

const (
	// A session is not stored again once it, what it is a copy of, or the session whose agent it is was forgotten.
	isForgotten = `
SELECT EXISTS (SELECT 1 FROM forgotten WHERE owner = ?1 AND session_id IN (SELECT value FROM json_each(?2)))`
	upsertStream = `
INSERT INTO streams (session_id, machine, project_hash, host, project, cwd, path, parent, first_received,
  last_received, owner)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?9, ?10)
ON CONFLICT (owner, session_id, machine) DO UPDATE SET
  project_hash = CASE excluded.project_hash WHEN '' THEN project_hash ELSE excluded.project_hash END,
  host = CASE excluded.host WHEN '' THEN host ELSE excluded.host END,
  project = CASE excluded.project WHEN '' THEN project ELSE excluded.project END,
  cwd = CASE excluded.cwd WHEN '' THEN cwd ELSE excluded.cwd END,
  path = CASE excluded.path WHEN '' THEN path ELSE excluded.path END,
  parent = CASE excluded.parent WHEN '' THEN parent ELSE excluded.parent END,
  last_received = max(last_received, excluded.last_received),
  version = version + 1
RETURNING id, project_hash, masked`
	findEpoch = `
SELECT id, rank = (SELECT max(rank) FROM epochs WHERE stream = ?1) FROM epochs WHERE stream = ?1 AND name = ?2`
	insertEpoch = `
INSERT INTO epochs (stream, name, rank, first_seen)
VALUES (?1, ?2, (SELECT coalesce(max(rank), 0) + 1 FROM epochs WHERE stream = ?1), ?3)
RETURNING id`
	findNewest = `
SELECT generation, rewound_to, max(end_line, rewound_to) FROM generations WHERE epoch = ?1
ORDER BY generation DESC LIMIT 1`
	// Of two requests that end at the same offset the later one knows more.
	upsertGeneration = `
INSERT INTO generations (epoch, generation, rewound_to, end_line, end_offset, eof_newline, bytes, first_seen)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, 0, ?7)
ON CONFLICT (epoch, generation) DO UPDATE SET
  rewound_to = min(rewound_to, excluded.rewound_to),
  end_line = max(end_line, excluded.end_line),
  eof_newline = CASE WHEN excluded.end_offset >= end_offset THEN excluded.eof_newline ELSE eof_newline END,
  end_offset = max(end_offset, excluded.end_offset)`
	addBytes = `UPDATE generations SET bytes = bytes + ?3 WHERE epoch = ?1 AND generation = ?2`
	markRedo = `UPDATE streams SET redo = 1 WHERE id = ?1`
	// The epoch in front apart from one.
	findFront = `
SELECT e.id, e.name FROM epochs e WHERE e.stream = ?1 AND e.id <> ?2 ORDER BY e.rank DESC LIMIT 1`
	insertLine = `
INSERT INTO lines (epoch, generation, line, kind, raw, received) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
ON CONFLICT DO NOTHING`
	findOther = `
SELECT length(raw) FROM lines
WHERE epoch = ?1 AND generation = ?2 AND line = ?3 AND (kind <> ?4 OR raw <> ?5)`
	supersede = `
INSERT INTO superseded (epoch, generation, line, kind, raw, replaced)
SELECT epoch, generation, line, kind, raw, ?4 FROM lines WHERE epoch = ?1 AND generation = ?2 AND line = ?3`
	// One past the last line that is in a block or was retired, and of the last row.
	findEnd = `
SELECT max(coalesce((SELECT last + 1 FROM blocks WHERE owner = ?1 AND stream = ?2 AND epoch = ?3 AND generation = ?4
ORDER BY first DESC LIMIT 1), 0), coalesce((SELECT last + 1 FROM retired
WHERE owner = ?1 AND stream = ?2 AND epoch = ?3 AND generation = ?4 ORDER BY first DESC LIMIT 1), 0))`
	findHotEnd = `SELECT coalesce(max(line) + 1, 0) FROM lines WHERE epoch = ?1 AND generation = ?2`
	updateLine = `
UPDATE lines SET kind = ?4, raw = ?5, received = ?6 WHERE epoch = ?1 AND generation = ?2 AND line = ?3`
)

// statements are the writer's, prepared once on its connection.
type statements struct {
	isForgotten, upsertStream, findEpoch, insertEpoch, findNewest, upsertGeneration *sql.Stmt
	addBytes, markRedo, insertLine, findOther, supersede, updateLine, findFront     *sql.Stmt
	findEnd, findHotEnd, insertBlock                                                *sql.Stmt

	conn  *sql.Conn
	masks *lines.Masks
	held  *lines.Lines
}

func prepare(ctx context.Context, conn *sql.Conn, m *lines.Masks, held *lines.Lines) (s statements, err error) {
	s.conn, s.masks, s.held = conn, m, held
	for _, p := range []struct {
		at    **sql.Stmt
		query string
	}{
		{&s.isForgotten, isForgotten}, {&s.upsertStream, upsertStream}, {&s.findEpoch, findEpoch},
		{&s.insertEpoch, insertEpoch}, {&s.findNewest, findNewest}, {&s.upsertGeneration, upsertGeneration},
		{&s.addBytes, addBytes}, {&s.markRedo, markRedo}, {&s.insertLine, insertLine}, {&s.findOther, findOther},
		{&s.supersede, supersede}, {&s.updateLine, updateLine}, {&s.findFront, findFront},
		{&s.findEnd, findEnd}, {&s.findHotEnd, findHotEnd}, {&s.insertBlock, lines.InsertBlock},
	} {
		if *p.at, err = conn.PrepareContext(ctx, p.query); err != nil { //nolint:sqlclosecheck // close closes all
			return s, fmt.Errorf("prepare statement: %w", errors.Join(err, s.close()))
		}
	}
	return s, nil
}

func (s *statements) close() error {
	var errs []error
	for _, stmt := range []*sql.Stmt{
		s.isForgotten, s.upsertStream, s.findEpoch, s.insertEpoch, s.findNewest, s.upsertGeneration,
		s.addBytes, s.markRedo, s.insertLine, s.findOther, s.supersede, s.updateLine, s.findFront,
		s.findEnd, s.findHotEnd, s.insertBlock,
	} {
		if stmt != nil {
			errs = append(errs, stmt.Close())
		}
	}
	return errors.Join(errs...)
}

// store writes one batch inside the open transaction and returns the change to announce. server.ErrForgotten
// leaves nothing behind.
func (s *statements) store(ctx context.Context, j *lines.Job) (server.Change, error) {
	b := j.Batch
	h, now := &b.Head, b.Received.UnixMicro()
	if err := s.remembered(ctx, b); err != nil {
		return server.Change{}, err
	}
	c := server.Change{SessionID: h.SessionID, Machine: h.Machine, Owner: b.Owner, Generation: h.Generation,
		At: b.Received}
	var masked int64
	shown := sqlstore.Clean(*h) // as a query for it or a share of it names it
	err := s.upsertStream.QueryRowContext(ctx, h.SessionID, h.Machine, shown.ProjectHash, shown.Host, shown.Project,
		shown.Cwd, shown.Path, shown.Parent, now, b.Owner).Scan(&c.Stream, &c.Project, &masked)
	if err != nil {
		return c, fmt.Errorf("write stream: %w", err)
	}
	e, err := s.end(ctx, c.Stream, h, now)
	if err != nil {
		return c, fmt.Errorf("write epoch: %w", err)
	}
	if err := s.checkFront(ctx, c.Stream, h, e); err != nil {
		return c, err
	}
	_, err = s.upsertGeneration.ExecContext(ctx, e.Epoch, h.Generation, h.RewoundTo, h.EndLine, h.EndOffset,
		h.EOFNewline, now)
	if err != nil {
		return c, fmt.Errorf("write generation: %w", err)
	}
	at := lines.Place{Owner: b.Owner, Stream: c.Stream, Epoch: e.Epoch, Generation: h.Generation}
	w, err := s.known(ctx, at, j, masked > 0 || len(b.Masked) > 0)
	if _, refused := errors.AsType[*server.StreamError](err); !refused && err != nil {
		err = fmt.Errorf("write lines: %w", err)
	}
	if err != nil {
		return c, err
	}
	for _, r := range b.Retired {
		if err := lines.InsertRetired(ctx, dialect{s.conn}, lines.RetiredPlace(at), r); err != nil {
			return c, err
		}
	}
	c.From, c.To = w.From, w.To
	if e.Behind(h, w) {
		if _, err := s.markRedo.ExecContext(ctx, c.Stream); err != nil {
			return c, fmt.Errorf("write stream: %w", err)
		}
	}
	return c, nil
}

// remembered answers server.ErrForgotten for a session that is not to be stored.
func (s *statements) remembered(ctx context.Context, b *server.Batch) error {
	var gone bool
	if err := s.isForgotten.QueryRowContext(ctx, b.Owner,
		jsonList(sqlstore.ForgettableNames(&b.Head))).Scan(&gone); err != nil {
		return fmt.Errorf("look for forgotten session: %w", err)
	}
	if gone {
		return fmt.Errorf("session %q: %w", b.Head.SessionID, server.ErrForgotten)
	}
	return nil
}

// end finds or makes the batch's epoch.
func (s *statements) end(ctx context.Context, stream int64, h *server.Head, now int64) (e sqlstore.End, err error) {
	err = s.findEpoch.QueryRowContext(ctx, stream, h.Epoch).Scan(&e.Epoch, &e.Front)
	if errors.Is(err, sql.ErrNoRows) {
		e.Front, e.First = true, true
		return e, s.insertEpoch.QueryRowContext(ctx, stream, h.Epoch, now).Scan(&e.Epoch)
	}
	if err != nil {
		return e, err
	}
	err = s.findNewest.QueryRowContext(ctx, e.Epoch).Scan(&e.Generation, &e.Rewound, &e.Line)
	return e, err
}

// checkFront refuses a batch with a Writer that would begin an epoch besides another one, go on in one that is not in
// front, or move the start of the newest generation. A *server.StreamError has the position where the writer continues.
func (s *statements) checkFront(ctx context.Context, stream int64, h *server.Head, e sqlstore.End) error {
	if h.Writer.Incarnation == "" {
		return nil
	}
	if e.Front && !e.First {
		if h.Generation == e.Generation && h.RewoundTo != e.Rewound {
			return &server.StreamError{Code: server.StreamOtherBytes, Epoch: h.Epoch, Generation: e.Generation,
				Line: min(h.RewoundTo, e.Rewound)}
		}
		return nil
	}
	var id int64
	var at sqlstore.End
	front := &server.StreamError{Code: server.StreamOtherEpoch}
	err := s.findFront.QueryRowContext(ctx, stream, e.Epoch).Scan(&id, &front.Epoch)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err == nil {
		err = s.findNewest.QueryRowContext(ctx, id).Scan(&front.Generation, &at.Rewound, &front.Line)
	}
	if err != nil {
		return fmt.Errorf("find the epoch in front: %w", err)
	}
	return front
}

// known is writeLines, for a stream of which something was masked: lines that the server has masked get their tokens
// again.
func (s *statements) known(ctx context.Context, at lines.Place, j *lines.Job,
	masked bool) (w sqlstore.Written, err error) {
	if !masked {
		return s.writeLines(ctx, at, j.Batch, j.Blocks)
	}
	d := dialect{s.conn}
	b, again, err := s.masks.Again(ctx, d, at.Stream, j.Batch)
	if err != nil {
		return w, err
	}
	blocks := j.Blocks
	if b != j.Batch {
		blocks = nil
	}
	if w, err = s.writeLines(ctx, at, b, blocks); err != nil {
		return w, err
	}
	return w, s.masks.Note(ctx, d, at, again)
}

// place is the key of a line.
type place struct{ epoch, generation, line int64 }

// line writes one line and answers by how many bytes the generation grew. Bytes that differ from stored ones are
// refused when the batch has a Writer; otherwise they replace the stored ones, which go to superseded.
func (s *statements) line(ctx context.Context, p place, l server.Line,
	b *server.Batch) (grown int64, changed bool, err error) {
	raw, now := l.Raw, b.Received.UnixMicro()
	if raw == nil {
		raw = []byte{} // nil would be NULL
	}
	res, err := s.insertLine.ExecContext(ctx, p.epoch, p.generation, p.line, int64(l.Kind), raw, now)
	if err != nil {
		return 0, false, err
	}
	if n, err := res.RowsAffected(); err != nil || n == 1 {
		return int64(len(raw)) + 1, true, err
	}
	var old int64
	err = s.findOther.QueryRowContext(ctx, p.epoch, p.generation, p.line, int64(l.Kind), raw).Scan(&old)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, false, nil // the same bytes again
	}
	if err != nil {
		return 0, false, err
	}
	if h := &b.Head; h.Writer.Incarnation != "" {
		return 0, false, &server.StreamError{
			Code: server.StreamOtherBytes, Epoch: h.Epoch, Generation: h.Generation, Line: l.Index}
	}
	if _, err := s.supersede.ExecContext(ctx, p.epoch, p.generation, p.line, now); err != nil {
		return 0, false, err
	}
	if _, err := s.updateLine.ExecContext(ctx, p.epoch, p.generation, p.line, int64(l.Kind), raw, now); err != nil {
		return 0, false, err
	}
	return int64(len(raw)) - old, true, nil
}
