package search

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ccship/ccship/server"
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

// stream is what a search knows of a stream that its query chooses.
type stream struct {
	owner  int64
	round  int64
	at     server.Position // derived so far
	epochs []epoch         // newest first
	origin string          // see server.Summary
	copy   int64
}

type epoch struct {
	id          int64 // its rank
	name        string
	generations []generation
}

type generation struct{ number, from int64 }

// derived says how far a stream is derived, and in which round.
const derived = `s.round, coalesce(p.epoch, 0), coalesce(p.generation, 0), coalesce(p.line, 0)`

// counts reports whether a line of a doc still counts: later rounds have not come to it.
func (s *stream) counts(d *doc, line int64) bool {
	if d.Round == s.round {
		return true
	}
	p := s.at
	switch {
	case d.Epoch != p.Epoch:
		return d.Epoch > p.Epoch
	case d.Generation != p.Generation:
		return d.Generation > p.Generation
	}
	return line >= p.Line
}

// epochOf returns the name of a doc's epoch; false when it is not there any more.
func (s *stream) epochOf(d *doc) (string, bool) {
	i := slices.IndexFunc(s.epochs, func(e epoch) bool { return e.id == d.Epoch })
	if i < 0 {
		return "", false
	}
	return s.epochs[i].name, true
}

// shows reports whether the newest view has a line: no newer generation begins at or before it, and no epoch is newer.
func (s *stream) shows(d *doc, line int64) bool {
	if s.epochs[0].id != d.Epoch {
		return false
	}
	for _, g := range s.epochs[0].generations {
		if g.number > d.Generation && g.from <= line {
			return false
		}
	}
	return true
}

// stream returns one that the query chooses, nil for others.
func (s *search) stream(ctx context.Context, id int64) (*stream, error) {
	if x, known := s.streams[id]; known {
		return x, nil
	}
	f := s.chosen()
	f.Add(`s.id = ?`, id)
	var x *stream
	err := s.d.Query(ctx, `SELECT s.owner, `+derived+`, coalesce(m.models, ''), coalesce(m.origin, ''), coalesce(m.copy, 0)
FROM streams s LEFT JOIN folds p ON p.owner = s.owner AND p.stream = s.id
LEFT JOIN facts m ON m.owner = s.owner AND m.stream = s.id `+f.Where(), f.Args,
		func(row sqlstore.Scanner) error {
			var found stream
			var models string
			err := row.Scan(&found.owner, &found.round, &found.at.Epoch, &found.at.Generation, &found.at.Line, &models,
				&found.origin, &found.copy)
			if err == nil && (s.q.Model == "" || strings.Contains(models, "\n"+s.q.Model+"\n")) {
				x = &found
			}
			return err
		})
	if err == nil && x != nil {
		err = s.loadEpochs(ctx, id, x)
	}
	if err != nil {
		return nil, err
	}
	if x != nil && len(x.epochs) == 0 {
		x = nil
	}
	s.streams[id] = x
	return x, nil
}

// chosen lets through the streams s that the query chooses.
func (s *search) chosen() sqlstore.Filter {
	if s.of != nil {
		return s.of.filter()
	}
	var f sqlstore.Filter
	f.Scope(s.scope)
	f.Project(s.scope, s.q.Project)
	f.Streams(s.q.Machine, s.q.User)
	if s.q.Session != "" {
		f.Session(s.q.Session, true)
	}
	return f
}

func (s *search) loadEpochs(ctx context.Context, id int64, x *stream) error {
	query, args := selectEpochs+` e.owner = ? AND e.stream = ?`, []any{x.owner, id}
	err := s.d.Query(ctx, query, args, func(row sqlstore.Scanner) error {
		_, e, g, err := scanEpoch(row)
		x.addEpoch(e, g)
		return err
	})
	x.sortEpochs()
	return err
}

func scanEpoch(row sqlstore.Scanner) (of int64, e epoch, g generation, err error) {
	return of, e, g, row.Scan(&of, &e.id, &e.name, &g.number, &g.from)
}

// addEpoch adds a generation of an epoch.
func (s *stream) addEpoch(e epoch, g generation) {
	i := slices.IndexFunc(s.epochs, func(o epoch) bool { return o.id == e.id })
	if i < 0 {
		s.epochs = append(s.epochs, e)
		i = len(s.epochs) - 1
	}
	s.epochs[i].generations = append(s.epochs[i].generations, g)
}

func (s *stream) sortEpochs() {
	slices.SortFunc(s.epochs, func(a, b epoch) int { return int(b.id - a.id) })
}
