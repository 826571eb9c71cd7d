package lines

import (
	"context"
	"fmt"

	"github.com/ccship/ccship/server/store/block"
	"github.com/ccship/ccship/server/store/sqlstore"
)

// Packed returns a line as a block has it, whether or not a hot row is in force. ok is false if no block has it.
func (x *Lines) Packed(ctx context.Context, d sqlstore.Dialect, at Place,
	line int64) (l block.Line, ok bool, err error) {
	page, err := x.blocks(ctx, d, at, [2]int64{line, line + 1}, 1)
	if err == nil {
		err = x.cold.Load(ctx, d, at, page, false)
	}
	if err != nil || len(page) == 0 {
		return l, false, err
	}
	all, err := x.unpack(&page[0])
	for _, l := range all {
		if l.Index == line {
			return l, true, nil
		}
	}
	return l, false, err
}

// Replace puts other bytes in the place of those that a block has of a line, by making the block anew.
func (x *Lines) Replace(ctx context.Context, d sqlstore.Dialect, at Place, line int64, raw []byte) error {
	page, err := x.blocks(ctx, d, at, [2]int64{line, line + 1}, 1)
	if err != nil || len(page) == 0 {
		return err
	}
	if err := x.thaw(ctx, d, at, &page[0]); err != nil {
		return err
	}
	all, err := x.unpack(&page[0])
	if err != nil {
		return err
	}
	for i := range all {
		if all[i].Index == line {
			all[i].Raw = raw
		}
	}
	b, err := x.codec.Build(all)
	if err != nil {
		return fmt.Errorf("pack lines: %w", err)
	}
	where, args := sealed(at)
	args = append([]any{b.RawBytes, b.SHA256, b.Header, b.Data}, append(args, b.First)...)
	_, err = d.Exec(ctx, `UPDATE blocks SET raw_bytes = ?, sha256 = ?, header = ?, data = ? WHERE `+where+
		` AND first = ?`, args...)
	if err != nil {
		return fmt.Errorf("write block: %w", err)
	}
	return nil
}

// thaw puts the data of a block back into the database if it is not there, and into b.
func (x *Lines) thaw(ctx context.Context, d sqlstore.Dialect, at Place, b *block.Block) error {
	if !b.Away() {
		return nil
	}
	one := []block.Block{*b}
	if err := x.cold.Load(ctx, d, at, one, false); err != nil {
		return err
	}
	b.Data = one[0].Data
	return x.cold.Thaw(ctx, d, at, b.First)
}

// unpack copies a block's lines.
func (x *Lines) unpack(b *block.Block) ([]block.Line, error) {
	open, err := x.codec.Open(b)
	if err != nil {
		return nil, fmt.Errorf("open lines %d to %d: %w", b.First, b.Last, err)
	}
	defer x.codec.Release(open)
	raw := make([]byte, 0, b.RawBytes)
	out := make([]block.Line, 0, len(open.Entries))
	for i := range open.Entries {
		l := open.Line(i)
		raw = append(raw, l.Raw...)
		l.Raw = raw[len(raw)-len(l.Raw) : len(raw) : len(raw)]
		out = append(out, l)
	}
	return out, nil
}
