package lines

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ccship/ccship/server"

	"github.com/ccship/ccship/server/store/sqlstore"
)

// ErrGone refuses to retire lines that are not there any more.
var ErrGone = errors.New("lines were retired meanwhile")

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
	where, args := ofGeneration(at)
	args = append(args, r.First, r.Last)
	hot, err := d.Exec(ctx, `DELETE FROM lines WHERE `+where+` AND line >= ? AND line <= ?`, args...)
	if err != nil {
		return fmt.Errorf("remove retired lines: %w", err)
	}
	if packed+hot < int64(len(r.Lines)) {
		return ErrGone
	}
	where, args = ofGeneration(at)
	if _, err := d.Exec(ctx, `UPDATE generations SET bytes = bytes - ? WHERE `+where,
		append([]any{bytes}, args...)...); err != nil {
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
		if err := x.fetch(ctx, at, b, false); err != nil {
			return 0, err
		}
		all, err := x.unpack(&b.Block)
		if err != nil {
			return 0, err
		}
		rest = slices.DeleteFunc(all, func(l Line) bool { return gone[l.Index] })
	}
	if err := x.remove(ctx, d, at, b); err != nil || len(rest) == 0 {
		return n, err
	}
	return n, x.pack(ctx, d, at, rest)
}

// Measure counts lines of a span that retention can remove, and their bytes: all but notes of oversize lines.
func (x *Lines) Measure(ctx context.Context, d sqlstore.Dialect, at Place, s server.Span) (n, bytes int64, err error) {
	at.Generation = s.Generation
	where, args := ofGeneration(at)
	over := map[int64]bool{}
	err = d.Query(ctx, `SELECT line, kind, length(raw) FROM lines WHERE `+where+` AND line >= ? AND line < ?`,
		append(args, s.From, s.To), func(row sqlstore.Scanner) error {
			var line, kind, size int64
			err := row.Scan(&line, &kind, &size)
			if over[line] = true; server.Kind(kind) != server.Oversize {
				n, bytes = n+1, bytes+size+1
			}
			return err
		})
	if err != nil {
		return 0, 0, fmt.Errorf("measure lines: %w", err)
	}
	query, args := overlapping(`first, last, lines, raw_bytes, header`, at, s.From, s.To)
	err = d.Query(ctx, query, args, func(row sqlstore.Scanner) error {
		var b Block
		if err := row.Scan(&b.First, &b.Last, &b.Lines, &b.RawBytes, &b.Header); err != nil {
			return err
		}
		entries, _ := b.Index() // what is damaged stays
		for _, e := range entries {
			if e.Index >= s.From && e.Index < s.To && !over[e.Index] && server.Kind(e.Kind) != server.Oversize {
				n, bytes = n+1, bytes+e.Size+1
			}
		}
		return nil
	})
	if err != nil {
		return 0, 0, fmt.Errorf("measure blocks: %w", err)
	}
	return n, bytes, nil
}
