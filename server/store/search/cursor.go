package search

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ccship/ccship/server/store/sqlstore"
)

// cursor goes through the candidates of one segment, newest first.
type cursor struct {
	segment
	open  bool
	small []page   // of a segment that is kept in its row
	list  []uint32 // candidates that are left, ascending
	all   bool     // every doc is a candidate: left are those below docs
	page  []doc    // the docs from number first on
	first int64
	doc   *doc // the next candidate; nil before open
}

// newestNext returns the time that the next candidate has, or no later one.
func (c *cursor) newestNext() int64 {
	if c.doc != nil {
		return c.doc.Newest()
	}
	return c.newest
}

// next makes the next candidate the current one; false when there is none.
func (s *search) next(ctx context.Context, c *cursor) (bool, error) {
	if !c.open {
		if err := s.openSegment(ctx, c); err != nil {
			return false, fmt.Errorf("segment %d: %w", c.id, err)
		}
		c.open = true
	}
	var n int64
	switch {
	case c.all && c.docs > 0:
		c.docs--
		n = c.docs
	case !c.all && len(c.list) > 0:
		n = int64(c.list[len(c.list)-1])
		c.list = c.list[:len(c.list)-1]
	default:
		return false, nil
	}
	if c.page == nil || n < c.first {
		if err := s.loadDocs(ctx, c, n); err != nil {
			return false, fmt.Errorf("segment %d: %w", c.id, err)
		}
	}
	if n-c.first >= int64(len(c.page)) {
		return false, fmt.Errorf("segment %d has no doc %d: %w", c.id, n, errCorrupt)
	}
	c.doc = &c.page[n-c.first]
	return true, nil
}

// openBytes is what opening a segment costs next to reading it, in bytes of the budget: of everybody there are many.
const openBytes = 4 << 10

// openSegment finds the candidates.
func (s *search) openSegment(ctx context.Context, c *cursor) error {
	s.spend(openBytes)
	if c.bytes <= smallBytes {
		err := s.d.Query(ctx, `SELECT data FROM gram_segments WHERE owner = ? AND id = ?`, []any{c.owner, c.id},
			func(row sqlstore.Scanner) error { return row.Scan(&c.data) })
		if err != nil {
			return err
		}
		s.spend(len(c.data))
		if c.small, err = unpacked(c.data); err != nil {
			return err
		}
	}
	switch {
	case len(s.plan.All) > 0:
		return s.withAll(ctx, c)
	case len(s.plan.Any) > 0:
		return s.withAny(ctx, c)
	}
	c.all = true
	return nil
}

// withAll makes the docs that have all grams of the plan the candidates. It begins with the gram that a segment before
// did not have: most segments that do not have a rare word are left after one page.
func (s *search) withAll(ctx context.Context, c *cursor) error {
	all := s.plan.All
	for i, part := range [][]key{all[:1], all[1:]} {
		if len(part) == 0 {
			break
		}
		lists, err := s.listsOf(ctx, c, part)
		if err != nil {
			return err
		}
		for n, k := range part {
			if i+n == 0 {
				c.list = lists[k]
			} else {
				c.list = both(c.list, lists[k])
			}
			if len(lists[k]) == 0 {
				all[0], all[i+n] = all[i+n], all[0]
				return nil
			}
		}
	}
	return nil
}

// listsOf returns the docs of a segment that have each of some grams.
func (s *search) listsOf(ctx context.Context, c *cursor, keys []key) (map[key][]uint32, error) {
	pages, err := s.pagesOf(ctx, c, keys)
	if err != nil {
		return nil, err
	}
	lists := map[key][]uint32{}
	for _, p := range pages {
		err := each(p, slices.Min(keys), slices.Max(keys), func(k key) bool { return slices.Contains(keys, k) },
			func(k key, docs []uint32) { lists[k] = slices.Clone(docs) })
		if err != nil {
			return nil, err
		}
	}
	return lists, nil
}

// pagesOf returns the pages that have grams, if the segment has them.
func (s *search) pagesOf(ctx context.Context, c *cursor, keys []key) ([]page, error) {
	if c.small != nil {
		return slices.DeleteFunc(slices.Clone(c.small), func(p page) bool { return p.Part != gramPage }), nil
	}
	var one []string
	var args []any
	for _, k := range keys {
		one = append(one, `SELECT * FROM (SELECT first, data FROM gram_pages
WHERE owner = ? AND segment = ? AND part = 1 AND first <= ? ORDER BY first DESC LIMIT 1) AS p`)
		args = append(args, c.owner, c.id, int64(k))
	}
	seen := map[int64]bool{}
	var out []page
	err := s.d.Query(ctx, strings.Join(one, ` UNION ALL `), args, func(row sqlstore.Scanner) error {
		p := page{Part: gramPage}
		err := row.Scan(&p.First, &p.Data)
		s.spend(len(p.Data))
		if !seen[p.First] {
			seen[p.First] = true
			out = append(out, p)
		}
		return err
	})
	return out, err
}

// withAny makes the docs that have a gram of a range the candidates.
func (s *search) withAny(ctx context.Context, c *cursor) error {
	r := s.plan.Any[0]
	has := make([]bool, c.docs)
	keep := func(p page) error {
		return each(p, r.From, r.To, func(k key) bool { return k >= r.From && k <= r.To }, func(_ key, docs []uint32) {
			for _, d := range docs {
				if int64(d) < c.docs {
					has[d] = true
				}
			}
		})
	}
	var err error
	for _, p := range c.small {
		if p.Part == gramPage && err == nil {
			err = keep(p)
		}
	}
	if c.small == nil {
		err = s.d.Query(ctx, `SELECT first, data FROM gram_pages WHERE owner = ? AND segment = ? AND part = 1
  AND first <= ? AND first >= coalesce((SELECT max(first) FROM gram_pages
    WHERE owner = ? AND segment = ? AND part = 1 AND first <= ?), 0) ORDER BY first`,
			[]any{c.owner, c.id, int64(r.To), c.owner, c.id, int64(r.From)}, func(row sqlstore.Scanner) error {
				p := page{Part: gramPage}
				if err := row.Scan(&p.First, &p.Data); err != nil {
					return err
				}
				s.spend(len(p.Data))
				return keep(p)
			})
	}
	for d, yes := range has {
		if yes {
			c.list = append(c.list, uint32(d))
		}
	}
	return err
}

// each calls yield with the wanted grams of a page, none of which is outside first and last.
func each(p page, first, last key, wanted func(key) bool, yield func(key, []uint32)) error {
	g := readGrams(p)
	g.seek(first)
	for {
		k, docs, more, err := g.Next(wanted)
		if err != nil || !more || k > last {
			return err
		}
		if wanted(k) {
			yield(k, docs)
		}
	}
}

// loadDocs reads the page that has a doc.
func (s *search) loadDocs(ctx context.Context, c *cursor, n int64) (err error) {
	page := page{}
	for _, p := range c.small {
		if p.Part == docPage && p.First <= n {
			page = p
		}
	}
	if c.small == nil {
		err = s.d.Query(ctx, `SELECT first, data FROM gram_pages
WHERE owner = ? AND segment = ? AND part = 0 AND first <= ? ORDER BY first DESC LIMIT 1`,
			[]any{c.owner, c.id, n}, func(row sqlstore.Scanner) error { return row.Scan(&page.First, &page.Data) })
		s.spend(len(page.Data))
	}
	if err != nil {
		return err
	}
	c.first = page.First
	c.page, err = readDocs(page)
	return err
}
