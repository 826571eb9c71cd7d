package markup

import (
	"html/template"
	"math"
	"strings"
	"unicode"
	"unicode/utf8"
)

// DiffLine is one line of a difference. Numbers count from 1; 0 is none.
type DiffLine struct {
	Op       Op
	Old, New int
	HTML     template.HTML // with what changed inside the line in <mark>
	Folded   int           // lines left out here instead of a line
}

// Sign returns the line's sign as diffs have it.
func (l DiffLine) Sign() string { return string(rune(l.Op)) }

// Class names the line's colour.
func (l DiffLine) Class() string {
	switch {
	case l.Folded > 0:
		return "fold"
	case l.Op == Removed:
		return "del"
	case l.Op == Added:
		return "add"
	}
	return "same"
}

// lineFrame is about what a template writes around a line of a difference, in bytes.
const lineFrame = 120

// Diff compares two texts line by line. Around each change context equal lines stay; the others are folded. It has at
// most about limit lines, fewer when there is no space, and says how many there are more.
func (p *Budget) Diff(before, after string, context, limit int) (lines []DiffLine, more int) {
	a, moreA := p.split(before)
	b, moreB := p.split(after)
	d := difference{Budget: p, a: a, b: b}
	for i, edits := 0, p.compare(a, b); i < len(edits); i++ {
		e := edits[i]
		if len(d.lines) > limit || p.html <= 0 {
			more += max(e.AEnd-e.A, e.BEnd-e.B)
			continue
		}
		if e.Op == Same {
			d.same(e, context, i == 0, i == len(edits)-1)
			continue
		}
		if i+1 < len(edits) && edits[i+1].Op != Same { // lines that stand in the place of others
			i++
			with := edits[i]
			e = Edit{A: min(e.A, with.A), AEnd: max(e.AEnd, with.AEnd), B: min(e.B, with.B), BEnd: max(e.BEnd, with.BEnd)}
		}
		d.pair(e, limit)
	}
	if n := len(d.lines) - limit; n > 0 {
		d.lines, more = d.lines[:limit], more+n
	}
	return d.lines, more + d.more + max(moreA, moreB)
}

// compare is Compare, with the page's share of work.
func (p *Budget) compare(a, b []string) []Edit {
	edits, steps := compare(a, b, p.steps)
	p.steps -= steps
	return edits
}

// split cuts a text into lines, as many as a page compares, and says how many there are more; a newline at its end
// makes no empty one.
func (p *Budget) split(s string) (lines []string, more int) {
	if s == "" {
		return nil, 0
	}
	s = strings.TrimSuffix(s, "\n")
	lines = strings.SplitN(s, "\n", max(min(p.lines, maxDiff), 1)+1)
	if n := len(lines) - 1; n >= max(min(p.lines, maxDiff), 1) {
		lines, more = lines[:n], strings.Count(lines[n], "\n")+1
	}
	p.lines -= len(lines)
	return lines, more
}

// maxDiff is how many lines of a text are compared.
const maxDiff = 50_000

// difference collects the lines of one.
type difference struct {
	*Budget
	a, b  []string
	lines []DiffLine
	more  int
}

// add appends a line, if there is space.
func (d *difference) add(l DiffLine, html func() template.HTML) {
	if d.html -= lineFrame; d.html <= 0 {
		d.more++
		return
	}
	if html != nil {
		l.HTML = html()
	}
	d.lines = append(d.lines, l)
}

// whole is a line without marks.
func (d *difference) whole(s string) func() template.HTML {
	return func() template.HTML {
		html, left := d.Text(s)
		if left > 0 {
			html += "…"
		}
		return html
	}
}

// same shows context lines on the sides where something changes.
func (d *difference) same(e Edit, context int, first, last bool) {
	head, tail := context, context
	if first {
		head = 0
	}
	if last {
		tail = 0
	}
	for i := e.A; i < e.AEnd; i++ {
		at := i - e.A
		if left := e.AEnd - i - tail; at >= head && left > 1 {
			d.add(DiffLine{Op: Same, Folded: left}, nil)
			i = e.AEnd - tail - 1
			continue
		}
		d.add(DiffLine{Op: Same, Old: i + 1, New: e.B + at + 1}, d.whole(d.a[i]))
	}
}

