package lines

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ccship/ccship/server"

	"github.com/ccship/ccship/server/store/sqlstore"
)

const (
	// runLines and runBytes bound what one transaction removes.
	runLines = 2000
	runBytes = 4 << 20
)

// takePiece removes the lines of a piece, some in each transaction.
func (a *applying) takePiece(ctx context.Context, s *stream, p piece) error {
	at := p.at(s)
	for span := p.span; span.From < span.To; {
		var n server.RetentionCount
		next := span.To
		err := a.write(ctx, s, func(d sqlstore.Dialect) (err error) {
			n = server.RetentionCount{}
			if n.Lines, n.Bytes, next, err = a.lines.removeSome(ctx, d, at, span, a.how.Now); err != nil || n.Lines == 0 {
				return err
			}
			if !a.seen[at] {
				n.Generations = 1
			}
			_, err = d.Exec(ctx, `UPDATE streams SET cooled = -1 WHERE owner = ? AND id = ?`, s.owner, s.id)
			if err != nil {
				return fmt.Errorf("note what is to be moved: %w", err)
			}
			if err := a.dropFromIndex(ctx, d, s); err != nil {
				return err
			}
			return a.log(ctx, d, s, n)
		})
		if err != nil {
			return err
		}
		a.seen[at] = a.seen[at] || n.Lines > 0
		a.done.Add(n)
		span.From = next
	}
	return nil
}

// removeSome removes the first lines of a span as one run, of which it keeps what is known, in a transaction that keeps
// others from writing the stream. Notes of oversize lines, and what is damaged, stay. next is where it ended.
func (x *Lines) removeSome(ctx context.Context, d sqlstore.Dialect, at Place, s server.Span,
	when time.Time) (lines, bytes, next int64, err error) {
	to := s.To // a run does not reach over lines that were retired before
	err = ReadRetired(ctx, d, RetiredQuery{at, s.From, s.To, false}, func(r *server.RetiredRun) error {
		if r.First > s.From {
			to = min(to, r.First)
		}
		return nil
	})
	if err != nil {
		return 0, 0, 0, err
	}
	run := &server.RetiredRun{At: when}
	next = to
	r := reading{x: x, d: d, at: at, yield: func(l Line) error {
		kind := server.Kind(l.Kind)
		if kind != server.Oversize {
			run.Lines = append(run.Lines, server.RetiredLine{Index: l.Index, Size: int64(len(l.Raw)), Kind: kind,
				SHA256: RetiredHash(l.Raw)})
			bytes += int64(len(l.Raw)) + 1
		}
		if n := len(run.Lines); n == runLines || bytes >= runBytes || kind == server.Oversize && n > 0 {
			next = l.Index + 1
			return errEnough
		}
		return nil
	}}
	err = r.all(ctx, s.From, to)
	n := len(run.Lines)
	damaged, isDamaged := errors.AsType[*server.DamagedError](err)
	_, missed := errors.AsType[*missError](err)
	switch {
	case isDamaged:
		next = damaged.Span.To
	case missed && n > 0: // what has to be brought comes next: not all of it may fit into memory
		next = run.Lines[n-1].Index + 1
	case err != nil && !errors.Is(err, errEnough):
		return 0, 0, 0, err
	}
	return int64(n), bytes, next, x.removeRun(ctx, d, at, run, bytes)
}

// removeRun removes the lines of a run, which were read in the same transaction, and keeps what is known of them.
// Blocks that have other lines too are made anew, each as the ones before left it.
func (x *Lines) removeRun(ctx context.Context, d sqlstore.Dialect, at Place, r *server.RetiredRun, bytes int64) error {
	if len(r.Lines) == 0 {
		return nil
	}
	gone := make(map[int64]bool, len(r.Lines))
	for _, l := range r.Lines {
		gone[l.Index] = true
	}
	first, last := r.Lines[0].Index, r.Lines[len(r.Lines)-1].Index
	for from := first; from <= last; {
		page, err := x.blocks(ctx, d, at, [2]int64{from, last + 1}, 1)
		if err != nil {
			return err
		}
		if len(page) == 0 {
			break
		}
		if err := x.without(ctx, d, at, &page[0], gone); err != nil {
			return err
		}
		from = page[0].Last + 1
	}
	_, err := d.Exec(ctx, `DELETE FROM lines`+ofPlace+` AND line >= ? AND line <= ?`, at.args(first, last)...)
	if err != nil {
		return fmt.Errorf("remove retired lines: %w", err)
	}
	_, err = d.Exec(ctx, `UPDATE generations SET bytes = bytes - ?`+ofPlace, append([]any{bytes}, at.args()...)...)
	if err != nil {
		return fmt.Errorf("count bytes: %w", err)
	}
	return noteRetired(ctx, d, at, r)
}

// without makes a block anew without some lines. One of which nothing remains goes, unread.
func (x *Lines) without(ctx context.Context, d sqlstore.Dialect, at Place, b *storedBlock, gone map[int64]bool) error {
	entries, err := b.Index()
	if err != nil {
		return nil //nolint:nilerr // what is damaged was not read, and stays
	}
	goes := func(e entry) bool { return gone[e.Index] }
	if !slices.ContainsFunc(entries, goes) {
		return nil
	}
	var rest []Line
	if slices.ContainsFunc(entries, func(e entry) bool { return !goes(e) }) {
		all, err := x.linesOf(ctx, b)
		if err != nil || all == nil { // damaged: its lines that go were sent again, and are hot
			return err
		}
		rest = slices.DeleteFunc(all, func(l Line) bool { return gone[l.Index] })
	}
	if err := x.remove(ctx, d, at, b); err != nil || len(rest) == 0 {
		return err
	}
	return x.pack(ctx, d, at, rest)
}
