package search

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/derive"
	"github.com/ccship/ccship/server/store/sqlstore"
)

// results are the kinds of texts that tools answer.
var results = bitsOf([]string{"result", server.ErrorKind})

// callsBefore are how many lines before a result its call is looked for in, one step after the other.
var callsBefore = []int64{16, 64, 200}

// candidate is a doc whose lines are read.
type candidate struct {
	doc       *doc
	st        *stream
	epoch     string
	times     map[int64]int64 // of the lines that may be shown, by index
	known     map[string]bool // calls by id: whether the query chooses them
	unmatched []server.Line   // with results of calls that are not known yet
	past      []past          // of the prompt history
}

// ofOwner is a session of an owner.
type ofOwner struct {
	owner   int64
	session string
}

// past is a line of the prompt history.
type past struct {
	line int64
	derive.Past
}

// readCandidate reads the lines of a candidate.
func (s *search) readCandidate(ctx context.Context, c *cursor) error {
	d := c.doc
	if d.Kinds&s.kinds == 0 || d.Oldest() > s.upper || d.Newest() < s.since || s.only != nil && !s.only[d.Stream] {
		return nil
	}
	st, err := s.stream(ctx, d.Stream)
	if err != nil || st == nil {
		return err
	}
	epoch, ok := st.epochOf(d)
	if !ok {
		return nil
	}
	x := candidate{doc: d, st: st, epoch: epoch, times: map[int64]int64{}, known: map[string]bool{}}
	from, to := int64(math.MaxInt64), int64(0)
	for _, l := range d.Lines {
		if l.Time >= s.since && l.Time <= s.upper && st.counts(d, l.Index) && (s.q.Superseded || st.shows(d, l.Index)) {
			x.times[l.Index] = l.Time
			from, to = min(from, l.Index), max(to, l.Index+1)
		}
	}
	if len(x.times) == 0 {
		return nil
	}
	err = s.lines(ctx, &x, server.Span{Generation: d.Generation, From: from, To: to}, s.readLine)
	for _, p := range x.past {
		stored, e := s.stored(ctx, st.owner, p.Session)
		if err = cmp.Or(err, e); err == nil && !stored {
			s.addTexts(&x, p.line, p.Session, []server.Text{{Kind: server.HistoryKind, Text: p.Text}})
		}
	}
	if err == nil && len(x.unmatched) > 0 {
		err = s.addUnmatched(ctx, &x)
	}
	if _, damaged := errors.AsType[*server.DamagedError](err); damaged {
		return nil // what cannot be read is not found
	}
	return err
}

func (s *search) lines(ctx context.Context, x *candidate, span server.Span, each func(*candidate, server.Line)) error {
	at := Place{x.st.owner, x.doc.Stream, x.doc.Epoch}
	return s.x.lines(ctx, s.d, at, span, func(l server.Line) error {
		s.spend(len(l.Raw))
		each(x, l)
		return nil
	})
}

// readLine adds the texts of a line of a candidate.
func (s *search) readLine(x *candidate, l server.Line) {
	if _, wanted := x.times[l.Index]; !wanted {
		return
	}
	if !s.calls.All() {
		texts, sure := s.calls.Of(l, x.known)
		if sure || s.kinds&results == 0 {
			s.addTexts(x, l.Index, "", texts)
			return
		}
		l.Raw = slices.Clone(l.Raw)
		x.unmatched = append(x.unmatched, l)
		return
	}
	if p, ok := derive.PastOf(l); ok {
		x.past = append(x.past, past{l.Index, p})
		return
	}
	texts := derive.TextsOf(l)
	for _, c := range x.doc.Carried {
		if c.Line == l.Index && x.doc.Round == x.st.round {
			texts = append(texts, server.Text{Kind: kindOf(c.Kind), Text: c.Text})
		}
	}
	s.addTexts(x, l.Index, "", texts)
}

// stored reports whether an owner has a session, or had it forgotten: then its prompts are not looked for elsewhere.
func (s *search) stored(ctx context.Context, owner int64, session string) (bool, error) {
	key := ofOwner{owner, session}
	if is, known := s.sessions[key]; known {
		return is, nil
	}
	is := false
	found := func(sqlstore.Scanner) error { is = true; return nil }
	var f sqlstore.Filter
	f.Add(`s.owner = ?`, owner)
	f.Session(session, false)
	err := s.d.Query(ctx, `SELECT 1 FROM streams s `+f.Where(), f.Args, found)
	if err == nil && !is {
		err = s.d.Query(ctx, `SELECT 1 FROM forgotten f WHERE f.owner = ? AND f.session_key = ?`,
			[]any{owner, sqlstore.Key(session)}, found)
	}
	s.sessions[key] = is
	return is, err
}

// addTexts keeps those texts of a line that have what is looked for; gone is the session of a prompt that only a
// history has.
func (s *search) addTexts(x *candidate, line int64, gone string, texts []server.Text) {
	d := x.doc
	for _, t := range texts {
		s.add(hit{place: place{x.times[line], d.Stream, d.Epoch, d.Generation, line, t.Kind}, gone: gone,
			text: server.Hit{Epoch: x.epoch, Current: x.st.shows(d, line)}}, t.Text)
	}
}

