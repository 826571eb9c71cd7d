package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/ccship/ccship/server/store/lines"
	"github.com/ccship/ccship/server/store/sqlstore"
)

const insertLines = `
INSERT INTO lines (owner, stream, epoch, generation, line, received, kind, raw)
SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::smallint[],
  $8::bytea[])`

// linesToWrite are a group's lines, sorted by what has to be looked at first.
type linesToWrite struct {
	// Lines that can't be stored yet, a column each: owner, stream, epoch, generation, line, when it came.
	numbers [6][]int64
	kinds   []int16
	raws    [][]byte
	blocks  map[lines.Place][]lines.Block
	replace []int // batches of the group of which lines may be stored
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
	for _, i := range w.replace {
		at, batch := done[i].place(group[i]), &pgx.Batch{}
		d := queueing{dialect: dialect{tx}, batch: batch}
		written, err := s.lines.Put(ctx, d, at, done[i].To, group[i])
		if err == nil {
			err = send(ctx, tx, batch)
		}
		if err != nil {
			return err
		}
		done[i].written = written
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
		if lines.Fresh(b.Lines, done[i].To) {
			w.add(done[i].place(j), j, &done[i])
		} else {
			w.replace = append(w.replace, i)
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
