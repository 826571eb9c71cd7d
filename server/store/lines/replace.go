package lines

import (
	"context"
	"errors"
	"fmt"

	"github.com/ccship/ccship/server/store/sqlstore"
)

// Packed returns a line as a block has it, whether or not a hot row is in force. ok is false if no block has it, or a
// damaged one: nobody can read it there.
func (x *Lines) Packed(ctx context.Context, d sqlstore.Dialect, at Place,
	line int64) (l Line, ok bool, err error) {
	b, err := x.whole(ctx, d, at, line)
	if err != nil || b == nil {
		return l, false, err
	}
	all, err := x.unpack(&b.Block)
	for _, l := range all {
		if l.Index == line {
			return l, true, nil
		}
	}
	if errors.Is(err, errDamaged) {
		err = nil
	}
	return l, false, err
}

// Replace replaces by other bytes those that a block has of a line, by making the block anew.
func (x *Lines) Replace(ctx context.Context, d sqlstore.Dialect, at Place, line int64, raw []byte) error {
	b, err := x.whole(ctx, d, at, line)
	if err != nil || b == nil {
		return err
	}
	all, err := x.unpack(&b.Block)
	if err != nil {
		return err
	}
	for i := range all {
		if all[i].Index == line {
			all[i].Raw = raw
		}
	}
	if err := x.remove(ctx, d, at, b); err != nil {
		return err
	}
	return x.pack(ctx, d, at, all)
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
