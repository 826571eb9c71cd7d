package search

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store/sqlstore"
)

// turnID names a turn.
type turnID struct{ stream, epoch, generation, line int64 }

// turn is a turn that has a word of the query.
type turn struct {
	turnID
	docs  []*doc // its parts
	in    []uint8
	size  int64
	time  int64
	score float64
	have  []bool
}

// weights is what a word counts in a field.
var weights = [fields]float64{inResult: .05, inOther: .05, inTool: .4, inAnswer: 1, oftenAnswered: 1.2, inPrompt: 4,
	oftenPrompted: 5, inTitle: 6}

const (
	// saturation and lengthShare are k1 and b of BM25.
	saturation  = 1.2
	lengthShare = .4
	// rankBytes is how much of segments one search reads.
	rankBytes = 64 << 20
	// oldView weakens turns and lines that a rewind took out.
	oldView = .5
)

// findTurns finds the turns that have words of the query, scores them and adds them to their sessions.
func (r *ranking) findTurns(ctx context.Context) error {
	if len(r.terms) == 0 {
		return nil
	}
	if err := r.readSegments(ctx); err != nil {
		return err
	}
	var ids []int64
	for _, t := range r.turns {
		ids = append(ids, t.stream)
	}
	if err := r.load(ctx, ids); err != nil {
		return err
	}
	for id, t := range r.turns {
		if !r.seen(t) {
			delete(r.turns, id)
			continue
		}
		if t.docs[0].Kinds&bitsOf([]string{server.HistoryKind}) != 0 {
			delete(r.turns, id)
			r.history = append(r.history, t)
		}
	}
	r.countTurns()
	for _, t := range r.turns {
		r.scoreTurn(t)
		if g := r.groupOf(r.infos[t.stream]); t.score > 0 && g != nil {
			g.add(t)
		}
	}
	return nil
}

// seen leaves out parts of a turn that count no more; false if none is left, or the scope does not see it.
func (r *ranking) seen(t *turn) bool {
	x := r.infos[t.stream]
	if x == nil {
		return false
	}
	t.docs = slices.DeleteFunc(t.docs, func(d *doc) bool {
		_, there := x.epochOf(d)
		return !there || d.Round < x.purged || !x.counts(d, d.Last())
	})
	return len(t.docs) > 0
}

// countTurns counts how many of the found turns have each term, and their mean length. What the scope does not see does
// not count.
func (r *ranking) countTurns() {
	r.df = make([]float64, len(r.terms))
	size := int64(0)
	for _, t := range r.turns {
		for i, in := range t.in {
			if in&^(1<<inResult) != 0 || in != 0 && r.fields != math.MaxUint8 {
				r.df[i]++
			}
		}
		size += t.size
	}
	r.mean = float64(size) / math.Max(1, float64(len(r.turns)))
}

// rarity returns the weight of a term by how few turns have it: BM25's IDF.
func (r *ranking) rarity(i int) float64 {
	n := 2 * float64(len(r.turns))
	return math.Log(1 + (n-r.df[i]+.5)/(r.df[i]+.5))
}

// scoreTurn scores a turn by BM25 over its fields. Titles are of the whole session.
func (r *ranking) scoreTurn(t *turn) {
	t.have = make([]bool, len(r.clauses))
	titles := r.titles[t.stream]
	norm := 1 - lengthShare + lengthShare*float64(t.size)/math.Max(1, r.mean)
	one := func(i int) float64 {
		in, tf := t.in[i], 0.0
		if titles != nil {
			in |= titles[i]
		}
		for f := range fields {
			if in>>f&1 == 1 {
				tf += weights[f]
			}
		}
		return r.rarity(i) * tf * (saturation + 1) / (tf + saturation*norm)
	}
	for i, c := range r.clauses {
		best := 0.0
		for _, a := range c.alts {
			sum, all := 0.0, a.fuzzy()
			for _, k := range a.terms {
				x := one(k)
				sum, all = sum+x, all && x > 0
			}
			if t.have[i] = t.have[i] || all; !all {
				sum /= 2
			}
			best = max(best, sum)
		}
		t.score += best
	}
	if x := r.infos[t.stream]; !slices.ContainsFunc(t.docs, func(d *doc) bool { return x.shows(d, d.First()) }) {
		t.score *= oldView
	}
}

// add counts a turn for its session: a session is as good as its best turn.
func (g *group) add(t *turn) {
	if t.score > g.score {
		g.score, g.time = t.score, t.time
	}
	for i, has := range t.have {
		g.have[i] = g.have[i] || has
	}
	for _, in := range t.in {
		g.in |= in
	}
	i, _ := slices.BinarySearchFunc(g.turns, t, func(a, b *turn) int {
		if a.score > b.score || a.score == b.score && a.time > b.time {
			return -1
		}
		return 1
	})
	g.turns = slices.Insert(g.turns, i, t)
	g.turns = g.turns[:min(len(g.turns), bestTurns)]
}

