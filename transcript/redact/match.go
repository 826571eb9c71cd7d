package redact

import (
	"slices"
	"sort"
)

// inText searches a text as it is, and below its escapes.
func (m *Masker) inText(s *scratch, text []byte) {
	inParts(s, text, window{0, len(text)}, func(part window) {
		in := text[part.from:part.to]
		hidden := m.find(s, in)
		if s.hits = m.likely(s.hits, in); len(s.hits) > 0 || hidden || s.known != nil {
			s.levels[0].reset(in, part.from)
			m.inLevels(s)
		}
	})
}

// inString searches a JSON string, given by its position without its quotes. The name of its member is part of what the
// rules see.
func (m *Masker) inString(s *scratch, w *walker) {
	hash := uint64(0)
	if s.known == nil && s.path == "" { // else more may be found, or less
		hash = s.clean.hash(w, m.own)
	}
	if s.clean.has(hash) {
		return
	}
	found := len(s.ranges)
	defer func() {
		if hash != 0 && len(s.ranges) == found {
			s.clean.add(hash)
		}
	}()
	inParts(s, w.line, window{w.start, w.end}, func(part window) {
		prefix := ""
		if w.name != "" && part.from == w.start {
			prefix = `"` + w.name + `": "`
		}
		t := &s.levels[0]
		t.begin(prefix, part.from)
		t.unescape(w.line[part.from:part.to], part.from)
		if w.name != "" && part.to == w.end {
			t.finish(`"`)
		}
		if hidden := m.find(s, t.b); len(s.hits) > 0 || hidden || s.known != nil {
			m.inLevels(s)
		}
	})
}

// find leaves the literals of a text in s.hits, and reports whether there may be more: behind escapes, or because a
// rule has none.
func (m *Masker) find(s *scratch, text []byte) (hidden bool) {
	s.hits = m.search.find(s.hits[:0], text, &s.block)
	hidden = len(m.always) > 0 || hidesBytes(text)
	s.hits = slices.DeleteFunc(s.hits, func(h hit) bool {
		escape := m.search.literals[h.literal].escape
		hidden = hidden || escape
		return escape
	})
	return hidden
}

// inParts searches a part of a text, in several if it is long: the memory that a search takes is bounded. Parts
// overlap, so that each secret is whole in one of them, and none begins or ends within an escape.
func inParts(s *scratch, text []byte, all window, search func(part window)) {
	if all.to-all.from <= segment+2*margin {
		search(all)
		return
	}
	for at := all.from; at < all.to; at += segment {
		before := len(s.ranges)
		search(window{outside(text, all, at-margin), outside(text, all, at+segment+margin)})
		found := slices.DeleteFunc(s.ranges[before:], func(r Range) bool { return r.End <= at || r.Start >= at+segment })
		s.ranges = s.ranges[:before+len(found)]
	}
}

// outside moves an offset in a part of a text out of that part's escapes, forward.
func outside(text []byte, all window, at int) int {
	if at <= all.from || at >= all.to {
		return min(max(at, all.from), all.to)
	}
	for back := 1; back < len(`\u0000`) && at-back >= all.from; back++ {
		slash := at - back
		if text[slash] != '\\' {
			continue
		}
		first := slash
		for first > all.from && text[first-1] == '\\' {
			first--
		}
		switch odd := (slash-first)%2 == 0; { // then the last one of them begins an escape
		case odd && back == 1 && text[at] != 'u':
			return at + 1
		case odd && text[slash+1] == 'u':
			return min(all.to, slash+len(`\u0000`))
		}
		return at
	}
	return at
}

// inLevels searches the first level, whose hits are in s.hits, and then what remains when each further layer is
// removed.
func (m *Masker) inLevels(s *scratch) {
	n, first := 1, s.levels[0].prefix()
	for n < maxLevels && hasLayer(s.levels[n-1].b, first) {
		s.levels[n].begin("", 0)
		s.levels[n].remove(s.levels[n-1].b, 0, first)
		n++
	}
	for i := range n {
		if i > 0 {
			m.find(s, s.levels[i].b)
		}
		m.inLevel(s, s.levels[:n], i)
	}
}

// window is a part of a text that a rule searches.
type window struct{ from, to int }

// inLevel finds the secrets around the hits of one level and adds their positions in the source to s.ranges.
func (m *Masker) inLevel(s *scratch, levels []text, level int) {
	b := levels[level].b
	f := finder{m: m, s: s, levels: levels, level: level}
	if s.windows == nil {
		s.windows, s.long, s.done = make([][]window, len(m.rules)), make([]window, len(m.rules)), make([]int, len(m.rules))
	}
	clear(s.long)
	clear(s.done)
	var a ahead
	for _, h := range s.hits {
		for _, r := range m.byLit[h.literal] {
			switch {
			case !r.likely(b, h.at, &a):
			case r.Token:
				f.token(r, h.at)
			default:
				f.note(r, h.at)
			}
		}
	}
	slices.Sort(s.touched) // of equal ranges the first rule of the table names the secret
	for _, i := range s.touched {
		for _, w := range s.windows[i] {
			f.search(m.rules[i], w)
		}
		s.windows[i] = s.windows[i][:0]
	}
	s.touched = s.touched[:0]
	for _, r := range m.always {
		f.search(r, window{0, len(b)})
	}
	if s.known != nil {
		s.known.find(b, func(rule string, from, to int) {
			if f.masked(from, to) == 0 {
				f.record(rule, from, to)
			}
		})
	}
}

// likely keeps the hits that a rule can begin with.
func (m *Masker) likely(hits []hit, text []byte) []hit {
	var a ahead
	return slices.DeleteFunc(hits, func(h hit) bool {
		return !slices.ContainsFunc(m.byLit[h.literal], func(r *rule) bool { return r.likely(text, h.at, &a) })
	})
}

