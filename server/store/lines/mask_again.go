package lines

import (
	"context"
	"fmt"

	"github.com/ccship/ccship/server"

	"github.com/ccship/ccship/server/store/sqlstore"
	"github.com/ccship/ccship/transcript/redact"
)

// Again finds the lines of a batch that the server has masked before: in any epoch and generation of the stream, with
// the same bytes apart from the tokens. It returns the batch to store, in which they have their tokens again, and the
// lines to Note. The batch that it was given does not change. Of a copy they are known.
func (m *Masks) Again(ctx context.Context, d sqlstore.Dialect, stream int64, b *server.Batch) (*server.Batch, []int64,
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

// Note lists lines of a generation as masked by the server.
func (m *Masks) Note(ctx context.Context, d sqlstore.Dialect, at Place, list []int64) error {
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
