package search

import (
	"context"
	"math"
	"time"

	"github.com/ccship/ccship/server/store/sqlstore"
)

// pages reads one part of a segment from its beginning on.
type pages struct {
	d    sqlstore.Dialect
	of   segment
	part int
	list []page
	from int64
	read bool // the last ones are in list
}

func (p *pages) next(ctx context.Context) (page page, more bool, err error) {
	if len(p.list) == 0 && !p.read {
		if err := p.load(ctx); err != nil {
			return page, false, err
		}
	}
	if len(p.list) == 0 {
		return page, false, nil
	}
	page, p.list = p.list[0], p.list[1:]
	return page, true, nil
}

func (p *pages) load(ctx context.Context) error {
	if p.of.bytes <= smallBytes {
		p.read = true
		var data []byte
		err := p.d.Query(ctx, `SELECT data FROM gram_segments WHERE owner = ? AND id = ?`, []any{p.of.owner, p.of.id},
			func(row sqlstore.Scanner) error { return row.Scan(&data) })
		if err != nil {
			return err
		}
		all, err := unpacked(data)
		for _, page := range all {
			if page.Part == p.part {
				p.list = append(p.list, page)
			}
		}
		return err
	}
	err := p.d.Query(ctx, `SELECT first, data FROM gram_pages WHERE owner = ? AND segment = ? AND part = ? AND first >= ?
ORDER BY first LIMIT ?`, []any{p.of.owner, p.of.id, p.part, p.from, readPages}, func(row sqlstore.Scanner) error {
		page := page{Part: p.part}
		err := row.Scan(&page.First, &page.Data)
		p.list = append(p.list, page)
		p.from = page.First + 1
		return err
	})
	p.read = len(p.list) < readPages
	return err
}

// batch writes a segment that is being made.
type batch struct {
	x       *Index
	s       *segment
	list    []page
	bytes   int
	written bool
}

func (b *batch) add(ctx context.Context, p page) error {
	if p.Part == docPage {
		docs, err := readDocs(p)
		if err != nil {
			return err
		}
		for i := range docs {
			b.s.count(&docs[i])
		}
	}
	b.list = append(b.list, p)
	b.bytes += len(p.Data)
	b.s.bytes += int64(len(p.Data))
	if b.bytes < batchBytes {
		return nil
	}
	return b.write(ctx)
}

// write stores what was made so far, if the segment is still there: nothing is left of it otherwise.
func (b *batch) write(ctx context.Context) error {
	err := b.x.db.Write(ctx, func(d sqlstore.Dialect) error {
		n, err := d.Exec(ctx, `UPDATE gram_segments SET until = ? WHERE owner = ? AND id = ? AND level = ?`,
			sqlstore.Micros(time.Now().Add(lease)), b.s.owner, b.s.id, making)
		if err != nil {
			return err
		}
		if n != 1 {
			return errLost
		}
		return insertPages(ctx, d, b.s, b.list)
	})
	b.list, b.bytes, b.written = nil, 0, true
	return err
}

// end writes the rest. A small segment goes into its row.
func (b *batch) end(ctx context.Context) error {
	if !b.written && b.s.bytes <= smallBytes {
		b.s.data = packed(b.list)
		return nil
	}
	return b.write(ctx)
}

// sweep removes segments that nobody reads any more, and those that a process began and did not end.
func (x *Index) sweep(ctx context.Context, owner int64) error {
	var list []int64
	err := x.db.Read(ctx, func(d sqlstore.Dialect) (err error) {
		list, err = sqlstore.List(ctx, d, `SELECT id FROM gram_segments WHERE owner = ? AND level < 0
  AND (level = ? OR until < ?)`, []any{owner, gone, sqlstore.Micros(time.Now())}, scanID)
		return err
	})
	if err != nil {
		return err
	}
	for _, id := range list {
		if err := x.removeSegment(ctx, owner, id); err != nil {
			return err
		}
	}
	return nil
}

func (x *Index) removeSegment(ctx context.Context, owner, id int64) error {
	for removed := int64(math.MaxInt64); removed >= batchPages && ctx.Err() == nil; {
		err := x.db.Write(ctx, func(d sqlstore.Dialect) (err error) {
			_, err = d.Exec(ctx, `UPDATE gram_segments SET level = ? WHERE owner = ? AND id = ?`, gone, owner, id)
			if err != nil {
				return err
			}
			removed, err = d.Exec(ctx, `DELETE FROM gram_pages WHERE owner = ? AND segment = ? AND (part, first) IN (
  SELECT part, first FROM gram_pages WHERE owner = ? AND segment = ? ORDER BY part, first LIMIT ?)`,
				owner, id, owner, id, batchPages)
			return err
		})
		if err != nil {
			return err
		}
	}
	return x.db.Write(ctx, func(d sqlstore.Dialect) error {
		_, err := d.Exec(ctx, `DELETE FROM gram_segments WHERE owner = ? AND id = ? AND level = ?`, owner, id, gone)
		return err
	})
}