// finder runs rules over one level.
type finder struct {
	m      *Masker
	s      *scratch
	levels []text
	level  int

	walls  [][]int // the tokens in the text
	walled bool    // walls is computed
}

func (f *finder) text() []byte { return f.levels[f.level].b }

// note merges the window around a hit into the windows of a rule.
func (f *finder) note(r *rule, at int) {
	all := f.s.windows[r.index]
	w := window{max(0, at-r.Before), min(len(f.text()), at+r.After)}
	switch n := len(all) - 1; {
	case n < 0:
		f.s.touched = append(f.s.touched, r.index)
		f.s.windows[r.index] = append(all, w)
	case w.from <= all[n].to:
		all[n] = window{min(all[n].from, w.from), max(all[n].to, w.to)}
	default:
		f.s.windows[r.index] = append(all, w)
	}
}

// match finds the first match of a rule in a part of the text.
func (f *finder) match(r *rule, part []byte) (loc []int) {
	if r.quick == nil || r.quick().mayMatch(part) {
		loc = r.expression().FindSubmatchIndex(part)
	}
	if loc == nil {
		f.s.work += len(part)
	} else {
		f.s.work += loc[1]
	}
	return loc
}

// token matches a rule whose secret starts with the literal. Where it ends another one may start, although no word
// starts there. A literal inside of a long match starts nothing that ends later: texts of nothing but literals would
// cost the square of their length.
func (f *finder) token(r *rule, at int) {
	if long := f.s.long[r.index]; at >= long.from && at < long.to {
		return
	}
	for end := f.tokenAt(r, at); end > at; {
		at, end = end, f.adjacent(end)
	}
}

// adjacent matches the rules whose secret may start where another one ends, and returns where the match ends; 0 if
// there is none.
func (f *finder) adjacent(at int) (end int) {
	b := f.text()
	if at == len(b) || startsWord(b, at) {
		return 0 // then it is a hit of its own
	}
	for n, rules := range f.m.byLit {
		if !f.m.search.literals[n].matches(b[at:]) {
			continue
		}
		for _, r := range rules {
			if r.Token {
				end = max(end, f.tokenAt(r, at))
			}
		}
	}
	return end
}

// tokenAt records the match of a rule that starts at a position, and returns where it ends; 0 if there is none.
func (f *finder) tokenAt(r *rule, at int) int {
	b := f.text()
	for size := r.After; ; size *= 4 {
		end := min(len(b), at+size)
		loc := f.match(r, b[at:end])
		if loc == nil {
			return 0
		}
		if at+loc[1] < end || end == len(b) {
			f.add(r, b[at:end], loc, at)
			if loc[1] > r.After {
				f.s.long[r.index] = window{at, at + loc[1]}
			}
			return at + loc[1]
		}
	}
}

const (
	leftmost = 4 << 10  // how far before a window its matches are followed: nothing that a rule looks for begins there
	farthest = 16 << 10 // how far behind it, at least: no secret is longer, except those of rules with large windows
)

// search adds the matches of a rule in a window. A match that touches the window's edge is looked at again in a larger
// one: there it may be longer, or none at all. The larger one has limits, as any text may be made to be slow.
func (f *finder) search(r *rule, w window) {
	b := f.text()
	most := window{max(0, w.from-leftmost), min(len(b), w.to+max(farthest, 8*r.After))}
	w.from = max(w.from, f.s.done[r.index])
	for from := w.from; from < w.to; {
		loc := f.match(r, b[from:w.to])
		if loc == nil {
			return
		}
		start, end := from+loc[0], from+loc[1]
		switch size := w.to - w.from; {
		case end == w.to && w.to < most.to:
			w.to = min(most.to, w.to+4*size)
			continue
		case start == w.from && w.from > max(most.from, f.s.done[r.index]):
			w.from = max(most.from, f.s.done[r.index], w.from-4*size)
			from = w.from
			continue
		}
		from = max(f.add(r, b[from:w.to], loc, from), start+1)
		f.s.done[r.index] = from
	}
}

// add records a match, given by its positions in a part of the text that starts at an offset. It returns where the next
// one may start.
func (f *finder) add(r *rule, part []byte, loc []int, offset int) (next int) {
	next = offset + loc[1]
	for from, to := range r.secrets(loc) {
		if from < 0 || to <= from || !r.allowed(part, loc, part[from:to], f.s.path) {
			continue
		}
		from, to = from+offset, to+offset
		if end := f.masked(from, to); end > 0 {
			next = min(end, next) // what a token interrupts may begin again behind it
			continue
		}
		f.record(r.Name, from, to)
	}
	return next
}

// record adds the position of a secret in the source.
func (f *finder) record(rule string, from, to int) {
	deeper := f.levels[f.level+1:]
	from, to = snap(deeper, from, true), snap(deeper, to, false)
	for i := f.level; i >= 0 && from < to; i-- {
		from, to = f.levels[i].down(from, true), f.levels[i].down(to, false)
	}
	if from < to {
		f.s.ranges = append(f.s.ranges, Range{Start: from, End: to, Rule: rule})
	}
}

// masked returns the end of what was masked before in a match: the match itself, or the first token that it overlaps;
// 0: nothing was.
func (f *finder) masked(from, to int) (end int) {
	b := f.text()
	if isMasked(b[from:to]) {
		return to
	}
	if !f.walled {
		f.walls, f.walled = tokens(b), true
	}
	i := sort.Search(len(f.walls), func(i int) bool { return f.walls[i][1] > from })
	if i == len(f.walls) || f.walls[i][0] >= to {
		return 0
	}
	return f.walls[i][1]
}
