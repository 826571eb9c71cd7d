// Package redact replaces secrets in transcript lines and texts by tokens of the same length. It finds them by rules
// written from the vendors' documented formats, through every layer of JSON escapes. It does not know files, servers,
// or where its key and further rules are kept.
package redact

import (
	"bytes"
	"cmp"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/ccship/ccship/transcript"
)

// Range is a part of the input that was replaced.
type Range struct {
	Start, End int // in bytes
	Rule       string
	// Proven: the token holds enough of a hash to show that it stands for the same bytes (see Masker.Proves). A secret
	// that is too short for one becomes asterisks.
	Proven bool

	order order // of the text that it is a part of
}

// Masker replaces secrets. It is safe for concurrent use.
type Masker struct {
	key     Key
	rules   []*rule
	byLit   [][]*rule // the rules of each literal
	search  *search
	always  []*rule // rules without literals: tried everywhere
	own     bool    // there are rules or allow-lists of a person
	scratch sync.Pool
}

// New returns a Masker of the built-in rules and further ones. It fails if one of these is not valid.
func New(key Key, further ...Rule) (*Masker, error) { return NewAllowing(key, nil, further...) }

// NewAllowing is New with allow-lists for all rules, the built-in ones too, unless they name some.
func NewAllowing(key Key, common []Allow, further ...Rule) (*Masker, error) {
	m := &Masker{key: key, own: len(further)+len(common) > 0}
	m.scratch.New = func() any { return new(scratch) }
	lits := map[literal]int{}
	var order []literal
	for _, def := range append(builtin(), further...) {
		r, err := newRule(def)
		if err == nil {
			err = r.allowing(common)
		}
		if err != nil {
			return nil, err
		}
		m.rules = append(m.rules, r)
		if len(def.Literals) == 0 {
			m.always = append(m.always, r)
		}
		for _, text := range inForms(def.Literals) {
			l := newLiteral(text, def.Fold, def.Token)
			n, known := lits[l]
			if !known {
				n = len(order)
				lits[l], order = n, append(order, l)
				m.byLit = append(m.byLit, nil)
			}
			m.byLit[n] = append(m.byLit[n], r)
		}
	}
	for i, r := range m.rules {
		r.index = i
	}
	m.search = newSearch(order)
	return m, nil
}

// inForms returns literals also as they are in forms, which write a space as a plus sign.
func inForms(literals []string) []string {
	all := slices.Clone(literals)
	for _, text := range literals {
		if form := strings.ReplaceAll(text, " ", "+"); form != text {
			all = append(all, form)
		}
	}
	return all
}

// Line masks a line of a transcript, of whatever shape. A nil Masker masks nothing.
func (m *Masker) Line(line []byte) ([]byte, []Range) {
	return m.line(line, func() bool { return transcript.Scan(line).IsObject() })
}

// Scanned is Line for a line that was scanned before.
func (m *Masker) Scanned(line []byte, l *transcript.Line) ([]byte, []Range) {
	return m.line(line, l.IsObject)
}

func (m *Masker) line(line []byte, isObject func() bool) ([]byte, []Range) {
	if m == nil {
		return line, nil
	}
	s := m.scratch.Get().(*scratch)
	defer m.scratch.Put(s)
	switch {
	case !m.suspects(s, line):
		return line, nil
	case isObject():
		s.looked = true // the literals of the line are in s.lineHit
		return m.maskWith(s, line, m.inObject)
	}
	return m.maskWith(s, line, m.inAny)
}

// Suspects reports whether a text may hold a secret. It is much faster than finding out.
func (m *Masker) Suspects(text []byte) bool {
	s := m.scratch.Get().(*scratch)
	defer m.scratch.Put(s)
	return m.suspects(s, text)
}

