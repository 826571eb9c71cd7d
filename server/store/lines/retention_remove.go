package lines

import (
	"context"
	"fmt"
	"slices"

	"github.com/ccship/ccship/server"

	"github.com/ccship/ccship/server/store/sqlstore"
)

// RemoveRun removes the lines of a run and keeps what is known of them, in a transaction that keeps others from writing
// the stream. The caller has read them in one that wrote nothing since. Blocks that have other lines too are made anew.
func (x *Lines) RemoveRun(ctx context.Context, d sqlstore.Dialect, at Place, r *server.RetiredRun) error {
	if len(r.Lines) == 0 {
		return nil
	}
	gone, bytes := make(map[int64]bool, len(r.Lines)), int64(0)
	for _, l := range r.Lines {
		gone[l.Index], bytes = true, bytes+l.Size+1
	}
	packed, err := x.unpackWithout(ctx, d, at, r, gone)
	if err != nil {
		return err
	}
	hot, err := d.Exec(ctx, `DELETE FROM lines`+ofPlace+` AND line >= ? AND line <= ?`, at.args(r.First, r.Last)...)
	if err != nil {
		return fmt.Errorf("remove retired lines: %w", err)
	}
	if packed+hot < int64(len(r.Lines)) {
		return errSessionChanged // they were retired meanwhile
	}
	_, err = d.Exec(ctx, `UPDATE generations SET bytes = bytes - ?`+ofPlace, append([]any{bytes}, at.args()...)...)
	if err != nil {
		return fmt.Errorf("count bytes: %w", err)
	}
	return InsertRetired(ctx, d, at, r)
}

// unpackWithout takes lines out of the blocks of a run, and returns how many. Each block is read as the ones before
// left it.
func (x *Lines) unpackWithout(ctx context.Context, d sqlstore.Dialect, at Place, r *server.RetiredRun,
	gone map[int64]bool) (n int64, err error) {
	for from := r.First; from <= r.Last; {
		page, err := x.blocks(ctx, d, at, [2]int64{from, r.Last + 1}, 1)
		if err != nil || len(page) == 0 {
			return n, err
		}
		some, err := x.without(ctx, d, at, &page[0], gone)
		if err != nil {
			return n, err
		}
		n, from = n+some, page[0].Last+1
	}
	return n, nil
}

// without makes a block anew without some lines, and returns how many those are. A block of which nothing remains goes,
// unread.
func (x *Lines) without(ctx context.Context, d sqlstore.Dialect, at Place, b *storedBlock,
	gone map[int64]bool) (n int64, err error) {
	entries, err := b.Index()
	if err != nil {
		return 0, nil //nolint:nilerr // what is damaged was not read, and stays
	}
	for _, e := range entries {
		if gone[e.Index] {
			n++
		}
	}
	if n == 0 {
		return 0, nil
	}
	var rest []Line
	if n < int64(len(entries)) {
		all, err := x.linesOf(ctx, b)
		if err != nil || all == nil { // damaged: its lines that go were sent again, and are hot
			return 0, err
		}
		rest = slices.DeleteFunc(all, func(l Line) bool { return gone[l.Index] })
	}
	if err := x.remove(ctx, d, at, b); err != nil || len(rest) == 0 {
		return n, err
	}
	return n, x.pack(ctx, d, at, rest)
}
