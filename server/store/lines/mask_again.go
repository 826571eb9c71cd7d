package lines

import (
	"context"
	"fmt"

	"github.com/ccship/ccship/server"

	"github.com/ccship/ccship/server/store/sqlstore"
	"github.com/ccship/ccship/transcript/redact"
)

// again finds the lines of a batch that the server has masked before: in any epoch and generation of the stream, with
// the same bytes apart from the tokens. It returns the batch to store, in which they have their tokens again, and the
// lines to note. The batch that it was given does not change. Of a copy they are known.
func (m *Masks) again(ctx context.Context, d sqlstore.Dialect, stream int64, b *server.Batch) (*server.Batch, []int64,
	error) {
	if len(b.Lines) == 0 {
		return b, nil, nil
	}
	if len(b.Masked) > 0 {
		return b, b.Masked, nil
	}
	from, to := b.Lines[0].Index, b.Lines[0].Index
	for _, l := range b.Lines {
		from, to = min(from, l.Index), max(to, l.Index)
	}
	places, err := sqlstore.List(ctx, d, `
SELECT epoch, generation, line FROM masked_lines WHERE owner = ? AND stream = ? AND line >= ? AND line <= ?
ORDER BY line, epoch, generation`, []any{b.Owner, stream, from, to},
		func(row sqlstore.Scanner) (p [3]int64, err error) { return p, row.Scan(&p[0], &p[1], &p[2]) })
	if err != nil {
		return b, nil, fmt.Errorf("look for masked lines: %w", err)
	}
	if len(places) == 0 {
		return b, nil, nil
	}
	held := map[int64][][]byte{}
	for _, p := range places {
		at := Place{Owner: b.Owner, Stream: stream, Epoch: p[0], Generation: p[1]}
		l, ok, err := m.lines.TryOne(ctx, d, at, p[2])
		if err != nil {
			return b, nil, fmt.Errorf("read masked line: %w", err)
		}
		if ok {
			held[p[2]] = append(held[p[2]], l.Raw)
		}
	}
	now, list := swap(b, held)
	return now, list, nil
}

// swap replaces lines by held bytes that differ from them only where those have tokens.
func swap(b *server.Batch, held map[int64][][]byte) (*server.Batch, []int64) {
	now := *b
	now.Lines = append([]server.Line(nil), b.Lines...)
	var list []int64
	for i := range now.Lines {
		l := &now.Lines[i]
		for _, raw := range held[l.Index] {
			if _, only := redact.Changes(l.Raw, raw); only && len(raw) > 0 && l.Kind != server.Oversize {
				l.Raw = raw
				list = append(list, l.Index)
				break
			}
		}
	}
	return &now, list
}

// Known returns the job to write for one of a stream, masked so often: lines that the server has masked before get
// their tokens again. list are the lines to Settle.
func (m *Masks) Known(ctx context.Context, d sqlstore.Dialect, stream, masked int64, j *Job) (*Job, []int64, error) {
	if masked == 0 && len(j.Batch.Masked) == 0 {
		return j, nil, nil
	}
	b, list, err := m.again(ctx, d, stream, j.Batch)
	if b == j.Batch {
		return j, list, err
	}
	return &Job{Batch: b}, list, err // what was packed lacks the tokens
}

// Settle writes what comes with the lines of a batch once those are written: which were retired before they came, and
// a list of those that the server has masked.
func (m *Masks) Settle(ctx context.Context, d sqlstore.Dialect, at Place, b *server.Batch, list []int64) error {
	for _, r := range b.Retired {
		if err := InsertRetired(ctx, d, at, r); err != nil {
			return err
		}
	}
	return m.note(ctx, d, at, list)
}

// note lists lines of a generation as masked by the server.
func (m *Masks) note(ctx context.Context, d sqlstore.Dialect, at Place, list []int64) error {
	if len(list) == 0 {
		return nil
	}
	// A stream that has such lines counts as masked: others of its lines are looked up when they come again.
	if _, err := d.Exec(ctx, `UPDATE streams SET masked = 1 WHERE owner = ? AND id = ? AND masked = 0`,
		at.Owner, at.Stream); err != nil {
		return fmt.Errorf("write stream: %w", err)
	}
	for _, line := range list {
		if err := note(ctx, d, at, line); err != nil {
			return fmt.Errorf("list masked line: %w", err)
		}
	}
	return nil
}