// pair shows removed lines and the ones that came in their place, about limit of each. Lines of equal rank are compared
// word by word.
func (d *difference) pair(e Edit, limit int) {
	removed, added := d.a[e.A:e.AEnd], d.b[e.B:e.BEnd]
	limit++ // one that is too many is counted by who cuts them
	for _, side := range []*[]string{&removed, &added} {
		if n := len(*side) - limit; n > 0 {
			*side, d.more = (*side)[:limit], d.more+n
		}
	}
	var marked [2][]template.HTML
	pairs := e.AEnd-e.A == e.BEnd-e.B || len(removed) > 0 && len(added) > 0 && len(removed)+len(added) <= 8
	for i := range min(len(removed), len(added)) {
		if !pairs || d.html <= 0 {
			break
		}
		x, y := d.words(removed[i], added[i])
		marked[0], marked[1] = append(marked[0], x), append(marked[1], y)
	}
	html := func(side int, i int, s string) func() template.HTML {
		if i < len(marked[side]) {
			return func() template.HTML { return marked[side][i] }
		}
		return d.whole(s)
	}
	for i, s := range removed {
		d.add(DiffLine{Op: Removed, Old: e.A + i + 1}, html(0, i, s))
	}
	for i, s := range added {
		d.add(DiffLine{Op: Added, New: e.B + i + 1}, html(1, i, s))
	}
}

// maxMarked is the longest line in which changes are marked, in bytes.
const maxMarked = 2000

// words marks what differs between two lines, unless that is most of them.
func (p *Budget) words(before, after string) (x, y template.HTML) {
	whole := func() (template.HTML, template.HTML) {
		x, _ := p.Text(before)
		y, _ := p.Text(after)
		return x, y
	}
	if len(before) > maxMarked || len(after) > maxMarked || p.steps <= 0 {
		return whole()
	}
	a, b := tokens(before), tokens(after)
	edits := p.compare(a, b)
	same := 0
	for _, e := range edits {
		if e.Op == Same {
			same += len(strings.TrimSpace(strings.Join(a[e.A:e.AEnd], "")))
		}
	}
	if 3*same < max(len(strings.TrimSpace(before)), len(strings.TrimSpace(after))) {
		return whole()
	}
	return p.side(a, edits, true), p.side(b, edits, false)
}

// side returns one side of a comparison, with what only it has between marks.
func (p *Budget) side(tokens []string, edits []Edit, old bool) template.HTML {
	o := p.open(2 * maxMarked)
	for _, e := range edits {
		from, to := e.B, e.BEnd
		if old {
			from, to = e.A, e.AEnd
		}
		s := strings.Join(tokens[from:to], "")
		switch {
		case s == "":
		case e.Op == Same:
			o.text(s)
		case o.write("<mark>"):
			o.text(s)
			o.WriteString("</mark>")
		}
	}
	return p.close(o)
}

// tokens cuts a line into words, runs of blanks and single other characters.
func tokens(s string) []string {
	var out []string
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		if in := class(r); in != nil {
			for n < len(s) {
				next, m := utf8.DecodeRuneInString(s[n:])
				if !in(next) {
					break
				}
				n += m
			}
		}
		out = append(out, s[:n])
		s = s[n:]
	}
	return out
}

// class is the run that r begins; nil when it stands alone.
func class(r rune) func(rune) bool {
	switch {
	case wordRune(r):
		return wordRune
	case unicode.IsSpace(r):
		return unicode.IsSpace
	}
	return nil
}

func wordRune(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }

// Op says where a line stands.
type Op byte

const (
	Same    Op = ' '
	Removed Op = '-'
	Added   Op = '+'
)

// Edit is a run of elements that are alike: A up to before AEnd of the old ones, B up to before BEnd of the new ones.
// One of the two is empty unless Op is Same.
type Edit struct {
	Op      Op
	A, AEnd int
	B, BEnd int
}

