package search

import (
	"context"
	"maps"
	"math"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store/sqlstore"
)

const (
	// mostLines is how many lines a search finds exactly, and rareLines those of a word that no turn has.
	mostLines = 2000
	rareLines = 300
	// walkBytes is how much one of them reads, mostWalks how often it goes on while nothing is found.
	walkBytes = 8 << 20
	mostWalks = 3
)

// kindWeights is what a line counts that was found exactly; others count 1.
var kindWeights = map[string]float64{"title": 6, "prompt": 4, "answer": 2, "result": .5, "thinking": .5, "other": .5}

// findLines finds the lines that hold what must be found as it is; of a query for lines only, all of it.
func (r *ranking) findLines(ctx context.Context, after string) error {
	var must []int
	for i := range r.clauses {
		if r.linesOnly || !r.clauses[i].fuzzy() {
			must = append(must, i)
		}
	}
	plans := [][]string{nil}
	if len(must) > 0 {
		plans = r.plans(must)
	}
	for range mostWalks {
		r.more, r.next = false, ""
		if err := r.walks(ctx, plans, after, must); err != nil || len(r.groups) > 0 || r.next == "" {
			return err
		}
		after = r.next
	}
	return nil
}

// walks walks by each plan, for each tool and file.
func (r *ranking) walks(ctx context.Context, plans [][]string, after string, must []int) error {
	o := r.ask.Query.Only
	for _, tool := range orNone(o["tool"]) {
		for _, file := range orNone(o["file"]) {
			for _, needles := range plans {
				q := server.SearchQuery{Kinds: r.kinds, Tool: tool, File: file, Limit: mostLines}
				if err := r.walk(ctx, q, needles, after, must); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func orNone(list []string) []string {
	if len(list) == 0 {
		return []string{""}
	}
	return list
}

// plans returns the needles of each walk. It takes the clause with the fewest alternatives and makes one walk for each;
// other clauses with one alternative join every walk. Together the walks find every line that has all clauses.
func (r *ranking) plans(must []int) (out [][]string) {
	least := slices.MinFunc(must, func(a, b int) int { return len(r.clauses[a].alts) - len(r.clauses[b].alts) })
	var all []string
	for _, i := range must {
		if c := &r.clauses[i]; i != least && len(c.alts) == 1 {
			all = append(all, c.alts[0].needles()...)
		}
	}
	for i := range r.clauses[least].alts {
		out = append(out, slices.Concat(r.clauses[least].alts[i].needles(), all))
	}
	return out
}

// needles returns texts that everything has that the alternative finds.
func (a *alternative) needles() []string {
	switch {
	case a.regexp != nil:
		re, err := syntax.Parse(a.regexp.String(), syntax.Perl)
		if err != nil {
			return nil
		}
		return literals(re.Simplify())
	case a.exact != "":
		return []string{a.exact}
	}
	return a.stems
}

// literals returns texts that everything has that an expression matches.
func literals(re *syntax.Regexp) (out []string) {
	switch re.Op {
	case syntax.OpLiteral:
		return strings.Fields(sqlstore.FoldText(string(re.Rune)))
	case syntax.OpConcat, syntax.OpCapture, syntax.OpPlus:
		for _, sub := range re.Sub {
			out = append(out, literals(sub)...)
		}
	case syntax.OpRepeat:
		if re.Min > 0 {
			return literals(re.Sub[0])
		}
	}
	return out
}

// walk finds lines with a text that has some clauses, and adds them to their sessions.
func (r *ranking) walk(ctx context.Context, q server.SearchQuery, needles []string, after string, must []int) error {
	q.Superseded, q.Since, q.Until = true, r.ask.Query.After, r.ask.Query.Before
	for _, i := range must {
		q.Text += r.clauses[i].text // so that calls of a tool are found with their results, as with any words
	}
	paged := r.strict || r.linesOnly // otherwise each page begins with the words again
	s := r.x.search(r.scope, q)
	s.d, s.of, s.only, s.words, s.budget = r.d, r, r.only, needles, min(s.budget, r.each)
	s.holds = func(text string) bool { return r.holds(text, must) }
	if err := s.begin(after); err != nil || s.kinds == 0 {
		return err
	}
	if err := s.run(ctx); err != nil {
		return err
	}
	if next, _ := s.end(); next != "" {
		if r.more = true; paged {
			r.next = later(r.next, next)
		}
	}
	return r.addLines(ctx, s.hits, must)
}

// later returns the newer of two positions: pages begin with the newest lines.
func later(a, b string) string {
	x, _ := parsePlace(a)
	y, _ := parsePlace(b)
	if x == nil || y != nil && compare(*y, *x) > 0 {
		return b
	}
	return a
}

// holds reports whether a text has some clauses.
func (r *ranking) holds(text string, must []int) bool {
	folded, mask := sqlstore.FoldText(text), uint64(0)
	if slices.ContainsFunc(must, func(i int) bool { return r.clauses[i].hasWord() }) {
		mask = r.has(text, func(int, int, []byte) {})
	}
	for _, i := range must {
		if !slices.ContainsFunc(r.clauses[i].alts, func(a alternative) bool { return a.in(text, folded, mask) }) {
			return false
		}
	}
	return true
}

// addLines adds lines that have some clauses to their sessions.
func (r *ranking) addLines(ctx context.Context, hits []hit, must []int) error {
	var ids []int64
	for _, h := range hits {
		ids = append(ids, h.stream)
	}
	if err := r.load(ctx, ids); err != nil {
		return err
	}
	for _, h := range hits {
		x := r.infos[h.stream]
		if x == nil {
			continue
		}
		g := r.groupOf(x, h.gone)
		h.rank = exactScore + h.weight()
		g.lines = append(g.lines, h)
		for _, i := range must {
			g.have[i] = true
		}
		g.exact, g.time = math.Max(g.exact, h.weight()), max(g.time, h.time)
		if f, ok := fieldOf(h.kind); ok {
			g.in |= 1 << f
		}
	}
	return nil
}

// weight returns how much a line counts.
func (h *hit) weight() float64 {
	w, ok := kindWeights[h.kind]
	if !ok {
		w = 1
	}
	if !h.text.Current {
		w *= oldView
	}
	return w
}

// findParts finds words that no turn has as parts of words, in any text: of names and ids, or half typed. All of them
// read no more together than one of them may, and a quarter of it where other words are found.
func (r *ranking) findParts(ctx context.Context) error {
	var absent []int
	walks := 0
	for i := range r.clauses {
		has := func(g *group) bool { return g.have[i] }
		if c := &r.clauses[i]; !c.fuzzy() || !slices.ContainsFunc(slices.Collect(maps.Values(r.groups)), has) {
			absent, walks = append(absent, i), walks+len(c.alts)
		}
	}
	if len(r.groups) > 0 {
		walks *= 4
	}
	r.each = walkBytes / max(1, walks)
	for _, i := range absent {
		for k := range r.clauses[i].alts {
			a := &r.clauses[i].alts[k]
			if a.exact == "" {
				a.exact, a.terms = a.word, nil
			}
			q := server.SearchQuery{Kinds: r.kinds, Limit: rareLines}
			if err := r.walk(ctx, q, []string{a.exact}, "", []int{i}); err != nil {
				return err
			}
		}
	}
	return nil
}

// exclude leaves out sessions that have what the query excludes, and those without a line that it must have.
func (r *ranking) exclude(ctx context.Context) error {
	for i := range r.not {
		for _, a := range r.not[i].alts {
			if a.fuzzy() {
				continue
			}
			if err := r.excludeLines(ctx, &a); err != nil {
				return err
			}
		}
	}
	for _, t := range r.turns {
		if r.excludes(t.in) {
			r.excluded[r.infos[t.stream].key()] = true
		}
	}
	if err := r.excludePast(ctx); err != nil {
		return err
	}
	for key := range r.excluded {
		delete(r.groups, key)
	}
	if r.strict || r.linesOnly {
		for k, g := range r.groups {
			if len(g.lines) == 0 {
				delete(r.groups, k)
			}
			if r.linesOnly {
				g.turns = nil
			}
		}
	}
	return nil
}

// excludeLines leaves out the sessions of which a line has a.
func (r *ranking) excludeLines(ctx context.Context, a *alternative) error {
	x := &ranking{x: r.x, d: r.d, scope: r.scope, ask: r.ask, owners: r.owners, only: r.only, since: r.since,
		upper: r.upper, each: walkBytes,
		infos: r.infos, groups: map[groupKey]*group{}, wanted: wanted{clauses: []clause{{alts: []alternative{*a}}},
			terms: r.terms}}
	err := x.walk(ctx, server.SearchQuery{Limit: mostLines}, a.needles(), "", []int{0})
	for k := range x.groups {
		delete(r.groups, k)
	}
	r.more = r.more || x.more
	return err
}

// score scores the sessions.
func (r *ranking) score(ctx context.Context) error {
	for k, g := range r.groups {
		all := 0.0
		for i := range r.clauses {
			w := r.weight(i)
			if all += w; g.have[i] {
				g.mass += w
			}
		}
		if g.exact > 0 {
			g.score += exactScore * (1 + math.Log(1+g.exact))
		}
		if all > 0 {
			g.score *= covered + (1-covered)*g.mass/all
		}
		if g.main.parent != "" && !r.findMain(ctx, g) {
			delete(r.groups, k)
		}
	}
	return ctx.Err()
}

const (
	// exactScore is what something found exactly counts, as much as a rare word.
	exactScore = 8
	// covered is what is left of the score of a session without any of the words that its best turn has not.
	covered = .5
)

// weight returns how much a clause counts towards the words that a session has.
func (r *ranking) weight(i int) float64 {
	w := 0.0
	for _, a := range r.clauses[i].alts {
		sum := 0.0
		for _, t := range a.terms {
			sum += r.rarity(t)
		}
		if !a.fuzzy() {
			sum = exactScore
		}
		w = math.Max(w, sum)
	}
	return w
}

// findMain finds the session of a group of which only agents were found. false: the query chooses sessions, but not
// this one.
func (r *ranking) findMain(ctx context.Context, g *group) bool {
	f := r.filter()
	f.Add(`s.owner = ?`, g.owner)
	f.Add(`s.machine = ?`, g.machine)
	f.Session(g.session, false)
	list, err := sqlstore.List(ctx, r.d, selectInfos+f.Where(), f.Args, scanInfo)
	if err != nil || len(list) == 0 {
		return !r.aboutSessions()
	}
	g.main = list[0]
	return true
}
