package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/server"

	"github.com/ccship/ccship/server/store/lines"

	"github.com/ccship/ccship/server/store/sqlstore"
)

const (
	insertLines = `
INSERT INTO lines (owner, stream, epoch, generation, line, received, kind, raw)
SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::smallint[],
  $8::bytea[])`
	// Writes lines of which some may be stored. Other bytes replace those that are; the old ones go aside. Every part
	// sees the rows as they were before the statement, and the stream's lock keeps them so.
	replaceLines = `
WITH new AS MATERIALIZED (
  SELECT * FROM unnest($5::bigint[], $6::smallint[], $7::bytea[]) AS n (line, kind, raw)
), old AS (
  INSERT INTO superseded (owner, stream, epoch, generation, line, received, replaced, kind, raw)
  SELECT l.owner, l.stream, l.epoch, l.generation, l.line, l.received, $4, l.kind, l.raw
  FROM new n JOIN lines l ON l.owner = $8 AND l.stream = $1 AND l.epoch = $2 AND l.generation = $3 AND l.line = n.line
  WHERE l.kind <> n.kind OR l.raw <> n.raw
  RETURNING line, length(raw) + 1 AS size
), put AS (
  INSERT INTO lines AS l (owner, stream, epoch, generation, line, received, kind, raw)
  SELECT $8::bigint, $1::bigint, $2::bigint, $3::bigint, n.line, $4::bigint, n.kind, n.raw FROM new n
  ON CONFLICT (owner, stream, epoch, generation, line) DO UPDATE
  SET received = excluded.received, kind = excluded.kind, raw = excluded.raw
  WHERE l.kind <> excluded.kind OR l.raw <> excluded.raw
  RETURNING line, length(raw) + 1 AS size
)
UPDATE generations SET
  bytes = bytes + (SELECT coalesce(sum(size), 0) FROM put) - (SELECT coalesce(sum(size), 0) FROM old),
  stored_to = greatest(stored_to, (SELECT max(line) + 1 FROM new))
WHERE owner = $8 AND stream = $1 AND epoch = $2 AND generation = $3
RETURNING (SELECT min(line) FROM put), (SELECT max(line) + 1 FROM put), (SELECT min(line) FROM old)`
)

// linesToWrite are a group's lines, sorted by what has to be looked at first.
type linesToWrite struct {
	// Lines that can't be stored yet, a column each: owner, stream, epoch, generation, line, when it came.
	numbers [6][]int64
	kinds   []int16
	raws    [][]byte
	blocks  map[lines.Place][]lines.Block
	replace []repeat
}

// repeat is a batch of which lines may be stored.
type repeat struct {
	at      lines.Place
	batch   *server.Batch
	written *sqlstore.Written
}

// writeLines writes the lines of a group in few round trips: what lies past everything stored at once, the rest with
// a look at what is there.
func (s *Store) writeLines(ctx context.Context, tx pgx.Tx, group []*lines.Job, done []stored) error {
	w := sortLines(group, done)
	batch := &pgx.Batch{}
	if n := &w.numbers; len(w.raws) > 0 {
		batch.Queue(insertLines, n[0], n[1], n[2], n[3], n[4], n[5], w.kinds, w.raws)
	}
	for at, blocks := range w.blocks {
		if err := s.lines.Insert(ctx, queueing{dialect: dialect{tx}, batch: batch}, at, blocks); err != nil {
			return err
		}
	}
	queueGenerations(batch, group, done)
	if err := send(ctx, tx, batch); err != nil {
		return err
	}
	for _, r := range w.replace {
		rest, err := s.lines.Unstored(ctx, dialect{tx}, r.at, r.batch)
		if err != nil {
			return err
		}
		batch := &pgx.Batch{}
		for _, lines := range repeats(rest) {
			replacing(batch, r, lines)
		}
		if err := send(ctx, tx, batch); err != nil {
			return err
		}
	}
	return nil
}

func send(ctx context.Context, tx pgx.Tx, batch *pgx.Batch) error {
	if batch.Len() == 0 {
		return nil
	}
	return sqlstore.Wrap(tx.SendBatch(ctx, batch).Close(), "write lines")
}

// sortLines keeps the order of batches where it matters: what is not fresh is written last, in order.
func sortLines(group []*lines.Job, done []stored) *linesToWrite {
	w := &linesToWrite{blocks: map[lines.Place][]lines.Block{}}
	for i, j := range group {
		b := j.Batch
		if done[i].Stream == 0 || len(b.Lines) == 0 {
			continue
		}
		at := lines.Place{Owner: b.Owner, Stream: done[i].Stream, Epoch: done[i].End.Epoch, Generation: b.Head.Generation}
		if fresh(b.Lines, done[i].To) {
			w.add(at, j, &done[i])
		} else {
			w.replace = append(w.replace, repeat{at, b, &done[i].written})
		}
	}
	return w
}

// add takes a batch of fresh lines.
func (w *linesToWrite) add(at lines.Place, j *lines.Job, done *stored) {
	b := j.Batch
	if j.Blocks != nil {
		w.blocks[at] = j.Blocks
	}
	for _, l := range b.Lines {
		if j.Blocks == nil {
			for c, v := range []int64{at.Owner, at.Stream, at.Epoch, at.Generation, l.Index, b.Received.UnixMicro()} {
				w.numbers[c] = append(w.numbers[c], v)
			}
			w.kinds, w.raws = append(w.kinds, int16(l.Kind)), append(w.raws, sqlstore.NotNil(l.Raw))
		}
		done.Bytes += int64(len(l.Raw)) + 1
		done.StoredTo = l.Index + 1
	}
	done.written = sqlstore.Written{Any: true, From: b.Lines[0].Index, To: done.StoredTo}
}

// replacing queues a stretch of lines of which some may be stored, and notes which of them were written.
func replacing(batch *pgx.Batch, r repeat, lines []server.Line) {
	at, b, w := r.at, r.batch, r.written
	index, kind, raw := make([]int64, len(lines)), make([]int16, len(lines)), make([][]byte, len(lines))
	for i, l := range lines {
		index[i], kind[i], raw[i] = l.Index, int16(l.Kind), sqlstore.NotNil(l.Raw)
	}
	batch.Queue(replaceLines, at.Stream, at.Epoch, at.Generation, b.Received.UnixMicro(), index, kind, raw, at.Owner).
		QueryRow(func(row pgx.Row) error {
			var from, to, differs *int64
			if err := row.Scan(&from, &to, &differs); err != nil || from == nil {
				return err
			}
			if h := &b.Head; differs != nil && h.Writer.Incarnation != "" {
				return &server.StreamError{Code: protocol.CodeOtherBytes, Epoch: h.Epoch, Generation: h.Generation, Line: *differs}
			}
			if !w.Any {
				*w = sqlstore.Written{Any: true, From: *from, To: *to}
			}
			w.From, w.To = min(w.From, *from), max(w.To, *to)
			return nil
		})
}

// fresh says whether lines all lie at or past to and ascend: nothing can collide.
func fresh(lines []server.Line, to int64) bool {
	for _, l := range lines {
		if l.Index < to {
			return false
		}
		to = l.Index + 1
	}
	return true
}

// repeats cuts lines into stretches that have no line twice, which one statement can't write.
func repeats(lines []server.Line) (out [][]server.Line) {
	if len(lines) == 0 {
		return nil
	}
	seen, from := map[int64]bool{}, 0
	for i, l := range lines {
		if seen[l.Index] {
			out, from = append(out, lines[from:i]), i
			clear(seen)
		}
		seen[l.Index] = true
	}
	return append(out, lines[from:])
}
