package lines

import (
	"context"
	"errors"
	"fmt"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/digest"

	"github.com/ccship/ccship/server/store/sqlstore"
)

const (
	// runLines and runBytes bound what one transaction removes.
	runLines = 2000
	runBytes = 4 << 20
)

// epoch removes pieces of one epoch, while it reads them.
func (a *applying) epoch(ctx context.Context, s *stream, name string, pieces []piece) (err error) {
	was, err := stampOf(ctx, a.reader, s, "")
	if err != nil {
		return err
	}
	snap, err := a.db.Open(ctx, server.Ref{Stream: s.id, Epoch: name})
	if errors.Is(err, server.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, snap.Close()) }()
	c := &collector{a: a, ctx: ctx, s: s, was: was, pieces: pieces}
	for _, g := range snap.Generations() {
		c.starts = append(c.starts, g.RewoundTo)
	}
	_, err = digest.Walk(ctx, snap, c.visit)
	return err
}

// collector makes runs of lines, and has each removed.
type collector struct {
	a      *applying
	ctx    context.Context // of one walk
	s      *stream
	was    stamp
	pieces []piece
	starts []int64 // of generations: a run ends there, so that their digests go on
	run    *server.RetiredRun
	at     Place
	bytes  int64
}

// visit is called with each stored line in order. A nil line ends a run.
func (c *collector) visit(generation int64, l *server.Line, before *digest.Running) error {
	i := -1
	if l != nil && l.Kind != server.Oversize {
		for n, p := range c.pieces {
			if p.span.Generation == generation && p.span.From <= l.Index && l.Index < p.span.To {
				i = n
			}
		}
	}
	if c.run != nil && (i < 0 || c.ends(l)) {
		if err := c.flush(before); err != nil {
			return err
		}
	}
	if i < 0 {
		return nil
	}
	if c.run == nil {
		c.run = &server.RetiredRun{First: l.Index, At: c.a.how.Now, Before: before.Sum()}
		c.at = Place{Owner: c.s.owner, Stream: c.s.id, Epoch: c.pieces[i].epoch, Generation: generation}
	}
	c.run.Last = l.Index
	c.run.Lines = append(c.run.Lines, server.RetiredLine{Index: l.Index, Size: int64(len(l.Raw)), Kind: l.Kind,
		SHA256: RetiredHash(l.Raw)})
	c.bytes += int64(len(l.Raw)) + 1
	return nil
}

// ends reports whether a line begins another run.
func (c *collector) ends(l *server.Line) bool {
	if len(c.run.Lines) >= runLines || c.bytes >= runBytes {
		return true
	}
	for _, start := range c.starts {
		if c.run.Last < start && start <= l.Index {
			return true
		}
	}
	return false
}

// flush removes the run.
func (c *collector) flush(behind *digest.Running) (err error) {
	run, bytes, a := c.run, c.bytes, c.a
	c.run, c.bytes = nil, 0
	if run.State, err = behind.State(); err != nil {
		return err
	}
	n := server.RetentionCount{Lines: int64(len(run.Lines)), Bytes: bytes}
	if !a.seen[c.at] {
		a.seen[c.at], n.Generations = true, 1
	}
	err = a.write(c.ctx, c.s, &c.was, func(d sqlstore.Dialect) error {
		if err := a.held.Retire(c.ctx, d, c.at, run); err != nil {
			return err
		}
		_, err := d.Exec(c.ctx, `DELETE FROM cold_streams WHERE owner = ? AND stream = ?`, c.s.owner, c.s.id)
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
