package lines

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ccship/ccship/server"

	"github.com/ccship/ccship/server/store/sqlstore"
)

const (
	// runLines and runBytes bound what one transaction removes.
	runLines = 2000
	runBytes = 4 << 20
)

// takeEpoch removes pieces of one epoch, while it reads them.
func (a *applying) takeEpoch(ctx context.Context, s *stream, name string, pieces []piece) (err error) {
	was, err := stampOf(ctx, a.reader, s)
	if err != nil {
		return err
	}
	snap, err := a.catalog.Open(ctx, server.Ref{Stream: s.id, Epoch: name})
	if errors.Is(err, server.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, snap.Close()) }()
	c := &collector{a: a, ctx: ctx, s: s, was: was}
	for _, p := range pieces {
		if err := c.takePiece(snap, p); err != nil {
			return err
		}
	}
	return nil
}

// collector makes runs of lines, and has each removed.
type collector struct {
	a     *applying
	ctx   context.Context // of one walk
	s     *stream
	was   stamp
	stops []int64 // where lines were retired before: a run does not reach over them
	run   *server.RetiredRun
	at    Place
	bytes int64
}

// takePiece removes the lines of a piece.
func (c *collector) takePiece(snap server.Snapshot, p piece) error {
	c.at = Place{Owner: c.s.owner, Stream: c.s.id, Epoch: p.epoch, Generation: p.span.Generation}
	c.stops = nil
	err := snap.Retired(c.ctx, p.span, false, func(r *server.RetiredRun) error {
		c.stops = append(c.stops, r.First)
		return nil
	})
	if err == nil {
		err = server.Readable(c.ctx, snap, p.span, c.addLine, func(*server.DamagedError) {}) // what is damaged stays
	}
	if err != nil {
		return err
	}
	return c.flush()
}

// addLine adds a stored line to the run, or ends it.
func (c *collector) addLine(l server.Line) error {
	if l.Kind == server.Oversize || c.run != nil && c.ends(l.Index) {
		if err := c.flush(); err != nil || l.Kind == server.Oversize {
			return err
		}
	}
	if c.run == nil {
		c.run = &server.RetiredRun{First: l.Index, At: c.a.how.Now}
	}
	c.run.Last = l.Index
	c.run.Lines = append(c.run.Lines, server.RetiredLine{Index: l.Index, Size: int64(len(l.Raw)), Kind: l.Kind,
		SHA256: RetiredHash(l.Raw)})
	c.bytes += int64(len(l.Raw)) + 1
	return nil
}

// ends reports whether a line begins another run.
func (c *collector) ends(line int64) bool {
	return len(c.run.Lines) >= runLines || c.bytes >= runBytes || slices.ContainsFunc(c.stops, func(stop int64) bool {
		return c.run.Last < stop && stop <= line
	})
}

// flush removes the run, if there is one.
func (c *collector) flush() error {
	run, bytes, a := c.run, c.bytes, c.a
	c.run, c.bytes = nil, 0
	if run == nil {
		return nil
	}
	n := server.RetentionCount{Lines: int64(len(run.Lines)), Bytes: bytes}
	if !a.seen[c.at] {
		a.seen[c.at], n.Generations = true, 1
	}
	err := a.write(c.ctx, c.s, &c.was, func(d sqlstore.Dialect) error {
		if err := a.lines.RemoveRun(c.ctx, d, c.at, run); err != nil {
			return err
		}
		_, err := d.Exec(c.ctx, `UPDATE streams SET cooled = -1 WHERE owner = ? AND id = ?`, c.s.owner, c.s.id)
		if err != nil {
			return fmt.Errorf("note what is to be moved: %w", err)
		}
		if err := a.dropFromIndex(c.ctx, d, c.s); err != nil {
			return err
		}
		return a.log(c.ctx, d, c.s, n)
	})
	if err == nil {
		a.done.Add(n)
	}
	return err
}
