package lines

import (
	"context"
	"errors"
	"fmt"

	"github.com/ccship/ccship/server/store/sqlstore"
)

const (
	// sealRows and sealBytes bound what one transaction packs: lines that arrive do not wait long for it.
	sealRows  = 2000
	sealBytes = 8 * blockSize
)

var (
	errEnough = errors.New("enough")
	errMoved  = errors.New("lines changed while they were packed")
)

// Seal packs hot lines of a generation into blocks, in a transaction that keeps others from writing the stream. Unless
// all are to be packed, what does not fill a block stays hot. It returns how many blocks were made, and whether there
// may be more to do.
func (x *Lines) Seal(ctx context.Context, d sqlstore.Dialect, at Place, all bool) (made int, more bool, err error) {
	runs, more, err := x.sealable(ctx, d, at)
	if err != nil {
		return 0, false, err
	}
	for i, run := range runs {
		pieces := cutBlock(run)
		// The next lines of the stream belong to the end of the last run, also of one that was cut off here.
		if last := i == len(runs)-1; last && (more || !all) {
			pieces = full(run)
		}
		blocks, err := x.build(pieces)
		if err != nil {
			return made, false, err
		}
		if err := x.step("write blocks"); err != nil {
			return made, false, err
		}
		if err := x.Insert(ctx, d, at, blocks); err != nil {
			return made, false, err
		}
		for _, b := range blocks {
			if err := x.unrow(ctx, d, at, b); err != nil {
				return made, false, fmt.Errorf("remove packed lines: %w", err)
			}
		}
		made += len(blocks)
	}
	return made, more && made > 0, x.step("commit blocks")
}

// unrow removes rows that are packed now.
func (x *Lines) unrow(ctx context.Context, d sqlstore.Dialect, at Place, b Block) error {
	if err := x.step("remove packed lines"); err != nil {
		return err
	}
	n, err := d.Exec(ctx, `DELETE FROM lines`+ofPlace+` AND line >= ? AND line <= ?`, at.args(b.First, b.Last)...)
	if err == nil && n != b.Lines {
		err = errMoved
	}
	return err
}

// full returns the pieces of lines that fill a block.
func full(lines []Line) (out [][]Line) {
	from, sum := 0, 0
	for i, l := range lines {
		if sum += len(l.Raw); sum >= blockSize {
			out, from, sum = append(out, lines[from:i+1]), i+1, 0
		}
	}
	return out
}

// sealable returns hot lines that are in no block: runs between which there are blocks. more says that there are
// others.
func (x *Lines) sealable(ctx context.Context, d sqlstore.Dialect,
	at Place) (runs [][]Line, more bool, err error) {
	behind, rows, size := int64(-2), 0, 0
	err = d.Query(ctx, `SELECT line, kind, received, raw, behind FROM (
  SELECT l.line, l.kind, l.received, l.raw, `+before+` AS behind FROM lines l
  WHERE l.owner = ? AND l.stream = ? AND l.epoch = ? AND l.generation = ?) hot
WHERE behind < line ORDER BY line LIMIT ?`, append([]any{at.Owner, at.Stream}, at.args(sealRows)...),
		func(row sqlstore.Scanner) error {
			var l Line
			var kind, last int64
			if err := row.Scan(&l.Index, &kind, &l.Received, &l.Raw, &last); err != nil {
				return err
			}
			l.Kind = uint8(kind)
			if last != behind {
				runs, behind = append(runs, nil), last
			}
			run := &runs[len(runs)-1]
			*run = append(*run, l)
			if rows, size = rows+1, size+len(l.Raw); size >= sealBytes {
				return errEnough
			}
			return nil
		})
	enough := errors.Is(err, errEnough)
	if err != nil && !enough {
		return nil, false, fmt.Errorf("read hot lines: %w", err)
	}
	return runs, enough || rows == sealRows, nil
}

// Hot is a generation with hot lines.
type Hot struct {
	Place   Place
	Version int64 // of the stream
	Last    int64 // when it was last heard of, Unix microseconds
}

// NextHot returns the first generation with hot lines behind another one. ok is false if there is none.
func (x *Lines) NextHot(ctx context.Context, d sqlstore.Dialect, after Place) (h Hot, ok bool, err error) {
	err = d.Query(ctx, `
SELECT s.owner, s.id, l.epoch, l.generation, s.version, s.last_received
FROM (SELECT owner, stream, epoch, generation FROM lines WHERE (owner, stream, epoch, generation) > (?, ?, ?, ?)
  ORDER BY owner, stream, epoch, generation, line LIMIT 1) l
JOIN streams s ON s.owner = l.owner AND s.id = l.stream`,
		[]any{after.Owner, after.Stream, after.Epoch, after.Generation},
		func(row sqlstore.Scanner) error {
			ok = true
			p := &h.Place
			return row.Scan(&p.Owner, &p.Stream, &p.Epoch, &p.Generation, &h.Version, &h.Last)
		})
	return h, ok, sqlstore.Wrap(err, "look for hot lines")
}

// Size returns how many bytes hot lines of a generation have.
func (x *Lines) Size(ctx context.Context, d sqlstore.Dialect, at Place) (n int64, err error) {
	n, err = sqlstore.Number(ctx, d, `SELECT CAST(coalesce(sum(length(raw)), 0) AS bigint) FROM lines`+ofPlace,
		at.args()...)
	return n, sqlstore.Wrap(err, "measure hot lines")
}
