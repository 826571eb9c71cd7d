package search

import (
	"context"
	"math"
	"slices"

	"github.com/ccship/ccship/server"
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
	// oldView weakens turns and lines that a rewind took out.
	oldView = .5
)

// findTurns finds the turns that have words of the query, scores them and adds them to their sessions.
func (r *ranking) findTurns(ctx context.Context) error {
	if len(r.terms) == 0 {
		return nil
	}
	found, err := r.match(ctx)
	if err == nil {
		found, err = r.best(ctx, found)
	}
	if err == nil {
		err = r.readTurns(ctx, found)
	}
	if err != nil {
		return err
	}
	var ids []int64
	for _, t := range r.turns {
		ids = append(ids, t.stream)
	}
	if err := r.load(ctx, ids); err != nil {
		return err
	}
	r.read = len(r.turns)
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
		if g := r.groupOf(r.infos[t.stream], ""); t.score > 0 && g != nil {
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

// countTurns counts how many of the found turns have each term, unless best has counted more of them than are read, and
// their mean length. What the scope does not see does not count.
func (r *ranking) countTurns() {
	size, df := int64(0), make([]float64, len(r.terms))
	for _, t := range r.turns {
		for i, in := range t.in {
			if r.tells(in) {
				df[i]++
			}
		}
		size += t.size
	}
	r.mean = float64(size) / math.Max(1, float64(len(r.turns)))
	if r.df == nil {
		r.df, r.counted = df, float64(len(r.turns))
	}
}

// tells reports whether a term in these fields counts for how rare it is.
func (r *ranking) tells(in uint8) bool {
	return in&^(1<<inResult) != 0 || in != 0 && r.fields != math.MaxUint8
}

// rarity returns the weight of a term by how few turns have it: BM25's IDF.
func (r *ranking) rarity(i int) float64 {
	n := 2 * r.counted
	return math.Log(1 + (n-r.df[i]+.5)/(r.df[i]+.5))
}

// scoreTurn scores a turn. Titles are of the whole session.
func (r *ranking) scoreTurn(t *turn) {
	t.have = make([]bool, len(r.clauses))
	norm := 1 - lengthShare + lengthShare*float64(t.size)/math.Max(1, r.mean)
	t.score = r.bm25(t.in, r.titles[t.stream], norm, t.have)
	if x := r.infos[t.stream]; !slices.ContainsFunc(t.docs, func(d *doc) bool { return x.shows(d, d.First()) }) {
		t.score *= oldView
	}
}

// bm25 scores terms by the fields that they are in, and adds to have which clauses are there whole.
func (r *ranking) bm25(terms, titles []uint8, norm float64, have []bool) (score float64) {
	one := func(i int) float64 {
		in, tf := terms[i], 0.0
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
			if have[i] = have[i] || all; !all {
				sum /= 2
			}
			best = max(best, sum)
		}
		score += best
	}
	return score
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