// readSegments finds the turns in all segments.
func (r *ranking) readSegments(ctx context.Context) error {
	var f sqlstore.Filter
	f.Add(`level >= 0`)
	f.Add(`newest >= ?`, r.since)
	f.Add(`oldest <= ?`, r.upper)
	if r.owners != nil {
		f.Add(`owner IN (`+sqlstore.Marks(len(r.owners))+`)`, sqlstore.Values(r.owners)...)
	}
	list, err := sqlstore.List(ctx, r.d, `SELECT owner, id, bytes,
		data FROM gram_segments `+f.Where()+` ORDER BY newest DESC`,
		f.Args, func(row sqlstore.Scanner) (s segment, err error) {
			return s, row.Scan(&s.owner, &s.id, &s.bytes, &s.data)
		})
	if err != nil {
		return err
	}
	for i := range list {
		if r.used > rankBytes || ctx.Err() != nil {
			r.more = true
			break
		}
		if err := r.readSegment(ctx, &list[i]); err != nil {
			return fmt.Errorf("segment %d: %w", list[i].id, err)
		}
	}
	return nil
}

// readSegment finds the turns of a segment that have a word.
func (r *ranking) readSegment(ctx context.Context, s *segment) error {
	small, err := unpacked(s.data) // of a segment that is kept in its row
	if err != nil {
		return err
	}
	r.used += len(s.data)
	pages, err := r.wordPages(ctx, s, small)
	if err != nil || len(pages) == 0 {
		return err
	}
	at := map[uint32][]uint8{}
	for _, p := range pages {
		wanted := func(k key) bool {
			return slices.Contains(r.terms, term(k>>fieldBits)) && r.fields>>(k&(1<<fieldBits-1))&1 == 1
		}
		err := each(p, math.MaxUint64, wanted, func(k key, docs []uint32) {
			i := slices.Index(r.terms, term(k>>fieldBits))
			for _, n := range docs {
				in := at[n]
				if in == nil {
					in = make([]uint8, len(r.terms))
					at[n] = in
				}
				in[i] |= 1 << (k & (1<<fieldBits - 1))
			}
		})
		if err != nil {
			return err
		}
	}
	if len(at) == 0 {
		return nil
	}
	return r.readTurns(ctx, s, small, at)
}

// wordPages returns the pages that may have the words.
func (r *ranking) wordPages(ctx context.Context, s *segment, small []page) ([]page, error) {
	if small != nil {
		return slices.DeleteFunc(slices.Clone(small), func(p page) bool { return p.Part != gramPage+turnParts }), nil
	}
	var one []string
	var args []any
	for _, t := range r.terms {
		lo, hi := int64(keyOf(t, 0)), int64(keyOf(t, fields-1))
		one = append(one, `SELECT first, data FROM gram_pages WHERE owner = ? AND segment = ? AND part = ? AND first <= ?
  AND first >= coalesce((SELECT max(first) FROM gram_pages
    WHERE owner = ? AND segment = ? AND part = ? AND first <= ?), 0)`)
		args = append(args, s.owner, s.id, gramPage+turnParts, hi, s.owner, s.id, gramPage+turnParts, lo)
	}
	seen := map[int64]bool{}
	var out []page
	err := r.d.Query(ctx, strings.Join(one, ` UNION ALL `), args, func(row sqlstore.Scanner) error {
		p := page{Part: gramPage}
		err := row.Scan(&p.First, &p.Data)
		r.used += len(p.Data)
		if !seen[p.First] {
			seen[p.First] = true
			out = append(out, p)
		}
		return err
	})
	return out, err
}

// readTurns reads the turns with numbers in at.
func (r *ranking) readTurns(ctx context.Context, s *segment, small []page, at map[uint32][]uint8) error {
	wanted := map[int64]bool{}
	lowest, highest := int64(math.MaxInt64), int64(0)
	for n := range at {
		wanted[int64(n/pageDocs)] = true
		lowest, highest = min(lowest, int64(n)), max(highest, int64(n))
	}
	take := func(p page) error {
		if !wanted[p.First/pageDocs] {
			return nil
		}
		docs, err := readDocs(p)
		for i := range docs {
			if in := at[uint32(p.First)+uint32(i)]; in != nil {
				r.takeTurn(&docs[i], in)
			}
		}
		return err
	}
	var err error
	for _, p := range small {
		if p.Part == docPage+turnParts {
			err = errors.Join(err, take(p))
		}
	}
	if small != nil {
		return err
	}
	return r.d.Query(ctx, `SELECT first, data FROM gram_pages WHERE owner = ? AND segment = ? AND part = ?
  AND first >= ? AND first <= ?`, []any{s.owner, s.id, docPage + turnParts, lowest / pageDocs * pageDocs, highest},
		func(row sqlstore.Scanner) error {
			var p page
			if err := row.Scan(&p.First, &p.Data); err != nil {
				return err
			}
			r.used += len(p.Data)
			return take(p)
		})
}

// takeTurn adds a part of a turn.
func (r *ranking) takeTurn(d *doc, in []uint8) {
	for i, x := range in {
		if x>>inTitle&1 == 1 {
			if r.titles[d.Stream] == nil {
				r.titles[d.Stream] = make([]uint8, len(r.terms))
			}
			r.titles[d.Stream][i] |= 1 << inTitle
		}
	}
	if d.Newest() < r.since || d.Oldest() > r.upper {
		return
	}
	id := turnID{d.Stream, d.Epoch, d.Generation, d.Turn}
	t := r.turns[id]
	if t == nil {
		r.turns[id] = &turn{turnID: id, docs: []*doc{d}, in: in, size: d.Size, time: d.Newest()}
		return
	}
	t.docs, t.size, t.time = append(t.docs, d), t.size+d.Size, max(t.time, d.Newest())
	for i, x := range in {
		t.in[i] |= x
	}
}
