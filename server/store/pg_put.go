package store

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ccship/ccship/server"
)

const (
	// pgPatience is how long a group of batches is tried: a little less than clients wait for an answer, which is
	// this and a second for each MiB.
	pgPatience = 25 * time.Second
	// copyAbove is from how many lines on COPY beats one INSERT; it costs a round trip more.
	copyAbove = 16
)

// Put implements server.Ingester. Groups are written by several connections at once. While the database fails over, a
// batch waits and is tried again: repeating one changes nothing.
func (s *Postgres) Put(ctx context.Context, b *server.Batch) error {
	s.begin()
	return s.put(ctx, b, s.writeGroup)
}

// writeGroup writes a group in one transaction. When that fails for good every batch is tried alone, so that a batch
// which cannot be stored does not take others with it.
func (s *Postgres) writeGroup(group []*job) {
	// Two servers that lock streams in one order can't wait for each other.
	slices.SortStableFunc(group, func(a, b *job) int { return compareStreams(a.batch, b.batch) })
	patience := s.patience
	for _, j := range group {
		patience += time.Duration(j.bytes>>20) * time.Second
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	done, err := s.transact(ctx, group)
	if err == nil || len(group) == 1 || again(err) {
		s.settle(group, done, err)
		return
	}
	for _, j := range group {
		done, err := s.transact(ctx, []*job{j})
		s.settle([]*job{j}, done, err)
	}
}

func compareStreams(a, b *server.Batch) int {
	return cmp.Or(strings.Compare(a.Head.SessionID, b.Head.SessionID), cmp.Compare(a.Owner, b.Owner),
		strings.Compare(a.Head.Machine, b.Head.Machine))
}

// settle answers a group's jobs and announces its changes.
func (s *Postgres) settle(group []*job, done []stored, err error) {
	for i, j := range group {
		h := &j.batch.Head
		switch {
		case err != nil:
			j.done <- fmt.Errorf("store batch: %w", err)
		case done[i].stream == 0:
			j.done <- fmt.Errorf("store batch: session %q: %w", h.SessionID, server.ErrForgotten)
		default:
			s.notices.tell(server.Change{
				Stream: done[i].stream, SessionID: h.SessionID, Machine: h.Machine, Owner: j.batch.Owner,
				Project: done[i].project, Generation: h.Generation, From: done[i].written.from, To: done[i].written.to,
				At: j.batch.Received,
			})
			j.done <- nil
		}
	}
}

// transact stores a group and returns once it is durable.
func (s *Postgres) transact(ctx context.Context, group []*job) (done []stored, err error) {
	err = s.withTx(ctx, func(tx pgx.Tx) error {
		done, err = writeHeads(ctx, tx, group)
		if err != nil {
			return err
		}
		err = checkFronts(ctx, tx, group, done)
		if err == nil {
			err = writeLines(ctx, tx, group, done)
		}
		if _, refused := errors.AsType[*server.StreamError](err); refused {
			return errors.Join(s.verifyGroup(ctx, pgDialect{tx}, group), err)
		}
		if err != nil {
			return err
		}
		if err := markBehind(ctx, tx, group, done); err != nil {
			return err
		}
		return s.recordGroup(ctx, pgDialect{tx}, group, done)
	})
	return done, err
}

// markBehind has those streams derived again whose batch stored something other than at their end.
func markBehind(ctx context.Context, tx pgx.Tx, group []*job, done []stored) error {
	var streams []int64
	for i, j := range group {
		if done[i].stream != 0 && done[i].end.behind(&j.batch.Head, done[i].written) {
			streams = append(streams, done[i].stream)
		}
	}
	if len(streams) == 0 {
		return nil
	}
	if _, err := tx.Exec(ctx, `UPDATE streams SET redo = true WHERE id = ANY ($1)`, streams); err != nil {
		return fmt.Errorf("write streams: %w", err)
	}
	return nil
}

// stored is what a batch met and what it did.
type stored struct {
	stream  int64  // 0: the session was forgotten
	project string // of the stream
	end     end    // where its newest generation ended
	to      int64  // one past the highest line of the batch's generation
	written written
}

const (
	// Everything here is looked up by key. Planned once, while the tables are still empty, it would be by reading them.
	planByKey = `
SELECT set_config('plan_cache_mode', 'force_generic_plan', true), set_config('enable_seqscan', 'off', true)`
	// Shares the lock that forgetting takes, so that the notes do not change under us.
	lockForgotten = `LOCK TABLE forgotten IN ROW SHARE MODE`
	// The stream's row stays locked until the transaction ends: one stream is written by one at a time.
	pgUpsertStream = `
INSERT INTO streams AS s (session_key, owner, machine_key, session_id, machine, project_hash, host, project, cwd,
  path, parent, first_received, last_received)
SELECT $1::bytea, $2::bigint, $3::bytea, $4::text, $5::text, $6::text, $7::text, $8::text, $9::text, $10::text,
  $11::text, $12::bigint, $12::bigint
WHERE NOT EXISTS (SELECT FROM forgotten WHERE owner = $2 AND session_key = ANY ($13::bytea[]))
ON CONFLICT (session_key, owner, machine_key) DO UPDATE SET
  project_hash = CASE excluded.project_hash WHEN '' THEN s.project_hash ELSE excluded.project_hash END,
  host = CASE excluded.host WHEN '' THEN s.host ELSE excluded.host END,
  project = CASE excluded.project WHEN '' THEN s.project ELSE excluded.project END,
  cwd = CASE excluded.cwd WHEN '' THEN s.cwd ELSE excluded.cwd END,
  path = CASE excluded.path WHEN '' THEN s.path ELSE excluded.path END,
  parent = CASE excluded.parent WHEN '' THEN s.parent ELSE excluded.parent END,
  last_received = greatest(s.last_received, excluded.last_received),
  version = s.version + 1`
	pgInsertEpoch = `
INSERT INTO epochs (stream, rank, name, name_key, first_seen)
SELECT id, 1 + coalesce((SELECT max(rank) FROM epochs WHERE stream = id), 0), $4::text, $5::bytea, $6::bigint
FROM streams WHERE session_key = $1 AND owner = $2 AND machine_key = $3
ON CONFLICT (stream, name_key) DO NOTHING`
	// Of two requests that end at the same offset the later one knows more. What is answered is as it was before.
	pgUpsertGeneration = `
WITH at AS (
  SELECT s.id, s.project_hash, e.rank, e.rank = (SELECT max(rank) FROM epochs WHERE stream = s.id) AS front,
    n.generation, n.rewound_to, n.line
  FROM streams s
  JOIN epochs e ON e.stream = s.id AND e.name_key = $4
  LEFT JOIN LATERAL (
    SELECT generation, rewound_to, greatest(end_line, rewound_to) AS line FROM generations
    WHERE stream = s.id AND epoch = e.rank ORDER BY generation DESC LIMIT 1
  ) n ON true
  WHERE s.session_key = $1 AND s.owner = $2 AND s.machine_key = $3
), put AS (
  INSERT INTO generations AS g (stream, epoch, generation, rewound_to, end_line, end_offset, eof_newline, bytes,
    stored_to, first_seen)
  SELECT id, rank, $5::bigint, $6::bigint, $7::bigint, $8::bigint, $9::boolean, 0, 0, $10::bigint FROM at
  ON CONFLICT (stream, epoch, generation) DO UPDATE SET
    rewound_to = least(g.rewound_to, excluded.rewound_to),
    end_line = greatest(g.end_line, excluded.end_line),
    eof_newline = CASE WHEN excluded.end_offset >= g.end_offset THEN excluded.eof_newline ELSE g.eof_newline END,
    end_offset = greatest(g.end_offset, excluded.end_offset)
  RETURNING stored_to
)
SELECT id, project_hash, rank, front, generation IS NULL, coalesce(generation, 0), coalesce(rewound_to, 0),
  coalesce(line, 0), stored_to
FROM at, put`
)

// writeHeads writes streams, epochs and generations of a group, in one round trip.
func writeHeads(ctx context.Context, tx pgx.Tx, group []*job) ([]stored, error) {
	done := make([]stored, len(group))
	batch := &pgx.Batch{}
	batch.Queue(planByKey)
	batch.Queue(lockForgotten)
	for i, j := range group {
		h, owner, now := clean(j.batch.Head), j.batch.Owner, j.batch.Received.UnixMicro()
		session, machine, epoch := key(j.batch.Head.SessionID), key(j.batch.Head.Machine), key(j.batch.Head.Epoch)
		batch.Queue(pgUpsertStream, session, owner, machine, h.SessionID, h.Machine, h.ProjectHash, h.Host, h.Project,
			h.Cwd, h.Path, h.Parent, now, notes(&j.batch.Head))
		batch.Queue(pgInsertEpoch, session, owner, machine, h.Epoch, epoch, now)
		batch.Queue(pgUpsertGeneration, session, owner, machine, epoch, h.Generation, h.RewoundTo, h.EndLine,
			h.EndOffset, h.EOFNewline, now).Query(func(rows pgx.Rows) error {
			for rows.Next() {
				d, e := &done[i], &done[i].end
				err := rows.Scan(&d.stream, &d.project, &e.epoch, &e.front, &e.first, &e.generation, &e.rewound, &e.line, &d.to)
				if err != nil {
					return err
				}
			}
			return rows.Err()
		})
	}
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return nil, fmt.Errorf("write streams: %w", err)
	}
	return done, nil
}

// key stands for a name of any length in an index.
func key(name string) []byte {
	sum := sha256.Sum256([]byte(name))
	return sum[:]
}

// clean makes a head's names fit for a text column, which holds neither NUL nor what is not UTF-8. Their keys are of
// the names as they came.
func clean(h server.Head) server.Head {
	for _, s := range []*string{
		&h.SessionID, &h.ProjectHash, &h.Machine, &h.Host, &h.Epoch, &h.Path, &h.Cwd, &h.Project, &h.Parent,
	} {
		*s = cleanText(*s)
	}
	return h
}

// cleanText puts U+FFFD in place of what a text column can't hold.
func cleanText(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// notes are the keys of what keeps a batch from being stored when it was forgotten.
func notes(h *server.Head) (keys [][]byte) {
	for _, name := range forgettable(h) {
		keys = append(keys, key(name))
	}
	return keys
}
