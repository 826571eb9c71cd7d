package lines

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/ccship/ccship/server"

	"github.com/ccship/ccship/server/store/sqlstore"
)

// A batch's lines are packed at once from so many bytes on, or from fewer if it has several lines: the end of an
// import. Less of a stream comes alive, and is packed with what follows it.
const (
	leastToPack    = 64 << 10
	leastOfSeveral = 16 << 10
	several        = 8
)

// Pack packs the lines of a batch, if they are so many that they are an import. nil: they stay hot. It is done before
// a batch waits for its turn to be written.
func (x *Lines) Pack(b *server.Batch) ([]Block, error) {
	size, last := 0, int64(-1)
	for _, l := range b.Lines {
		if l.Index <= last {
			return nil, nil
		}
		size, last = size+len(l.Raw), l.Index
	}
	if size < leastOfSeveral || size < leastToPack && len(b.Lines) < several {
		return nil, nil
	}
	all := make([]Line, len(b.Lines))
	for i, l := range b.Lines {
		all[i] = Line{Index: l.Index, Received: b.Received.UnixMicro(), Kind: uint8(l.Kind), Raw: l.Raw}
	}
	return x.build(cutBlock(all))
}

func (x *Lines) build(pieces [][]Line) (out []Block, err error) {
	for _, piece := range pieces {
		b, err := x.codec.Build(piece)
		if err != nil {
			return nil, fmt.Errorf("pack lines: %w", err)
		}
		out = append(out, b)
	}
	return out, nil
}

const insertBlock = `
INSERT INTO blocks (owner, stream, epoch, generation, first, last, lines, raw_bytes, sha256, header, data)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

// Insert stores blocks, in which no line is that is stored.
func (x *Lines) Insert(ctx context.Context, d sqlstore.Dialect, at Place, blocks []Block) error {
	for _, b := range blocks {
		_, err := d.Exec(ctx, insertBlock, at.args(b.First, b.Last, b.Lines, b.RawBytes, b.SHA256, b.Header, b.Data)...)
		if err != nil {
			return fmt.Errorf("write block: %w", err)
		}
	}
	return nil
}

// Unstored returns the lines that must be written as rows: not those that a block has, or that were retired, with the
// same bytes. A block's line with other bytes becomes a row first, so that the caller refuses or replaces it like any
// stored row. A damaged block counts as not stored.
func (x *Lines) Unstored(ctx context.Context, d sqlstore.Dialect, at Place, b *server.Batch) ([]server.Line, error) {
	lines, err := unretired(ctx, d, at, b)
	if err != nil || len(lines) == 0 {
		return lines, err
	}
	from, to := lines[0].Index, lines[0].Index
	for _, l := range lines {
		from, to = min(from, l.Index), max(to, l.Index)
	}
	of := map[int64][]int{}
	for i, l := range lines {
		of[l.Index] = append(of[l.Index], i)
	}
	same := make([]bool, len(lines))
	for from <= to {
		page, err := x.blocks(ctx, d, at, [2]int64{from, to + 1}, pageBlocks)
		if err != nil {
			return nil, err
		}
		if len(page) == 0 {
			break
		}
		hot, err := x.hotLines(ctx, d, at, page[0].First, page[len(page)-1].Last+1)
		if err != nil {
			return nil, err
		}
		for i := range page {
			c := comparison{x, d, at, lines, of, same, hot}
			if err := c.block(ctx, &page[i]); err != nil {
				return nil, err
			}
		}
		from = page[len(page)-1].Last + 1
	}
	var rest []server.Line
	for i, l := range lines {
		if !same[i] {
			rest = append(rest, l)
		}
	}
	return rest, nil
}

// comparison is of lines with blocks.
type comparison struct {
	x     *Lines
	d     sqlstore.Dialect
	at    Place
	lines []server.Line
	of    map[int64][]int // where lines has an index
	same  []bool          // of lines: a block has it
	hot   map[int64]entry
}

func (c *comparison) block(ctx context.Context, b *storedBlock) error {
	entries, _ := b.Index() // none of a damaged block
	if !slices.ContainsFunc(entries, func(e entry) bool { return len(c.of[e.Index]) > 0 }) {
		return nil
	}
	all, err := c.x.linesOf(ctx, b)
	if err != nil {
		return err
	}
	for _, stored := range all {
		if _, over := c.hot[stored.Index]; over {
			continue
		}
		differs := false
		for _, n := range c.of[stored.Index] {
			l := c.lines[n]
			equal := uint8(l.Kind) == stored.Kind && bytes.Equal(l.Raw, stored.Raw)
			differs = differs || !equal
			c.same[n] = equal && !differs // after other bytes for the line, the block's own bytes are a change again
		}
		if !differs {
			continue
		}
		_, err := c.d.Exec(ctx, `
INSERT INTO lines (owner, stream, epoch, generation, line, received, kind, raw) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO NOTHING`, c.at.args(stored.Index, stored.Received, int64(stored.Kind), sqlstore.NotNil(stored.Raw))...)
		if err != nil {
			return fmt.Errorf("write line: %w", err)
		}
	}
	return nil
}
