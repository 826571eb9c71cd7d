package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/ccship/ccship/server"
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
RETURNING id, project_hash`
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
	updateLine = `
UPDATE lines SET kind = ?4, raw = ?5, received = ?6 WHERE epoch = ?1 AND generation = ?2 AND line = ?3`
)

// statements are the writer's, prepared once on its connection.
type statements struct {
	isForgotten, upsertStream, findEpoch, insertEpoch, findNewest, upsertGeneration *sql.Stmt
	addBytes, markRedo, insertLine, findOther, supersede, updateLine, findFront     *sql.Stmt
}

func prepare(ctx context.Context, conn *sql.Conn) (s statements, err error) {
	for _, p := range []struct {
		at    **sql.Stmt
		query string
	}{
		{&s.isForgotten, isForgotten}, {&s.upsertStream, upsertStream}, {&s.findEpoch, findEpoch},
		{&s.insertEpoch, insertEpoch}, {&s.findNewest, findNewest}, {&s.upsertGeneration, upsertGeneration},
		{&s.addBytes, addBytes}, {&s.markRedo, markRedo}, {&s.insertLine, insertLine}, {&s.findOther, findOther},
		{&s.supersede, supersede}, {&s.updateLine, updateLine}, {&s.findFront, findFront},
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
	} {
		if stmt != nil {
			errs = append(errs, stmt.Close())
		}
	}
	return errors.Join(errs...)
}

// store writes one batch inside the open transaction and returns the change to announce. server.ErrForgotten
// leaves nothing behind.
func (s *statements) store(ctx context.Context, b *server.Batch) (server.Change, error) {
	h, now := &b.Head, b.Received.UnixMicro()
	if err := s.remembered(ctx, b); err != nil {
		return server.Change{}, err
	}
	c := server.Change{SessionID: h.SessionID, Machine: h.Machine, Owner: b.Owner, Generation: h.Generation,
		At: b.Received}
	shown := clean(*h) // as a query for it or a share of it names it
	err := s.upsertStream.QueryRowContext(ctx, h.SessionID, h.Machine, shown.ProjectHash, shown.Host, shown.Project,
		shown.Cwd, shown.Path, shown.Parent, now, b.Owner).Scan(&c.Stream, &c.Project)
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
	_, err = s.upsertGeneration.ExecContext(ctx, e.epoch, h.Generation, h.RewoundTo, h.EndLine, h.EndOffset,
		h.EOFNewline, now)
	if err != nil {
		return c, fmt.Errorf("write generation: %w", err)
	}
	w, err := s.lines(ctx, e.epoch, b)
	if err != nil {
		return c, err
	}
	c.From, c.To = w.from, w.to
	if e.behind(h, w) {
		if _, err := s.markRedo.ExecContext(ctx, c.Stream); err != nil {
			return c, fmt.Errorf("write stream: %w", err)
		}
	}
	return c, nil
}

// remembered answers server.ErrForgotten for a session that is not to be stored.
func (s *statements) remembered(ctx context.Context, b *server.Batch) error {
	var gone bool
	if err := s.isForgotten.QueryRowContext(ctx, b.Owner, jsonList(forgettable(&b.Head))).Scan(&gone); err != nil {
		return fmt.Errorf("look for forgotten session: %w", err)
	}
	if gone {
		return fmt.Errorf("session %q: %w", b.Head.SessionID, server.ErrForgotten)
	}
	return nil
}

// end is where a stream's newest generation ended before a batch.
type end struct {
	epoch                     int64 // the batch's
	front                     bool  // no epoch is newer
	first                     bool  // the epoch has no generation yet
	generation, rewound, line int64
}

// end finds or makes the batch's epoch.
func (s *statements) end(ctx context.Context, stream int64, h *server.Head, now int64) (e end, err error) {
	err = s.findEpoch.QueryRowContext(ctx, stream, h.Epoch).Scan(&e.epoch, &e.front)
	if errors.Is(err, sql.ErrNoRows) {
		e.front, e.first = true, true
		return e, s.insertEpoch.QueryRowContext(ctx, stream, h.Epoch, now).Scan(&e.epoch)
	}
	if err != nil {
		return e, err
	}
	err = s.findNewest.QueryRowContext(ctx, e.epoch).Scan(&e.generation, &e.rewound, &e.line)
	return e, err
}

// checkFront refuses a batch with a Writer that would begin an epoch besides another one, go on in one that is not in
// front, or move the start of the newest generation. A *server.StreamError has the place where the writer continues.
func (s *statements) checkFront(ctx context.Context, stream int64, h *server.Head, e end) error {
	if h.Writer.Incarnation == "" {
		return nil
	}
	if e.front && !e.first {
		if h.Generation == e.generation && h.RewoundTo != e.rewound {
			return &server.StreamError{Code: server.StreamOtherBytes, Epoch: h.Epoch, Generation: e.generation,
				Line: min(h.RewoundTo, e.rewound)}
		}
		return nil
	}
	var id int64
	var at end
	front := &server.StreamError{Code: server.StreamOtherEpoch}
	err := s.findFront.QueryRowContext(ctx, stream, e.epoch).Scan(&id, &front.Epoch)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err == nil {
		err = s.findNewest.QueryRowContext(ctx, id).Scan(&front.Generation, &at.rewound, &front.Line)
	}
	if err != nil {
		return fmt.Errorf("find the epoch in front: %w", err)
	}
	return front
}

// behind says whether a batch stored something other than at the stream's end: what is derived may lack it.
func (e end) behind(h *server.Head, w written) bool {
	switch {
	case e.front && (e.first || h.Generation > e.generation):
		return false
	case e.front && h.Generation == e.generation:
		return w.any && w.from < e.line || h.RewoundTo < e.rewound
	}
	return true
}

// written is what a batch changed: lines from from up to before to.
type written struct {
	any      bool
	from, to int64
}

// lines writes a batch's lines and counts their bytes.
func (s *statements) lines(ctx context.Context, epoch int64, b *server.Batch) (w written, err error) {
	var grown int64
	for _, l := range b.Lines {
		n, changed, err := s.line(ctx, place{epoch, b.Head.Generation, l.Index}, l, b)
		if _, refused := errors.AsType[*server.StreamError](err); refused {
			return w, err
		}
		if err != nil {
			return w, fmt.Errorf("write line: %w", err)
		}
		if !changed {
			continue
		}
		if !w.any {
			w = written{true, l.Index, l.Index + 1}
		}
		grown, w.from, w.to = grown+n, min(w.from, l.Index), max(w.to, l.Index+1)
	}
	if grown == 0 {
		return w, nil
	}
	if _, err := s.addBytes.ExecContext(ctx, epoch, b.Head.Generation, grown); err != nil {
		return w, fmt.Errorf("count bytes: %w", err)
	}
	return w, nil
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
