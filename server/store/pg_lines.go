package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/ccship/ccship/server"
)

const (
	pgInsertLines = `
INSERT INTO lines (stream, epoch, generation, line, received, kind, raw)
SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::smallint[], $7::bytea[])`
	// Writes lines of which some may be stored. Other bytes replace those that are; the old ones go aside. Every part
	// sees the rows as they were before the statement, and the stream's lock keeps them so.
	pgReplaceLines = `
WITH new AS MATERIALIZED (
  SELECT * FROM unnest($5::bigint[], $6::smallint[], $7::bytea[]) AS n (line, kind, raw)
), old AS (
  INSERT INTO superseded (stream, epoch, generation, line, received, replaced, kind, raw)
  SELECT l.stream, l.epoch, l.generation, l.line, l.received, $4, l.kind, l.raw
  FROM new n JOIN lines l ON l.stream = $1 AND l.epoch = $2 AND l.generation = $3 AND l.line = n.line
  WHERE l.kind <> n.kind OR l.raw <> n.raw
  RETURNING line, length(raw) + 1 AS size
), put AS (
  INSERT INTO lines AS l (stream, epoch, generation, line, received, kind, raw)
  SELECT $1::bigint, $2::bigint, $3::bigint, n.line, $4::bigint, n.kind, n.raw FROM new n
  ON CONFLICT (stream, epoch, generation, line) DO UPDATE
  SET received = excluded.received, kind = excluded.kind, raw = excluded.raw
  WHERE l.kind <> excluded.kind OR l.raw <> excluded.raw
  RETURNING line, length(raw) + 1 AS size
)
UPDATE generations SET
  bytes = bytes + (SELECT coalesce(sum(size), 0) FROM put) - (SELECT coalesce(sum(size), 0) FROM old),
  stored_to = greatest(stored_to, (SELECT max(line) + 1 FROM new))
WHERE stream = $1 AND epoch = $2 AND generation = $3
RETURNING (SELECT min(line) FROM put), (SELECT max(line) + 1 FROM put), (SELECT min(line) FROM old)`
	pgGrow = `
UPDATE generations SET bytes = bytes + $4, stored_to = greatest(stored_to, $5)
WHERE stream = $1 AND epoch = $2 AND generation = $3`
)

var lineColumns = []string{"stream", "epoch", "generation", "line", "received", "kind", "raw"}

// pgPlace is where a generation's lines are.
type pgPlace struct{ stream, epoch, generation int64 }

// growth is what a transaction adds to a generation.
type growth struct{ bytes, to int64 }

// linesToWrite are a group's lines, sorted by what has to be looked at first.
type linesToWrite struct {
	fresh   [][]any // rows of lineColumns that can't be stored yet
	grown   map[pgPlace]growth
	replace []func(*pgx.Batch)
}

// writeLines writes the lines of a group in few round trips: what lies past everything stored at once, the rest with
// a look at what is there.
func writeLines(ctx context.Context, tx pgx.Tx, group []*job, done []stored) error {
	w := sortLines(group, done)
	if len(w.fresh) > copyAbove {
		_, err := tx.CopyFrom(ctx, pgx.Identifier{"lines"}, lineColumns, pgx.CopyFromRows(w.fresh))
		if err != nil {
			return fmt.Errorf("copy lines: %w", err)
		}
	}
	batch := &pgx.Batch{}
	if n := len(w.fresh); n > 0 && n <= copyAbove {
		batch.Queue(pgInsertLines, columns(w.fresh)...)
	}
	for place, g := range w.grown {
		batch.Queue(pgGrow, place.stream, place.epoch, place.generation, g.bytes, g.to)
	}
	for _, replace := range w.replace {
		replace(batch)
	}
	if batch.Len() == 0 {
		return nil
	}
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("write lines: %w", err)
	}
	return nil
}

// sortLines keeps the order of batches where it matters: what is not fresh is written last, in order.
func sortLines(group []*job, done []stored) *linesToWrite {
	w := &linesToWrite{grown: map[pgPlace]growth{}}
	ends := map[pgPlace]int64{}
	for i, j := range group {
		b := j.batch
		if done[i].stream == 0 || len(b.Lines) == 0 {
			continue
		}
		at := pgPlace{done[i].stream, done[i].end.epoch, b.Head.Generation}
		to := max(done[i].to, ends[at])
		if fresh(b.Lines, to) {
			w.add(at, b)
			done[i].written = written{true, b.Lines[0].Index, b.Lines[len(b.Lines)-1].Index + 1}
		} else {
			for _, lines := range repeats(b.Lines) {
				w.replace = append(w.replace, replacing(at, b, lines, &done[i].written))
			}
		}
		for _, l := range b.Lines {
			to = max(to, l.Index+1)
		}
		ends[at] = to
	}
	return w
}

// add takes a batch of fresh lines.
func (w *linesToWrite) add(at pgPlace, b *server.Batch) {
	g := w.grown[at]
	for _, l := range b.Lines {
		w.fresh = append(w.fresh, []any{
			at.stream, at.epoch, at.generation, l.Index, b.Received.UnixMicro(), int16(l.Kind), notNil(l.Raw),
		})
		g.bytes += int64(len(l.Raw)) + 1
		g.to = l.Index + 1
	}
	w.grown[at] = g
}

// replacing queues a stretch of lines of which some may be stored, and notes which of them were written.
func replacing(at pgPlace, b *server.Batch, lines []server.Line, w *written) func(*pgx.Batch) {
	index, kind, raw := make([]int64, len(lines)), make([]int16, len(lines)), make([][]byte, len(lines))
	for i, l := range lines {
		index[i], kind[i], raw[i] = l.Index, int16(l.Kind), notNil(l.Raw)
	}
	return func(batch *pgx.Batch) {
		batch.Queue(pgReplaceLines, at.stream, at.epoch, at.generation, b.Received.UnixMicro(), index, kind, raw).
			QueryRow(func(row pgx.Row) error {
				var from, to, differs *int64
				if err := row.Scan(&from, &to, &differs); err != nil || from == nil {
					return err
				}
				if h := &b.Head; differs != nil && h.Writer.Incarnation != "" {
					return &server.StreamError{Code: server.StreamOtherBytes, Epoch: h.Epoch, Generation: h.Generation, Line: *differs}
				}
				if !w.any {
					*w = written{true, *from, *to}
				}
				w.from, w.to = min(w.from, *from), max(w.to, *to)
				return nil
			})
	}
}

// columns turns rows of lineColumns into an array for each column.
func columns(rows [][]any) []any {
	var ints [5][]int64
	var kinds []int16
	var raws [][]byte
	for _, row := range rows {
		for c := range ints {
			ints[c] = append(ints[c], row[c].(int64))
		}
		kinds, raws = append(kinds, row[5].(int16)), append(raws, row[6].([]byte))
	}
	return []any{ints[0], ints[1], ints[2], ints[3], ints[4], kinds, raws}
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

// notNil is the bytes of a line; none are not NULL.
func notNil(raw []byte) []byte {
	if raw == nil {
		return []byte{}
	}
	return raw
}