// suspects leaves the literals of the text that count in s.lineHit, and in s.hidden whether there may be more.
func (m *Masker) suspects(s *scratch, text []byte) bool {
	s.hidden = m.find(s, text)
	s.lineHit = append(s.lineHit[:0], m.likely(s.hits, text)...)
	return s.hidden || len(s.lineHit) > 0 || bytes.IndexByte(text, 0) >= 0 // UTF-16 hides literals
}

// Object masks a line that is one JSON object. Only values of string members and array elements change; the line stays
// valid and as long as it was. The result is line itself if there is nothing to mask.
func (m *Masker) Object(line []byte) ([]byte, []Range) {
	return m.mask(line, m.inObject)
}

// Text masks a text of any kind: a document, a title, a line that is no JSON object. A nil Masker masks nothing.
func (m *Masker) Text(text []byte) ([]byte, []Range) {
	if m == nil {
		return text, nil
	}
	return m.mask(text, m.inAny)
}

// document masks a file's text or a part of it. Rules that are limited to some paths apply to it.
func (m *Masker) document(path string, o order, text []byte, partial bool) ([]byte, []Range) {
	return m.mask(text, func(s *scratch, text []byte) {
		s.path, s.order, s.partial = path, o, partial
		m.inAny(s, text)
	})
}

// String masks a short text, such as a title.
func (m *Masker) String(text string) string {
	masked, ranges := m.Text([]byte(text))
	if len(ranges) == 0 {
		return text
	}
	return string(masked)
}

// rounds bounds how often a masked text is searched again: a token may end the context that hid another secret.
const rounds = 4

// mask searches and replaces until nothing is found any more, so that masking a second time changes nothing.
func (m *Masker) mask(in []byte, find func(*scratch, []byte)) ([]byte, []Range) {
	s := m.scratch.Get().(*scratch)
	defer m.scratch.Put(s)
	return m.maskWith(s, in, find)
}

func (m *Masker) maskWith(s *scratch, in []byte, find func(*scratch, []byte)) ([]byte, []Range) {
	s.path, s.order, s.partial = "", narrow, false
	out := in
	var all []Range
	for range rounds {
		s.ranges, s.known = s.ranges[:0], nil
		find(s, out)
		s.ranges = slices.DeleteFunc(s.ranges, func(r Range) bool { return isMasked(r.order.decoded(out[r.Start:r.End])) })
		if len(s.ranges) == 0 {
			break
		}
		if s.known = newKnown(out, s.ranges); s.known != nil && !s.partial {
			find(s, out) // and what was found, wherever else it is
		}
		if all == nil {
			out = bytes.Clone(in)
		}
		merged := merge(s.ranges)
		for i := range merged {
			r := &merged[i]
			r.Proven = r.order.token(m.key, out[r.Start:r.End], r.Rule)
		}
		all = append(all, merged...)
	}
	if len(all) == 0 {
		return in, nil
	}
	slices.SortFunc(all, func(a, b Range) int { return cmp.Compare(a.Start, b.Start) })
	return out, all
}

// isMasked reports whether a text is what a secret becomes that is too short for a token.
func isMasked(text []byte) bool { return len(bytes.Trim(text, "*")) == 0 }

// merge sorts ranges and joins those that overlap. The longest one names the rule. What overlaps in another encoding
// is left out: it is found again if a secret is left.
func merge(ranges []Range) []Range {
	slices.SortStableFunc(ranges, func(a, b Range) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(b.End, a.End))
	})
	out := make([]Range, 0, len(ranges))
	longest := 0
	for _, r := range ranges {
		if n := len(out) - 1; n >= 0 && r.Start < out[n].End {
			if r.order != out[n].order || r.order != narrow && (r.Start-out[n].Start)%2 != 0 {
				continue
			}
			out[n].End = max(out[n].End, r.End)
			if r.End-r.Start > longest {
				longest, out[n].Rule = r.End-r.Start, r.Rule
			}
			continue
		}
		longest = r.End - r.Start
		out = append(out, r)
	}
	return out
}

