package search

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/ccship/ccship/server/store/sqlstore"
)

// A ranking reads of each segment which turns have words, and in which fields; from the newest segment on. That tells
// about how well a turn matches. Of more turns than the bound only the best are read and scored, so that a word of
// every turn costs no more in a larger history. Frequent words are looked for no further once many turns have them, and
// next to rarer ones only in segments that have those.

const (
	// MostTurns is how many turns a ranking reads and scores.
	MostTurns = 3000
	// oftenFound is how many times as many turns with a word are enough to choose from.
	oftenFound = 4
	// rankBytes is how much of segments a ranking reads.
	rankBytes = 56 << 20
	// mostSegments is how many segments it looks into.
	mostSegments = 12_000
	// segmentsAtOnce and bytesAtOnce bound the segments that are read at once.
	segmentsAtOnce, bytesAtOnce = 64, 16 << 20
)

// match is the turns of a segment that have words.
type match struct {
	segment
	small []page    // of a segment that is kept in its row
	words []posting // as they are read
	turns []uint32  // ascending
	in    []uint8   // of each of them the fields of all terms
}

// segmentID names a segment.
type segmentID struct{ owner, segment int64 }

func (m *match) segmentID() segmentID { return segmentID{m.owner, m.id} }

// posting is the turns that have a term in a field.
type posting struct {
	term  int
	field field
	turns []uint32
}

// match finds the turns with words in segments, from the newest on.
func (r *ranking) match(ctx context.Context) (found []*match, err error) {
	list, err := r.segments(ctx)
	if err != nil {
		return nil, err
	}
	df, all, most := make([]int, len(r.terms)), 0, r.x.bounds.Segments
	for len(list) > 0 {
		if len(r.terms) > 1 || all >= r.x.bounds.Turns {
			most = r.x.bounds.Segments / 7 * 4
		}
		first, rest := r.essential(df, all)
		if r.used > most || ctx.Err() != nil || len(first) == 0 {
			r.more = true
			break
		}
		n, bytes := 0, int64(0)
		for ; n < min(len(list), segmentsAtOnce) && bytes < bytesAtOnce; n++ {
			bytes += list[n].bytes
			r.used += len(list[n].data)
		}
		some, err := r.matchSome(ctx, list[:n], first, rest)
		if err != nil {
			return nil, err
		}
		for _, m := range some {
			r.count(m, df)
			all += len(m.turns)
		}
		found, list = append(found, some...), list[n:]
	}
	return found, nil
}

// count adds to df the turns of a segment that have each term, and to what is used the page of whose they are, if best
// reads it.
func (r *ranking) count(m *match, df []int) {
	if m.small == nil && (len(r.not) > 0 || r.strict || r.linesOnly) {
		r.used += pageBytes
	}
	for i, in := range m.in {
		if in != 0 {
			df[i%len(df)]++
		}
	}
}

// segments returns the segments that may have something, the newest first.
func (r *ranking) segments(ctx context.Context) ([]*match, error) {
	var f sqlstore.Filter
	f.Add(`level >= 0`)
	f.Add(`newest >= ?`, r.since)
	f.Add(`oldest <= ?`, r.upper)
	if r.owners != nil {
		f.Add(`owner IN (`+sqlstore.Marks(len(r.owners))+`)`, sqlstore.Values(r.owners)...)
	}
	list, err := sqlstore.List(ctx, r.d, `SELECT owner, id, bytes, data FROM gram_segments `+f.Where()+`
ORDER BY newest DESC LIMIT ?`, append(f.Args, mostSegments), func(row sqlstore.Scanner) (*match, error) {
		m := &match{}
		err := row.Scan(&m.owner, &m.id, &m.bytes, &m.data)
		if err == nil {
			m.small, err = unpacked(m.data)
		}
		return m, err
	})
	r.more = r.more || len(list) == mostSegments
	return list, err
}

// essential returns the terms that are looked for in every segment, and those that only matter where one of them is;
// df is how many of the turns found so far have each. All are while these are not too many; then it takes of a name the
// rarest part, and leaves out frequent words. When there are enough turns only excluded words are.
func (r *ranking) essential(df []int, all int) (first, rest []int) {
	least := math.MaxInt
	for i, n := range df {
		if r.inClauses>>i&1 == 1 && n > 0 {
			least = min(least, n)
		}
	}
	leads := map[int]bool{}
	for _, c := range r.clauses {
		for _, a := range c.alts {
			if a.fuzzy() {
				leads[slices.MinFunc(a.terms, func(a, b int) int { return df[a] - df[b] })] = true
			}
		}
	}
	wanted := r.inClauses == 0
	for i, n := range df {
		not := r.inClauses>>i&1 == 0
		rare := leads[i] && n < oftenFound*r.x.bounds.Turns && (n/oftenFound <= least || n <= all/8)
		if not || rare || all <= r.x.bounds.Turns {
			first, wanted = append(first, i), wanted || !not
		} else {
			rest = append(rest, i)
		}
	}
	if !wanted {
		r.more = true
		return first, nil
	}
	return first, rest
}

