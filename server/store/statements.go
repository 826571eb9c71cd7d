package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/ccship/ccship/server"
)

const (
	upsertStream = `
INSERT INTO streams (session_id, machine, project_hash, host, project, cwd, path, parent, first_received, last_received)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?9)
ON CONFLICT (owner, session_id, machine) DO UPDATE SET
  project_hash = CASE excluded.project_hash WHEN '' THEN project_hash ELSE excluded.project_hash END,
  host = CASE excluded.host WHEN '' THEN host ELSE excluded.host END,
  project = CASE excluded.project WHEN '' THEN project ELSE excluded.project END,
  cwd = CASE excluded.cwd WHEN '' THEN cwd ELSE excluded.cwd END,
  path = CASE excluded.path WHEN '' THEN path ELSE excluded.path END,
  parent = CASE excluded.parent WHEN '' THEN parent ELSE excluded.parent END,
  last_received = max(last_received, excluded.last_received)
RETURNING id`
	findEpoch   = `SELECT id FROM epochs WHERE stream = ?1 AND name = ?2`
	insertEpoch = `
INSERT INTO epochs (stream, name, rank, first_seen)
VALUES (?1, ?2, (SELECT coalesce(max(rank), 0) + 1 FROM epochs WHERE stream = ?1), ?3)
RETURNING id`
	// Of two requests that end at the same offset the later one knows more.
	upsertGeneration = `
INSERT INTO generations (epoch, generation, rewound_to, end_line, end_offset, eof_newline, bytes, first_seen)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, 0, ?7)
ON CONFLICT (epoch, generation) DO UPDATE SET
  rewound_to = min(rewound_to, excluded.rewound_to),
  end_line = max(end_line, excluded.end_line),
  eof_newline = CASE WHEN excluded.end_offset >= end_offset THEN excluded.eof_newline ELSE eof_newline END,
  end_offset = max(end_offset, excluded.end_offset)`
	addBytes   = `UPDATE generations SET bytes = bytes + ?3 WHERE epoch = ?1 AND generation = ?2`
	insertLine = `
INSERT INTO lines (epoch, generation, line, kind, raw) VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO NOTHING`
	findOther = `
SELECT length(raw) FROM lines
WHERE epoch = ?1 AND generation = ?2 AND line = ?3 AND (kind <> ?4 OR raw <> ?5)`
	supersede = `
INSERT INTO superseded (epoch, generation, line, kind, raw, replaced)
SELECT epoch, generation, line, kind, raw, ?4 FROM lines WHERE epoch = ?1 AND generation = ?2 AND line = ?3`
	updateLine = `UPDATE lines SET kind = ?4, raw = ?5 WHERE epoch = ?1 AND generation = ?2 AND line = ?3`
)

// statements are the writer's, prepared once on its connection.
type statements struct {
	upsertStream, findEpoch, insertEpoch, upsertGeneration, addBytes *sql.Stmt
	insertLine, findOther, supersede, updateLine                     *sql.Stmt
}

func prepare(ctx context.Context, conn *sql.Conn) (s statements, err error) {
	for _, p := range []struct {
		at    **sql.Stmt
		query string
	}{
		{&s.upsertStream, upsertStream}, {&s.findEpoch, findEpoch}, {&s.insertEpoch, insertEpoch},
		{&s.upsertGeneration, upsertGeneration}, {&s.addBytes, addBytes}, {&s.insertLine, insertLine},
		{&s.findOther, findOther}, {&s.supersede, supersede}, {&s.updateLine, updateLine},
	} {
		if *p.at, err = conn.PrepareContext(ctx, p.query); err != nil {
			return s, fmt.Errorf("prepare statement: %w", errors.Join(err, s.close()))
		}
	}
	return s, nil
}

func (s *statements) close() error {
	var errs []error
	for _, stmt := range []*sql.Stmt{
		s.upsertStream, s.findEpoch, s.insertEpoch, s.upsertGeneration, s.addBytes,
		s.insertLine, s.findOther, s.supersede, s.updateLine,
	} {
		if stmt != nil {
			errs = append(errs, stmt.Close())
		}
	}
	return errors.Join(errs...)
}

// store writes one batch inside the open transaction.
func (s *statements) store(ctx context.Context, b *server.Batch) error {
	h, now := &b.Head, b.Received.UnixMicro()
	var stream int64
	err := s.upsertStream.QueryRowContext(ctx, h.SessionID, h.Machine, h.ProjectHash, h.Host, h.Project, h.Cwd,
		h.Path, h.Parent, now).Scan(&stream)
	if err != nil {
		return fmt.Errorf("write stream: %w", err)
	}
	epoch, err := s.epoch(ctx, stream, h.Epoch, now)
	if err != nil {
		return fmt.Errorf("write epoch: %w", err)
	}
	_, err = s.upsertGeneration.ExecContext(ctx, epoch, h.Generation, h.RewoundTo, h.EndLine, h.EndOffset,
		h.EOFNewline, now)
	if err != nil {
		return fmt.Errorf("write generation: %w", err)
	}
	var grown int64
	for _, l := range b.Lines {
		n, err := s.line(ctx, place{epoch, h.Generation, l.Index}, l, now)
		if err != nil {
			return fmt.Errorf("write line: %w", err)
		}
		grown += n
	}
	if grown == 0 {
		return nil
	}
	if _, err := s.addBytes.ExecContext(ctx, epoch, h.Generation, grown); err != nil {
		return fmt.Errorf("count bytes: %w", err)
	}
	return nil
}

func (s *statements) epoch(ctx context.Context, stream int64, name string, now int64) (id int64, err error) {
	err = s.findEpoch.QueryRowContext(ctx, stream, name).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		err = s.insertEpoch.QueryRowContext(ctx, stream, name, now).Scan(&id)
	}
	return id, err
}

// place is the key of a line.
type place struct{ epoch, generation, line int64 }

// line writes one line and answers by how many bytes the generation grew. Bytes that differ from stored ones replace
// them; the old ones go to superseded.
func (s *statements) line(ctx context.Context, p place, l server.Line, now int64) (grown int64, err error) {
	raw := l.Raw
	if raw == nil {
		raw = []byte{} // nil would be NULL
	}
	res, err := s.insertLine.ExecContext(ctx, p.epoch, p.generation, p.line, int64(l.Kind), raw)
	if err != nil {
		return 0, err
	}
	if n, err := res.RowsAffected(); err != nil || n == 1 {
		return int64(len(raw)) + 1, err
	}
	var old int64
	err = s.findOther.QueryRowContext(ctx, p.epoch, p.generation, p.line, int64(l.Kind), raw).Scan(&old)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil // the same bytes again
	}
	if err != nil {
		return 0, err
	}
	if _, err := s.supersede.ExecContext(ctx, p.epoch, p.generation, p.line, now); err != nil {
		return 0, err
	}
	if _, err := s.updateLine.ExecContext(ctx, p.epoch, p.generation, p.line, int64(l.Kind), raw); err != nil {
		return 0, err
	}
	return int64(len(raw)) - old, nil
}
