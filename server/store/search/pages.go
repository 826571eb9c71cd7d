package search

import (
	"cmp"
	"container/heap"
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"

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

// segments are those that a search may read, newest first. Of everybody they are read as the search comes to them: what
// it finds in the newest is mostly all that it shows, however many owners there are.
type segments struct {
	cursors  byTime  // that may have something
	below    int64   // no segment that is not among them has a later time
	last     segment // the one that was listed last, of everybody's
	everyone bool    // more are to be listed
	most     int     // at once
}

const (
	// firstListed and mostListed are how many segments of everybody are listed at once, first and at most.
	firstListed, mostListed = 32, 512
	// maxValues is how many values one query has at most.
	maxValues = 500
)

// segments finds what the search begins with.
func (s *search) segments(ctx context.Context) (*segments, error) {
	x := &segments{below: math.MinInt64}
	if s.of != nil && s.of.owners == nil || s.of == nil && s.scope.All && s.q.Session == "" && s.q.User == 0 {
		x.everyone, x.below, x.most = true, math.MaxInt64, firstListed
		return x, nil
	}
	owners, some, err := s.owners(ctx)
	if err != nil || !some {
		return x, err
	}
	for list := range slices.Chunk(owners, maxValues) {
		var f sqlstore.Filter
		f.Add(`owner IN (`+sqlstore.Marks(len(list))+`)`, sqlstore.Values(list)...)
		if err := s.list(ctx, x, f, ``); err != nil {
			return x, err
		}
	}
	heap.Init(&x.cursors)
	return x, nil
}

// list adds segments, in an order, and keeps which was the last one.
func (s *search) list(ctx context.Context, x *segments, f sqlstore.Filter, order string, args ...any) error {
	f.Add(`level >= 0`)
	f.Add(`newest >= ?`, s.since)
	f.Add(`oldest <= ?`, s.upper)
	return s.d.Query(ctx, `SELECT owner, id, docs, newest, bytes FROM gram_segments `+f.Where()+order,
		append(f.Args, args...), func(row sqlstore.Scanner) error {
			c := &cursor{}
			err := row.Scan(&c.owner, &c.id, &c.docs, &c.newest, &c.bytes)
			x.cursors, x.last = append(x.cursors, c), c.segment
			return err
		})
}

// top returns the cursor whose next candidate may be the newest; nil when there is none.
func (s *search) top(ctx context.Context, x *segments) (*cursor, error) {
	for x.everyone && (len(x.cursors) == 0 || x.cursors[0].newestNext() < x.below) {
		var f sqlstore.Filter
		if x.below != math.MaxInt64 {
			f.Add(`newest <= ?`, x.below)
			f.Add(`(newest < ? OR owner > ? OR owner = ? AND id > ?)`, x.below, x.last.owner, x.last.owner, x.last.id)
		}
		n := len(x.cursors)
		if err := s.list(ctx, x, f, ` ORDER BY newest DESC, owner, id LIMIT ?`, x.most); err != nil {
			return nil, err
		}
		x.everyone, x.below = len(x.cursors)-n == x.most, x.last.newest
		x.most = min(2*x.most, mostListed)
		heap.Init(&x.cursors)
	}
	if len(x.cursors) == 0 {
		return nil, nil //nolint:nilnil // that is the end
	}
	return x.cursors[0], nil
}

// owners returns whose segments are read; false: nobody's.
func (s *search) owners(ctx context.Context) (list []int64, some bool, err error) {
	ask := func(query string, args ...any) error {
		return s.d.Query(ctx, query, args, func(row sqlstore.Scanner) error {
			var owner int64
			err := row.Scan(&owner)
			if !slices.Contains(list, owner) {
				list = append(list, owner)
			}
			return err
		})
	}
	switch {
	case s.of != nil:
		return s.of.owners, len(s.of.owners) > 0, nil
	case s.q.Session != "":
		s.only = map[int64]bool{}
		f := s.chosen()
		err = s.d.Query(ctx, `SELECT s.id, s.owner FROM streams s `+f.Where(), f.Args, func(row sqlstore.Scanner) error {
			var id, owner int64
			err := row.Scan(&id, &owner)
			s.only[id] = true
			if !slices.Contains(list, owner) {
				list = append(list, owner)
			}
			return err
		})
	case s.q.User != 0:
		list = []int64{s.q.User}
	case s.scope.User != 0:
		list = []int64{s.scope.User}
		err = ask(`SELECT DISTINCT owner FROM shares WHERE with_user = ?`, s.scope.User)
	}
	return list, len(list) > 0, err
}

// byTime is a heap: on top the cursor whose next candidate may be the newest.
type byTime []*cursor

func (h byTime) Len() int           { return len(h) }
func (h byTime) Less(i, k int) bool { return cmp.Less(h[k].newestNext(), h[i].newestNext()) }
func (h byTime) Swap(i, k int)      { h[i], h[k] = h[k], h[i] }

// Push implements heap.Interface.
func (h *byTime) Push(x any) { *h = append(*h, x.(*cursor)) }

// Pop implements heap.Interface.
func (h *byTime) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}

// maxPage bounds what a page becomes.
const maxPage = 64 << 20

var coders = sync.OnceValues(func() (*zstd.Encoder, *zstd.Decoder) {
	// Neither fails: the options are right.
	e, _ := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
		zstd.WithEncoderCRC(false), zstd.WithLowerEncoderMem(true))
	d, _ := zstd.NewReader(nil, zstd.WithDecoderMaxMemory(maxPage), zstd.WithDecoderLowmem(true))
	return e, d
})

func squeeze(data []byte) []byte {
	e, _ := coders()
	return e.EncodeAll(data, nil)
}

func unsqueeze(data []byte) ([]byte, error) {
	_, d := coders()
	out, err := d.DecodeAll(data, nil)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errCorrupt, err)
	}
	return out, nil
}

// placed is a gram and its position in the order in which they came.
type placed struct {
	key key
	at  uint32
}

const (
	// fewGrams are sorted by comparing.
	fewGrams = 1 << 10
	// digitBits is what one pass sorts by. Two digits are a character; most have only the lower one.
	digitBits = 11
	digits    = 6
)

// digit returns a part of a key: 0 the lowest.
func digit(k key, n int) key { return k >> (n/2*runeBits + n%2*digitBits) & (1<<(digitBits-n%2) - 1) }

// sorted returns grams in the order of their keys, digit by digit: each is another.
func sorted(grams []key) []placed {
	out := make([]placed, len(grams))
	for i, k := range grams {
		out[i] = placed{k, uint32(i)}
	}
	if len(out) < fewGrams {
		slices.SortFunc(out, func(x, y placed) int { return cmp.Compare(x.key, y.key) })
		return out
	}
	var counts [digits][1 << digitBits]uint32
	for _, k := range grams {
		for n := range digits {
			counts[n][digit(k, n)]++
		}
	}
	other := make([]placed, len(out))
	for n := range digits {
		at := &counts[n]
		if at[digit(grams[0], n)] == uint32(len(grams)) {
			continue // all have the same
		}
		sum := uint32(0)
		for i, count := range at {
			at[i], sum = sum, sum+count
		}
		for _, p := range out {
			d := digit(p.key, n)
			other[at[d]] = p
			at[d]++
		}
		out, other = other, out
	}
	return out
}
