package search

import (
	"cmp"
	"container/heap"
	"context"
	"math"
	"slices"

	"github.com/ccship/ccship/server/store/sqlstore"
)

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