// addUnmatched adds the texts of results whose calls were not seen yet. It reads the lines before for them.
func (s *search) addUnmatched(ctx context.Context, x *candidate) error {
	first, last := x.unmatched[0].Index, x.unmatched[len(x.unmatched)-1].Index
	from, to := first, last
	for step := 0; ; step++ {
		for _, span := range x.st.spans(x.doc, from, to) {
			err := s.lines(ctx, x, span, func(x *candidate, l server.Line) { s.calls.Of(l, x.known) })
			if err != nil {
				return err
			}
		}
		all := true
		for _, l := range x.unmatched {
			_, sure := s.calls.Of(l, x.known)
			all = all && sure
		}
		if all || from == 0 || step == len(callsBefore) {
			break
		}
		from, to = max(0, from-callsBefore[step]), from
	}
	for _, l := range x.unmatched {
		texts, _ := s.calls.Of(l, x.known)
		s.addTexts(x, l.Index, "", texts)
	}
	return nil
}

// spans returns where the lines from one up to another are stored that the generation of a doc has.
func (s *stream) spans(d *doc, from, to int64) (out []server.Span) {
	i := slices.IndexFunc(s.epochs, func(e epoch) bool { return e.id == d.Epoch })
	list := slices.Clone(s.epochs[i].generations)
	slices.SortFunc(list, func(a, b generation) int { return int(b.number - a.number) })
	for _, g := range list {
		if begin := max(from, g.from); g.number <= d.Generation && begin < to {
			out = append(out, server.Span{Generation: g.number, From: begin, To: to})
			to = begin
		}
	}
	return out
}

func kindOf(bits uint32) string {
	for i, k := range kinds {
		if bits&(1<<i) != 0 {
			return k
		}
	}
	return ""
}

// plan is what a search reads of each segment.
type plan struct {
	All []key       // a doc must have each of them
	Any []gramRange // if All is empty, one gram of each of these ranges; nil too: every doc is a candidate
}

// gramRange is the grams from From up to and with To.
type gramRange struct{ From, To key }

const (
	// planGrams is how many grams of one needle are looked up, the rarest: the docs are read anyway.
	planGrams = 10
	// planMax is how many are looked up in all.
	planMax = 12
)

// planOf says how to look for texts that have all needles, each in its searchable form.
func planOf(needles []string) plan {
	var p plan
	var short []gramRange
	for _, n := range needles {
		r := []rune(n)
		switch {
		case len(r) >= 3:
			p.All = append(p.All, rarest(r)...)
		case len(r) > 0:
			short = append(short, prefix(r))
		}
	}
	slices.SortStableFunc(p.All, func(a, b key) int { return rarity(b) - rarity(a) })
	p.All = distinct(p.All)
	p.All = p.All[:min(len(p.All), planMax)]
	if len(p.All) == 0 {
		// The longest is the rarest, most likely.
		slices.SortStableFunc(short, func(a, b gramRange) int { return int((a.To-a.From)>>32) - int((b.To-b.From)>>32) })
		p.Any = short[:min(len(short), 1)]
	}
	return p
}

func prefix(r []rune) gramRange {
	k := key(0)
	for _, c := range r {
		k = k<<runeBits | key(c)
	}
	rest := runeBits * (3 - len(r))
	return gramRange{k << rest, k<<rest | (1<<rest - 1)}
}

func rarest(r []rune) []key {
	var keys []key
	for i := range len(r) - 2 {
		keys = append(keys, key(r[i])<<(2*runeBits)|key(r[i+1])<<runeBits|key(r[i+2]))
	}
	slices.SortStableFunc(keys, func(a, b key) int { return rarity(b) - rarity(a) })
	keys = distinct(keys)
	return keys[:min(len(keys), planGrams)]
}

func distinct(keys []key) []key {
	var out []key
	for _, k := range keys {
		if !slices.Contains(out, k) {
			out = append(out, k)
		}
	}
	return out
}

// common are characters from the most common one in transcripts on.
const common = " etaoinsrlcdpumfgh.b/-_vwyk,:\"()0123x456789jzq"

// rarity is larger for grams that fewer docs have, most likely.
func rarity(k key) int {
	sum := 0
	for range 3 {
		at := strings.IndexRune(common, rune(k&(1<<runeBits-1)))
		if at < 0 {
			at = len(common)
		}
		sum += at
		k >>= runeBits
	}
	return sum
}

// both returns the docs of two ascending lists, in the first.
func both(a, b []uint32) []uint32 {
	out := a[:0]
	for i, k := 0, 0; i < len(a) && k < len(b); {
		switch {
		case a[i] < b[k]:
			i++
		case a[i] > b[k]:
			k++
		default:
			out = append(out, a[i])
			i, k = i+1, k+1
		}
	}
	return out
}

// Holds reports whether the data of a segment's row has the grams of a text: what an audit of the tables asks.
func Holds(data []byte, folded string) (bool, error) {
	list, err := unpacked(data)
	if err != nil {
		return false, err
	}
	plan := planOf([]string{folded})
	found := map[key]bool{}
	for _, p := range list {
		if p.Part != gramPage {
			continue
		}
		all := func(key) bool { return true }
		if err := each(p, 0, math.MaxUint64, all, func(k key, _ []uint32) { found[k] = true }); err != nil {
			return false, err
		}
	}
	for _, k := range plan.All {
		if !found[k] {
			return false, nil
		}
	}
	return len(plan.All) > 0, nil
}
