package lines

import (
	"context"
	"fmt"

	"github.com/ccship/ccship/server"

	"github.com/ccship/ccship/server/store/sqlstore"
)

const (
	// pageRows is how many hot rows are asked for at once: ending early drops one page, not the rest of the stream, and a
	// slow reader keeps no query running for long.
	pageRows = 500
	// pageBlocks is how many blocks are. The first page has one: a caller that reads a line, or stops soon, needs no more.
	pageBlocks = 8
	// fewLines and fewBytes are what a read of hot lines alone may have; one line may be of any size.
	fewLines = 16
	fewBytes = 256 << 10
)

// reading is one pass over the lines of a generation.
type reading struct {
	x     *Lines
	d     sqlstore.Dialect
	at    Place
	wait  bool        // for blocks that are not in memory
	span  server.Span // how much is read of long lines
	yield func(Line) error

	packed bool // no line of the span is hot
}

// all yields the lines from from up to before to.
func (r *reading) all(ctx context.Context, from, to int64) error {
	if from < to && to-from <= fewLines {
		done, err := r.few(ctx, from, to)
		if done || err != nil {
			return err
		}
	}
	most := pageBlocks
	if !r.wait {
		most = 1 // all that is read must be in memory at once
	}
	for limit := 1; from < to; limit = min(2*limit, most) {
		page, err := r.blocks(ctx, [2]int64{from, to}, limit)
		if err != nil {
			return err
		}
		upTo := to
		if len(page) == limit {
			upTo = min(to, page[limit-1].Last+1)
		}
		if err := r.page(ctx, page, from, upTo); err != nil {
			return err
		}
		from = upTo
	}
	return nil
}

// blocks returns blocks with their data. One that was moved after it was found is looked for again; only in a snapshot,
// which goes on seeing it, that is in vain.
func (r *reading) blocks(ctx context.Context, span [2]int64, limit int) (page []storedBlock, err error) {
	err = lookAgain(func() error {
		if page, err = r.x.blocks(ctx, r.d, r.at, span, limit); err != nil {
			return err
		}
		for i := range page {
			if err := r.x.fetch(ctx, &page[i], r.wait); err != nil {
				return err
			}
		}
		return nil
	})
	return page, err
}

// few yields the lines of a short span if all of them are hot, as those that were just written are: blocks need not be
// asked for then. If it is not done, it has yielded none.
func (r *reading) few(ctx context.Context, from, to int64) (done bool, err error) {
	var all []Line
	n, size := 0, 0
	err = r.hot(ctx, from, to, func(l Line) error {
		n++
		size += len(l.Raw)
		if (n == 1 || size <= fewBytes) && l.Index == from+int64(len(all)) {
			all = append(all, l)
		}
		return nil
	})
	if err != nil {
		return false, err
	}
	r.packed = n == 0
	if int64(len(all)) < to-from {
		return false, nil
	}
	for _, l := range all {
		if err := r.yield(l); err != nil {
			return false, err
		}
	}
	return true, nil
}

// hot calls yield with the first pageRows hot lines of a span. Their bytes stay.
func (r *reading) hot(ctx context.Context, from, to int64, yield func(Line) error) error {
	raw := "raw, 0"
	if most := r.span.Most; most > 0 {
		raw = fmt.Sprintf("CASE WHEN length(raw) > %d THEN substr(raw, 1 + %[2]d, %d) ELSE raw END, length(raw)", most,
			r.span.Skip, min(most, server.LongHead))
	}
	return r.d.Query(ctx, `SELECT line, kind, received, `+raw+` FROM lines`+ofPlace+
		` AND line >= ? AND line < ? ORDER BY line LIMIT ?`, r.at.args(from, to, pageRows),
		func(row sqlstore.Scanner) error {
			var l Line
			var kind, size int64
			if err := row.Scan(&l.Index, &kind, &l.Received, &l.Raw, &size); err != nil {
				return fmt.Errorf("read lines: %w", err)
			}
			skip, _ := r.span.Part(size)
			l.Kind, l.Cut = uint8(kind), max(size-skip-int64(len(l.Raw)), 0)
			return yield(l)
		})
}

// page yields the lines of a span, of which page has all blocks.
func (r *reading) page(ctx context.Context, page []storedBlock, from, to int64) error {
	c := cursor{r: r, blocks: page, next: from}
	defer c.close()
	for !r.packed {
		n := 0
		err := r.hot(ctx, c.next, to, func(l Line) error {
			n++
			if err := c.upTo(l.Index); err != nil {
				return err
			}
			c.next = l.Index + 1 // whatever a block has there
			return r.yield(l)
		})
		if err != nil {
			return err
		}
		if n < pageRows {
			break
		}
	}
	return c.upTo(to)
}

// cursor goes through the lines of blocks.
type cursor struct {
	r      *reading
	blocks []storedBlock // from the one that is open on
	next   int64         // the next line that may be yielded
	open   *content
	i      int // the next line of open
}

func (c *cursor) close() {
	if c.open != nil {
		c.r.x.codec.Release(c.open)
		c.open = nil
	}
}

// upTo yields lines up to before to.
func (c *cursor) upTo(to int64) error {
	for len(c.blocks) > 0 && c.blocks[0].First < to && c.next < to {
		b := &c.blocks[0]
		if b.Last >= c.next {
			if err := c.block(&b.Block, to); err != nil {
				return err
			}
		}
		if b.Last >= to {
			break
		}
		c.close()
		c.blocks = c.blocks[1:]
	}
	c.next = max(c.next, to)
	return nil
}

// block yields lines of the first block up to before to.
func (c *cursor) block(b *Block, to int64) error {
	if c.open == nil {
		open, err := c.r.x.codec.OpenHeads(b, c.r.span)
		if err != nil {
			at := c.r.at
			return &server.DamagedError{Stream: at.Stream, Epoch: at.Epoch, Span: server.Span{
				Generation: at.Generation, From: max(c.next, b.First), To: min(b.Last+1, to)}}
		}
		c.open, c.i = open, 0
	}
	for ; c.i < len(c.open.Entries) && c.open.Entries[c.i].Index < to; c.i++ {
		if c.open.Entries[c.i].Index < c.next {
			continue
		}
		if err := c.r.yield(c.open.Line(c.i)); err != nil {
			return err
		}
	}
	return nil
}