// maxDistance bounds the work for one difference: above it the old is shown as removed and the new as added. The
// memory for it grows with its square, to 16 MB.
const maxDistance = 2000

// Compare finds a shortest way from a to b (Myers 1986). Both are numbers that stand for lines.
func Compare[T comparable](a, b []T) []Edit {
	edits, _ := compare(a, b, math.MaxInt)
	return edits
}

// compare is Compare in at most about most steps, and says how many it took. A step compares two elements or keeps a
// number.
func compare[T comparable](a, b []T, most int) ([]Edit, int) {
	head := 0
	for head < len(a) && head < len(b) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < len(a)-head && tail < len(b)-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	var out []Edit
	out = join(out, Edit{Same, 0, head, 0, head})
	edits, steps := middle(a[head:len(a)-tail], b[head:len(b)-tail], most)
	for _, e := range edits {
		e.A, e.AEnd, e.B, e.BEnd = e.A+head, e.AEnd+head, e.B+head, e.BEnd+head
		out = join(out, e)
	}
	return join(out, Edit{Same, len(a) - tail, len(a), len(b) - tail, len(b)}), steps
}

// join appends e, to the last run when it goes on with it.
func join(list []Edit, e Edit) []Edit {
	if e.A == e.AEnd && e.B == e.BEnd {
		return list
	}
	if n := len(list); n > 0 && list[n-1].Op == e.Op {
		list[n-1].AEnd, list[n-1].BEnd = e.AEnd, e.BEnd
		return list
	}
	return append(list, e)
}

// middle compares what begins and ends differently.
func middle[T comparable](a, b []T, most int) (edits []Edit, steps int) {
	all := []Edit{{Removed, 0, len(a), 0, 0}, {Added, len(a), len(a), 0, len(b)}}
	if len(a) == 0 || len(b) == 0 {
		return all, 0
	}
	limit := min(len(a)+len(b), maxDistance)
	// v[k+limit] is the furthest x on diagonal k = x - y; trace keeps what it was before each step.
	v := make([]int32, 2*limit+2)
	var trace [][]int32
	for d := 0; d <= limit && steps < most; d++ {
		steps += 2*d + 1
		trace = append(trace, append([]int32(nil), v[limit-d:limit+d+1]...))
		for k := -d; k <= d; k += 2 {
			x := step(v, limit, k, d)
			y := int(x) - k
			for int(x) < len(a) && y < len(b) && a[x] == b[y] {
				x++
				y++
				steps++
			}
			v[limit+k] = x
			if int(x) >= len(a) && y >= len(b) {
				return walkBack(trace, len(a), len(b)), steps
			}
		}
	}
	return all, steps
}

// step returns where diagonal k begins in round d: from the better of its neighbours.
func step(v []int32, limit, k, d int) int32 {
	if d == 0 {
		return 0
	}
	if k == -d || k != d && v[limit+k-1] < v[limit+k+1] {
		return v[limit+k+1]
	}
	return v[limit+k-1] + 1
}

// walkBack reads the way from the end to the beginning off the trace.
func walkBack(trace [][]int32, x, y int) []Edit {
	var back []Edit
	for d := len(trace) - 1; d > 0; d-- {
		v := trace[d] // of diagonals -d to d, as they were before round d
		at := func(k int) int { return int(v[k+d]) }
		k := x - y
		before := k - 1
		if k == -d || k != d && at(k-1) < at(k+1) {
			before = k + 1
		}
		px := at(before)
		py := px - before
		// The snake, then the step into it.
		sx, sy := px, py
		if before == k+1 {
			sy++
		} else {
			sx++
		}
		if x > sx {
			back = append(back, Edit{Same, sx, x, sy, y})
		}
		if before == k+1 {
			back = append(back, Edit{Added, px, px, py, py + 1})
		} else {
			back = append(back, Edit{Removed, px, px + 1, py, py})
		}
		x, y = px, py
	}
	if x > 0 {
		back = append(back, Edit{Same, 0, x, 0, y})
	}
	var out []Edit
	for i := len(back) - 1; i >= 0; i-- {
		out = join(out, back[i])
	}
	return out
}
