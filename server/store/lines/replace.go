package lines

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ccship/ccship/server/store/sqlstore"
)

// Packed returns a line as a block has it, whether or not a hot row is in force. ok is false if no block has it, or a
// damaged one: nobody can read it there.
func (x *Lines) Packed(ctx context.Context, d sqlstore.Dialect, at Place,
	line int64) (l Line, ok bool, err error) {
	_, all, err := x.around(ctx, d, at, line)
	if i := indexOf(all, line); i >= 0 {
		return all[i], true, nil
	}
	return l, false, err
}

// Replace replaces by other bytes those that a block has of a line, by making the block anew.
func (x *Lines) Replace(ctx context.Context, d sqlstore.Dialect, at Place, line int64, raw []byte) error {
	b, all, err := x.around(ctx, d, at, line)
	i := indexOf(all, line)
	if err != nil || i < 0 {
		return err
	}
	all[i].Raw = raw
	if err := x.remove(ctx, d, at, b); err != nil {
		return err
	}
	return x.pack(ctx, d, at, all)
}

func indexOf(all []Line, line int64) int {
	return slices.IndexFunc(all, func(l Line) bool { return l.Index == line })
}

// around is the block in whose span a line is, with its lines; nil without one.
func (x *Lines) around(ctx context.Context, d sqlstore.Dialect, at Place, line int64) (*storedBlock, []Line, error) {
	page, err := x.blocks(ctx, d, at, [2]int64{line, line + 1}, 1)
	if err != nil || len(page) == 0 {
		return nil, nil, err
	}
	all, err := x.linesOf(ctx, &page[0])
	return &page[0], all, err
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
	return x.cold.Release(ctx, d, at, b.First)
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