// matchSome finds the turns of some segments that have the terms first, and what they have of the rest.
func (r *ranking) matchSome(ctx context.Context, list []*match, first, rest []int) ([]*match, error) {
	for i, t := range slices.Concat(first, rest) {
		if i == len(first) {
			list = some(list)
		}
		if err := r.readWord(ctx, list, t); err != nil {
			return nil, err
		}
	}
	list = some(list)
	for _, m := range list {
		m.gather(len(r.terms))
	}
	if r.only == nil {
		return list, nil
	}
	return r.within(ctx, list, func(stream int64) bool { return r.only[stream] })
}

// some returns those that have something.
func some(list []*match) (out []*match) {
	for _, m := range list {
		if len(m.words)+len(m.turns) > 0 {
			out = append(out, m)
		}
	}
	return out
}

// readWord reads which turns have a term.
func (r *ranking) readWord(ctx context.Context, list []*match, i int) error {
	from, to := keyOf(r.terms[i], 0), keyOf(r.terms[i], fields-1)
	wanted := func(k key) bool { return k >= from && k <= to && r.fields>>(k-from)&1 == 1 }
	return r.pages(ctx, list, from, to, func(m *match, p page) error {
		return each(p, from, to, wanted, func(k key, turns []uint32) {
			m.words = append(m.words, posting{i, field(k - from), slices.Clone(turns)})
		})
	})
}

// gather makes of what was read the fields of each turn.
func (m *match) gather(terms int) {
	for _, p := range m.words {
		m.turns = append(m.turns, p.turns...)
	}
	slices.Sort(m.turns)
	m.turns = slices.Compact(m.turns)
	m.in = make([]uint8, len(m.turns)*terms)
	for _, p := range m.words {
		at := 0
		for _, n := range p.turns {
			for m.turns[at] != n {
				at++
			}
			m.in[at*terms+p.term] |= 1 << p.field
		}
	}
	m.words = nil
}

// termsIn returns the fields of all terms in a turn.
func (m *match) termsIn(i int) []uint8 {
	terms := len(m.in) / len(m.turns)
	return m.in[i*terms : (i+1)*terms]
}

// keep leaves out turns.
func (m *match) keep(good func(i int) bool) {
	n, terms := 0, len(m.in)/max(1, len(m.turns))
	for i, turn := range m.turns {
		if good(i) {
			m.turns[n] = turn
			copy(m.in[n*terms:], m.termsIn(i))
			n++
		}
	}
	m.turns, m.in = m.turns[:n], m.in[:n*terms]
}

// within keeps the turns of streams.
func (r *ranking) within(ctx context.Context, list []*match, of func(stream int64) bool) ([]*match, error) {
	keys, err := r.streamKeys(ctx, list, of)
	for _, m := range list {
		m.keep(func(i int) bool { return keys[m][i] != 0 })
	}
	return some(list), err
}

// streamKeys reads of what streams turns are, as keys. It knows only those of some streams, others are 0.
func (r *ranking) streamKeys(ctx context.Context, list []*match, of func(stream int64) bool) (map[*match][]key, error) {
	keys := make(map[*match][]key, len(list))
	for _, m := range list {
		keys[m] = make([]key, len(m.turns))
	}
	wanted := func(k key) bool { return k >= ofStreams && of(streamOf(k)) }
	return keys, r.pages(ctx, list, ofStreams, math.MaxInt64, func(m *match, p page) error {
		return each(p, ofStreams, math.MaxInt64, wanted, func(k key, turns []uint32) {
			at := 0
			for _, n := range turns {
				i, has := slices.BinarySearch(m.turns[at:], n)
				if at += i; has {
					keys[m][at] = k
				}
			}
		})
	})
}

// pages calls yield with the pages of segments that may have keys from one up to another.
func (r *ranking) pages(ctx context.Context, list []*match, from, to key, yield func(*match, page) error) error {
	large := map[segmentID]*match{}
	var args []any
	for _, m := range list {
		if m.small == nil {
			large[m.segmentID()] = m
			args = append(args, m.owner, m.id)
		}
		for _, p := range m.small {
			if p.Part == gramPage+turnParts {
				if err := yield(m, p); err != nil {
					return fmt.Errorf("segment %d: %w", m.id, err)
				}
			}
		}
	}
	for some := range slices.Chunk(args, 2*segmentsAtOnce) {
		args := append(slices.Clone(some), gramPage+turnParts, int64(to), gramPage+turnParts, int64(from))
		err := r.d.Query(ctx, `WITH s (owner, id) AS (VALUES (CAST(? AS bigint), CAST(? AS bigint))`+
			strings.Repeat(`, (?, ?)`, len(some)/2-1)+`)
SELECT s.owner, s.id, p.first, p.data FROM s CROSS JOIN gram_pages p
WHERE p.owner = s.owner AND p.segment = s.id AND p.part = ? AND p.first <= ? AND p.first >= coalesce((
  SELECT max(q.first) FROM gram_pages q
  WHERE q.owner = s.owner AND q.segment = s.id AND q.part = ? AND q.first <= ?), 0)`,
			args, func(row sqlstore.Scanner) error {
				var of segmentID
				p := page{Part: gramPage}
				if err := row.Scan(&of.owner, &of.segment, &p.First, &p.Data); err != nil {
					return err
				}
				r.used += len(p.Data)
				if err := yield(large[of], p); err != nil {
					return fmt.Errorf("segment %d: %w", of.segment, err)
				}
				return nil
			})
		if err != nil {
			return err
		}
	}
	return nil
}
