package redact

import (
	"bytes"
	"slices"
)

// inText searches a text as it is, and below its escapes.
func (m *Masker) inText(s *scratch, text []byte) {
	s.hits = m.likely(m.search.find(s.hits[:0], text), text)
	if len(s.hits) == 0 && len(m.always) == 0 && !hidesLiterals(text) {
		return
	}
	s.levels[0].reset(text, 0)
	m.inLevels(s)
}

// inString searches a JSON string, given by its place without its quotes. The name of its member is part of what the
// rules see. hits are those in the line; with nil the string is searched for literals once it is decoded.
func (m *Masker) inString(s *scratch, w *walker, hits []hit) {
	t := &s.levels[0]
	prefix := ""
	if w.name != "" {
		prefix = `"` + w.name + `": "`
	}
	t.begin(prefix, w.start)
	t.unescape(w.line[w.start:w.end], w.start)
	if prefix != "" {
		t.finish(`"`)
	}
	s.hits = s.hits[:0]
	if hits == nil {
		s.hits = m.search.find(s.hits, t.b)
	} else {
		s.hits = m.search.find(s.hits, t.b[:min(len(t.b), len(prefix)+m.search.longest)])
		s.hits = m.follow(s.hits, hits, t)
	}
	m.inLevels(s)
}

// follow appends the hits of a source at their places in its decoded form.
func (m *Masker) follow(dst, hits []hit, t *text) []hit {
	for _, h := range hits {
		if h.at < t.source() || h.at >= t.end {
			continue
		}
		h.at = t.up(h.at, true)
		if m.search.literals[h.literal].matches(t.b[h.at:]) {
			dst = append(dst, h)
		}
	}
	return dst
}

// inLevels searches the first level, whose hits are in s.hits, and then what remains when each further layer of escapes
// is removed.
func (m *Masker) inLevels(s *scratch) {
	n := 1
	for n < maxLevels && bytes.IndexByte(s.levels[n-1].b, '\\') >= 0 {
		s.levels[n].begin("", 0)
		s.levels[n].unescape(s.levels[n-1].b, 0)
		n++
	}
	for i := range n {
		switch {
		case i == 0:
		case hidesLiterals(s.levels[i-1].b):
			s.hits = m.search.find(s.hits[:0], s.levels[i].b)
		default:
			s.deeper = m.follow(s.deeper[:0], s.hits, &s.levels[i])
			s.hits, s.deeper = s.deeper, s.hits
		}
		m.inLevel(s, s.levels[:n], i)
	}
}

// window is a part of a text that a rule searches.
type window struct{ from, to int }

// inLevel finds the secrets around the hits of one level and adds their places in the source to s.ranges.
func (m *Masker) inLevel(s *scratch, levels []text, level int) {
	b := levels[level].b
	f := finder{m: m, s: s, levels: levels, level: level}
	if s.windows == nil {
		s.windows = make([][]window, len(m.rules))
	}
	for _, h := range s.hits {
		for _, r := range m.byLit[h.literal] {
			switch {
			case !r.likely(b, h.at):
			case r.Token:
				f.token(r, h.at)
			default:
				f.note(r, h.at)
			}
		}
	}
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
}

// likely keeps the hits that a rule can begin with.
func (m *Masker) likely(hits []hit, text []byte) []hit {
	return slices.DeleteFunc(hits, func(h hit) bool {
		return !slices.ContainsFunc(m.byLit[h.literal], func(r *rule) bool { return r.likely(text, h.at) })
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
		all[n].to = max(all[n].to, w.to)
	default:
		f.s.windows[r.index] = append(all, w)
	}
}

// token matches a rule whose secret starts with the literal.
func (f *finder) token(r *rule, at int) {
	b := f.text()
	for size := r.After; ; size *= 4 {
		end := min(len(b), at+size)
		loc := r.expression().FindSubmatchIndex(b[at:end])
		if loc == nil {
			return
		}
		if at+loc[1] < end || end == len(b) {
			f.add(r, b[at:end], loc, at)
			return
		}
	}
}

// search adds the matches of a rule in a window. A match that touches the window's edge is looked at again in a larger
// one: there it may be longer, or none at all.
func (f *finder) search(r *rule, w window) {
	b := f.text()
	for from := w.from; from < w.to; {
		loc := r.expression().FindSubmatchIndex(b[from:w.to])
		if loc == nil {
			return
		}
		start, end := from+loc[0], from+loc[1]
		if end == w.to && w.to < len(b) {
			w.to = min(len(b), w.to+4*(w.to-w.from))
			continue
		}
		if start == w.from && w.from > 0 {
			w.from = max(0, w.from-r.Before-1)
			from = w.from
			continue
		}
		f.add(r, b[from:w.to], loc, from)
		from = max(end, start+1)
	}
}

// add records a match, given by its places in a part of the text that starts at an offset.
func (f *finder) add(r *rule, part []byte, loc []int, offset int) {
	from, to := r.secret(loc)
	if from < 0 || to <= from || !r.allowed(part, loc, part[from:to], f.s.path) {
		return
	}
	from, to = from+offset, to+offset
	if f.masked(from, to) {
		return
	}
	deeper := f.levels[f.level+1:]
	from, to = snap(deeper, from, true), snap(deeper, to, false)
	for i := f.level; i >= 0 && from < to; i-- {
		from, to = f.levels[i].down(from, true), f.levels[i].down(to, false)
	}
	if from < to {
		f.s.ranges = append(f.s.ranges, Range{Start: from, End: to, Rule: r.Name})
	}
}

// masked reports whether a match is a secret that was masked before, or overlaps its token.
func (f *finder) masked(from, to int) bool {
	b := f.text()
	if len(bytes.Trim(b[from:to], "*")) == 0 {
		return true
	}
	if !f.walled {
		f.walls, f.walled = tokens(b), true
	}
	for _, w := range f.walls {
		if from < w[1] && w[0] < to {
			return true
		}
	}
	return false
}
