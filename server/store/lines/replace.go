package lines

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ccship/ccship/server/store/sqlstore"
)

// replace makes the block anew that has a line, with what now returns for it; nil: it stays. It reports whether it did.
// A damaged block has no line: nobody can read it there.
func (x *Lines) replace(ctx context.Context, d sqlstore.Dialect, at Place, line int64,
	now func(Line) ([]byte, error)) (bool, error) {
	page, err := x.blocks(ctx, d, at, [2]int64{line, line + 1}, 1)
	if err != nil || len(page) == 0 {
		return false, err
	}
	all, err := x.linesOf(ctx, &page[0])
	i := slices.IndexFunc(all, func(l Line) bool { return l.Index == line })
	if err != nil || i < 0 {
		return false, err
	}
	raw, err := now(all[i])
	if err != nil || raw == nil {
		return false, err
	}
	all[i].Raw = raw
	if err := x.remove(ctx, d, at, &page[0]); err != nil {
		return false, err
	}
	return true, x.pack(ctx, d, at, all)
}

// linesOf copies a block's lines, in a transaction that others wait for: see fetch. A damaged one has none.
func (x *Lines) linesOf(ctx context.Context, b *storedBlock) ([]Line, error) {
	if err := x.fetch(ctx, b, false); err != nil {
		return nil, err
	}
	all, err := x.unpack(&b.Block)
	if errors.Is(err, errDamaged) {
		return nil, nil
	}
	return all, err
}

// remove takes a block out of the database, and its data from where that is.
func (x *Lines) remove(ctx context.Context, d sqlstore.Dialect, at Place, b *storedBlock) error {
	if _, err := d.Exec(ctx, `DELETE FROM blocks`+ofPlace+` AND first = ?`, at.args(b.First)...); err != nil {
		return fmt.Errorf("remove block: %w", err)
	}
	if b.away.id == "" {
		return nil
	}
	return doom(ctx, d, b.away)
}

// pack stores lines as one block.
func (x *Lines) pack(ctx context.Context, d sqlstore.Dialect, at Place, all []Line) error {
	b, err := x.codec.Build(all)
	if err != nil {
		return fmt.Errorf("pack lines: %w", err)
	}
	return x.Insert(ctx, d, at, []Block{b})
}

// unpack copies a block's lines.
func (x *Lines) unpack(b *Block) ([]Line, error) {
	open, err := x.codec.Open(b)
	if err != nil {
		return nil, fmt.Errorf("open lines %d to %d: %w", b.First, b.Last, err)
	}
	defer x.codec.Release(open)
	raw := make([]byte, 0, b.RawBytes)
	out := make([]Line, 0, len(open.Entries))
	for i := range open.Entries {
		l := open.Line(i)
		raw = append(raw, l.Raw...)
		l.Raw = raw[len(raw)-len(l.Raw) : len(raw) : len(raw)]
		out = append(out, l)
	}
	return out, nil
}