// scratch holds what one call of mask needs. It is reused.
type scratch struct {
	path    string
	order   order  // of the text, if it is known to be UTF-16
	view    []byte // of UTF-16
	block   block
	hits    []hit
	lineHit []hit // in a whole text
	hidden  bool  // there may be more of them, behind escapes
	looked  bool  // lineHit and hidden are of the text that is masked next
	levels  [maxLevels]text
	windows [][]window // by rule
	long    []window   // by rule: the last match of a token that was long
	done    []int      // by rule: where the last match ended
	touched []int      // the rules that have windows
	ranges  []Range
	clean   clean
	known   *known   // what was found already; nil: nothing, or nothing is looked for again
	partial bool     // the text is a part of a longer one: what was found in it may not be in the next part
	work    int      // how many bytes expressions have looked at
	names   []string // of the open containers
}

// Counter counts the tokens in what is written to it. What merely looks like a token counts too, and secrets that are
// too short for one do not.
type Counter struct {
	N    int64
	rest []byte // the end of what was written, where a token may have begun
}

// tokenStart is a token as far as its length is bounded.
var tokenStart = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\[[a-z0-9-]{0,40}:[a-z2-7]{8,26}[.\]]`)
})

const longestStart = len("[:]") + 40 + fullHash

// Write implements io.Writer. It never fails.
func (c *Counter) Write(p []byte) (int, error) {
	c.rest = append(c.rest, p...)
	end := 0
	for _, loc := range tokenStart().FindAllIndex(c.rest, -1) {
		c.N++
		end = loc[1]
	}
	keep := max(end, len(c.rest)-longestStart+1)
	c.rest = append(c.rest[:0], c.rest[keep:]...)
	return len(p), nil
}

// Explanation counts the tokens by which a text differs from the bytes on a disk.
type Explanation struct {
	Proven   int // they are what this key makes of the disk's bytes, whatever rule found them
	Unproven int // asterisks instead of secrets that are too short for a hash
}

// mostAsterisks is the longest secret that has no space for a hash, in bytes.
const mostAsterisks = len("[:]") + shortHash - 1

// Explain reports whether a held text is the disk's with some bytes masked, by whatever rules. Every difference must
// lie in a token that the key makes of the disk's bytes, or in asterisks of a secret that is too short for one. A nil
// Masker explains no difference.
func (m *Masker) Explain(disk, held []byte) (e Explanation, explained bool) {
	if len(disk) != len(held) {
		return e, false
	}
	var list []place
	after := 0
	for i := differs(disk, held, 0); i < len(held); i = differs(disk, held, i) {
		if m == nil {
			return e, false
		}
		if list == nil {
			list = placesOf(held)
		}
		for len(list) > 0 && list[0].ends(i) {
			list = list[1:]
		}
		stars := asterisks(disk, held, i, after)
		switch {
		case len(list) > 0 && list[0].reaches(i):
			end := m.end(list[0], disk, held, i)
			if end <= i {
				return e, false
			}
			list = list[1:]
			e.Proven++
			i, after = end, end
		case stars.from < stars.to:
			e.Unproven++
			i, after = stars.to, stars.to
		default:
			return e, false
		}
	}
	return e, true
}

// end returns where a token ends that stands for the bytes of a disk, those at an offset too; 0: it does not.
func (m *Masker) end(p place, disk, held []byte, at int) int {
	for _, t := range p.in(held) {
		if t.from <= at && m.proves(held[t.from:t.to], disk[t.from:t.to], t.order) {
			return t.to
		}
	}
	return 0
}

// differs returns the first position from an offset on where two texts of one length differ; their length if there is
// none.
func differs(a, b []byte, from int) int {
	const step = 4 << 10
	for ; from < len(a); from += step {
		end := min(len(a), from+step)
		if bytes.Equal(a[from:end], b[from:end]) {
			continue
		}
		for a[from] == b[from] {
			from++
		}
		return from
	}
	return len(a)
}
