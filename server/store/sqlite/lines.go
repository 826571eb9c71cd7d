package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"time"

	"github.com/ccship/ccship/server"

	"github.com/ccship/ccship/server/store/lines"
	"github.com/ccship/ccship/server/store/sqlstore"
)

// packer packs lines later.
type packer struct {
	store  *Store
	sealer *lines.Sealer
	pace   pace // its own: deriving does not wait for it
}

// Seal implements server.Sealer. While lines come in it leaves them most of the time. What it removes is overwritten:
// forgetting removes only what it finds.
func (p *packer) Seal(ctx context.Context, before time.Time) (int64, error) {
	s := p.store
	return p.sealer.Seal(ctx, dialect{s.read}, before, func(at lines.Place, all bool) (made int, more bool, err error) {
		if err := p.pace.wait(ctx, s.idle); err != nil {
			return 0, false, err
		}
		var began time.Time
		err = s.withLazyWriter(ctx, func(c *sql.Conn) error {
			began = time.Now()
			return securely(ctx, c, func() error {
				made, more, err = s.held.Seal(ctx, dialect{c}, at, all)
				return err
			})
		})
		p.pace.took(time.Since(began), false)
		return made, more, err
	})
}

// numbers are those of the snapshots that are open, ascending in the order in which they were opened.
type numbers struct {
	mu   sync.Mutex
	next int64              // guarded by mu
	open map[int64]struct{} // guarded by mu
}

// take gives a snapshot its number, which it has until free is called. It is called before the snapshot is opened.
func (n *numbers) take() (free func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	mine := n.next
	if n.next++; n.open == nil {
		n.open = map[int64]struct{}{}
	}
	n.open[mine] = struct{}{}
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.open, mine)
	}
}

// Now implements cold.Database.
func (p *packer) Now(context.Context) (int64, error) {
	n := &p.store.numbers
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.next, nil
}

// Oldest implements cold.Database. It does not know of other processes.
func (p *packer) Oldest(context.Context) (int64, error) {
	n := &p.store.numbers
	n.mu.Lock()
	defer n.mu.Unlock()
	oldest := n.next
	for open := range n.open {
		oldest = min(oldest, open)
	}
	return oldest, nil
}

// Write implements cold.Database. It leaves lines that come in most of the time. What it removes is overwritten, as by
// Seal.
func (p *packer) Write(ctx context.Context, fn func(sqlstore.Dialect) error) error {
	s := p.store
	if err := p.pace.wait(ctx, s.idle); err != nil {
		return err
	}
	began := time.Now()
	err := s.withWriter(ctx, func(c *sql.Conn) error {
		began = time.Now()
		return securely(ctx, c, func() error { return fn(dialect{c}) })
	})
	p.pace.took(time.Since(began), false)
	return err
}

// writeLines writes a batch's lines and counts their bytes: an import as blocks, others as rows. Lines that the server
// has masked before get their tokens again.
func (s *statements) writeLines(ctx context.Context, at lines.Place, j *lines.Job,
	masked bool) (w sqlstore.Written, err error) {
	d, b, blocks, again := dialect{s.conn}, j.Batch, j.Blocks, []int64(nil)
	if masked {
		if b, again, err = s.masks.Again(ctx, d, at.Stream, b); err != nil {
			return w, err
		}
		if b != j.Batch {
			blocks = nil // what was packed lacks the tokens
		}
	}
	rest, behind, err := s.unstored(ctx, at, b, blocks)
	if err == nil && behind {
		w, err = s.writeBlocks(ctx, at, blocks)
	}
	if err != nil {
		return w, err
	}
	grown := int64(0)
	for _, l := range rest {
		n, changed, err := s.line(ctx, at, l, b)
		if err != nil {
			return w, err
		}
		if !changed {
			continue
		}
		if !w.Any {
			w = sqlstore.Written{Any: true, From: l.Index, To: l.Index + 1}
		}
		grown, w.From, w.To = grown+n, min(w.From, l.Index), max(w.To, l.Index+1)
	}
	if grown != 0 {
		if _, err := s.addBytes.ExecContext(ctx, at.Owner, at.Stream, at.Epoch, at.Generation, grown); err != nil {
			return w, fmt.Errorf("count bytes: %w", err)
		}
	}
	return w, s.masks.Note(ctx, d, at, again)
}

// unstored returns the lines of a batch that must be written as rows. behind: none, because the batch's blocks lie
// behind everything that is stored of their generation.
func (s *statements) unstored(ctx context.Context, at lines.Place, b *server.Batch,
	blocks []lines.Block) (rest []server.Line, behind bool, err error) {
	if len(b.Lines) == 0 {
		return nil, false, nil
	}
	packed, hot := int64(0), int64(0)
	err = s.findEnd.QueryRowContext(ctx, at.Owner, at.Stream, at.Epoch, at.Generation).Scan(&packed)
	if err == nil && blocks != nil {
		err = s.findHotEnd.QueryRowContext(ctx, at.Owner, at.Stream, at.Epoch, at.Generation).Scan(&hot)
	}
	if err != nil {
		return nil, false, fmt.Errorf("look for lines: %w", err)
	}
	if blocks != nil && blocks[0].First >= max(packed, hot) {
		return nil, true, nil
	}
	for _, l := range b.Lines {
		if l.Index < packed {
			rest, err = s.held.Settle(ctx, dialect{s.conn}, at, b)
			return rest, false, err
		}
	}
	return b.Lines, false, nil
}

// writeBlocks writes blocks behind everything that is stored of their generation.
func (s *statements) writeBlocks(ctx context.Context, at lines.Place, blocks []lines.Block) (w sqlstore.Written,
	err error) {
	grown := int64(0)
	for _, b := range blocks {
		_, err := s.insertBlock.ExecContext(ctx, at.Owner, at.Stream, at.Epoch, at.Generation, b.First, b.Last, b.Lines,
			b.RawBytes, b.SHA256, b.Header, b.Data)
		if err != nil {
			return w, fmt.Errorf("write block: %w", err)
		}
		grown += b.RawBytes + b.Lines
	}
	if _, err := s.addBytes.ExecContext(ctx, at.Owner, at.Stream, at.Epoch, at.Generation, grown); err != nil {
		return w, fmt.Errorf("count bytes: %w", err)
	}
	return sqlstore.Written{Any: true, From: blocks[0].First, To: blocks[len(blocks)-1].Last + 1}, nil
}
