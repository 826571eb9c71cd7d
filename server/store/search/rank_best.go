package search

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/ccship/ccship/server/store/sqlstore"
)

// best returns the turns to be read: of too many those that match best, the newest of equal ones. What an exact phrase
// or an excluded word leaves out is left out before.
func (r *ranking) best(ctx context.Context, list []*match) (_ []*match, err error) {
	if count(list) > r.x.bounds.Turns && len(r.not) > 0 {
		list, err = r.without(ctx, list)
	}
	if err == nil && count(list) > r.x.bounds.Turns && (r.strict || r.linesOnly) {
		list, err = r.ofGroups(ctx, list)
	}
	if err != nil || count(list) <= r.x.bounds.Turns {
		return list, err
	}
	r.more = true
	r.guess(list)
	type place struct {
		score float64
		m, i  int
	}
	var all []place
	have, past := make([]bool, len(r.clauses)), 0
	for k, m := range list {
		for i := range m.turns {
			score := r.bm25(m.termsIn(i), nil, 1, have)
			if r.excludes(m.termsIn(i)) { // in a history
				score, past = math.Inf(1), past+1
			}
			all = append(all, place{score, k, i})
		}
	}
	slices.SortFunc(all, func(a, b place) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.m, b.m), cmp.Compare(b.i, a.i))
	})
	all = slices.Delete(all, min(past, r.x.bounds.Turns/2), past)
	good := make([][]bool, len(list))
	for _, p := range all[:min(len(all), r.x.bounds.Turns)] {
		if good[p.m] == nil {
			good[p.m] = make([]bool, len(list[p.m].turns))
		}
		good[p.m][p.i] = true
	}
	for k, m := range list {
		m.keep(func(i int) bool { return good[k] != nil && good[k][i] })
	}
	return some(list), nil
}

func count(list []*match) (n int) {
	for _, m := range list {
		n += len(m.turns)
	}
	return n
}

// guess counts how many turns have each term by what was found.
func (r *ranking) guess(list []*match) {
	r.df, r.counted = make([]float64, len(r.terms)), float64(count(list))
	for _, m := range list {
		for i, in := range m.in {
			if r.tells(in) {
				r.df[i%len(r.terms)]++
			}
		}
	}
}

// without leaves out the turns of streams that have excluded words, and notes whose they are: all of a session is left
// out. Prompts of a history are of many sessions: excludePast finds these.
func (r *ranking) without(ctx context.Context, list []*match) ([]*match, error) {
	streams := map[int64]bool{}
	keys, err := r.streamKeys(ctx, list, func(int64) bool { return true })
	for m, of := range keys {
		for i, k := range of {
			if k&ofHistory == 0 && r.excludes(m.termsIn(i)) {
				streams[streamOf(k)] = true
			}
		}
	}
	for some := range slices.Chunk(slices.Collect(maps.Keys(streams)), maxValues) {
		var f sqlstore.Filter
		f.Add(`s.id IN (`+sqlstore.Marks(len(some))+`)`, sqlstore.Values(some)...)
		if err == nil {
			err = r.eachStream(ctx, f, func(x *info) { r.excluded[x.key()] = true })
		}
	}
	if err != nil {
		return nil, err
	}
	for _, m := range list {
		m.keep(func(i int) bool { return !streams[streamOf(keys[m][i])] })
	}
	return some(list), nil
}

// ofGroups keeps the turns of the sessions that lines were found in, and of their agents.
func (r *ranking) ofGroups(ctx context.Context, list []*match) ([]*match, error) {
	byOwner, streams := map[int64][]string{}, map[int64]bool{}
	for key, g := range r.groups {
		if g.gone != "" {
			streams[g.main.id] = true
			continue
		}
		byOwner[key.owner] = append(byOwner[key.owner], key.session)
	}
	for owner, sessions := range byOwner {
		for some := range slices.Chunk(sessions, maxValues) {
			var keys []any
			for _, session := range some {
				keys = append(keys, sqlstore.Key(session))
			}
			var main, agents sqlstore.Filter
			main.Add(`s.session_key IN (`+sqlstore.Marks(len(some))+`)`, keys...)
			agents.Add(`s.parent <> '' AND substr(s.parent, 1, 200) IN (substr(CAST(? AS text), 1, 200)`+
				strings.Repeat(`, substr(CAST(? AS text), 1, 200)`, len(some)-1)+`)`, sqlstore.Values(some)...)
			for _, f := range []sqlstore.Filter{main, agents} {
				f.Add(`s.owner = ?`, owner)
				err := r.eachStream(ctx, f, func(x *info) { streams[x.id] = streams[x.id] || r.groups[x.key()] != nil })
				if err != nil {
					return nil, err
				}
			}
		}
	}
	return r.within(ctx, list, func(stream int64) bool { return streams[stream] })
}

// excludes reports whether a turn has all words of something that is excluded.
func (r *ranking) excludes(in []uint8) bool {
	return slices.ContainsFunc(r.not, func(c clause) bool {
		return slices.ContainsFunc(c.alts, func(a alternative) bool {
			return a.fuzzy() && !slices.ContainsFunc(a.terms, func(k int) bool { return in[k] == 0 })
		})
	})
}

// readTurns reads turns, in the order of their segments.
func (r *ranking) readTurns(ctx context.Context, list []*match) error {
	pages := map[*match][]page{}
	of, args := map[segmentID]*match{}, []any{}
	for _, m := range list {
		of[m.segmentID()] = m
		for _, p := range m.small {
			if p.Part == docPage+turnParts {
				pages[m] = append(pages[m], p)
			}
		}
		for i, n := range m.turns {
			if m.small == nil && (i == 0 || n/pageDocs != m.turns[i-1]/pageDocs) {
				args = append(args, m.owner, m.id, int64(n/pageDocs*pageDocs))
			}
		}
	}
	for some := range slices.Chunk(args, maxValues/3*3) {
		err := r.d.Query(ctx, `WITH s (owner, id, first) AS (VALUES `+
			`(CAST(? AS bigint), CAST(? AS bigint), CAST(? AS bigint))`+strings.Repeat(`, (?, ?, ?)`, len(some)/3-1)+`)
SELECT s.owner, s.id, p.first, p.data FROM s CROSS JOIN gram_pages p
WHERE p.owner = s.owner AND p.segment = s.id AND p.part = ? AND p.first = s.first`,
			append(slices.Clone(some), docPage+turnParts), func(row sqlstore.Scanner) error {
				var id segmentID
				var p page
				err := row.Scan(&id.owner, &id.segment, &p.First, &p.Data)
				pages[of[id]] = append(pages[of[id]], p)
				return err
			})
		if err != nil {
			return err
		}
	}
	for _, m := range list {
		slices.SortFunc(pages[m], func(a, b page) int { return cmp.Compare(a.First, b.First) })
		for _, p := range pages[m] {
			if err := r.takeTurns(m, p); err != nil {
				return fmt.Errorf("segment %d: %w", m.id, err)
			}
		}
	}
	return nil
}

// takeTurns adds the turns that a page has.
func (r *ranking) takeTurns(m *match, p page) error {
	docs, err := readDocs(p)
	at, _ := slices.BinarySearch(m.turns, uint32(p.First))
	for ; at < len(m.turns) && int(m.turns[at])-int(p.First) < len(docs); at++ {
		r.takeTurn(&docs[int(m.turns[at])-int(p.First)], m.termsIn(at))
	}
	return err
}
