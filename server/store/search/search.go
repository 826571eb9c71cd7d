// Package search finds lines by their words, in either database. Two tables keep segments of an index, by owner, and no
// text: a lookup finds candidates, then their lines are read and decide.
//
// Texts are cut into docs, the texts of some consecutive lines. A segment says of each run of three characters, a gram,
// which docs have it. A search reads the pages with the grams of its words, and gets the docs that may hold them. Docs
// are numbered by their newest line, oldest first, so candidates come newest first from the end.
//
// Each save of derived lines writes a small segment. Segments are immutable; in the background Merge makes fewer,
// larger ones of those of an owner, so that a search reads few pages. Nobody reads a segment before it replaces others
// in one transaction.
package search

import (
	"cmp"
	"container/heap"
	"context"
	"fmt"
	"hash/maphash"
	"math"
	"slices"
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/derive"
	"github.com/ccship/ccship/server/store/lines"
	"github.com/ccship/ccship/server/store/sqlstore"
)

const (
	// budgetBytes is the budget of a page, and patience how long it may take.
	budgetBytes = 24 << 20
	patience    = 10 * time.Second
)

// search is one page of a search.
type search struct {
	x     *Index
	d     sqlstore.Dialect
	scope server.Scope
	q     server.SearchQuery
	words []string
	shown []string // what snippets mark
	of    *ranking // set when ranking walks lines; nil for Search
	holds func(text string) bool
	calls derive.Calls
	plan  plan
	kinds uint32
	since int64 // oldest time
	upper int64 // newest time
	after *place
	only  map[int64]bool // streams of a session; nil: any

	streams  map[int64]*stream
	sessions map[ofOwner]bool // that lines of prompt histories name: whether they are stored
	alike    map[alike]place  // where the text of a session was found that has copies, or may have some
	hits     []hit            // in their order, one more than the page at most
	seed     maphash.Seed
	used     int // bytes
	budget   int // bytes
	began    time.Time
	floor    int64 // the time of what was looked at last
	cut      bool  // the budget ended before the page was full
}

// hit is a line that was found.
type hit struct {
	place
	text server.Hit
	gone string  // the session of a prompt that only a history has
	rank float64 // by the words that it has
}

// alike is what the hits of a session and of its copies have in common.
type alike struct {
	origin, kind string
	time         int64
	text         uint64
}

// elsewhere reports whether a better copy of the hit's session already shows the same text. If this hit is the better
// one, it removes the other.
func (s *search) elsewhere(h *hit, text string) bool {
	st := s.streams[h.stream]
	if st == nil || st.origin == "" {
		return false
	}
	key := alike{st.origin, h.kind, h.time, maphash.String(s.seed, text)}
	old, known := s.alike[key]
	if other := s.streams[old.stream]; known && old.stream != h.stream {
		if cmp.Or(cmp.Compare(other.copy, st.copy), cmp.Compare(old.stream, h.stream)) < 0 {
			return true
		}
		s.hits = slices.DeleteFunc(s.hits, func(x hit) bool { return x.place == old })
	}
	s.alike[key] = h.place
	return false
}

// spend counts bytes that were read.
func (s *search) spend(bytes int) { s.used += bytes }

// spent reports whether the budget is used up.
func (s *search) spent() bool { return s.used > s.budget || time.Since(s.began) > patience }

// Search implements server.Searcher.
func (x *Index) Search(ctx context.Context, scope server.Scope, q server.SearchQuery) (server.Hits, error) {
	s := x.search(scope, q)
	s.words = sqlstore.Needles(q.Text)
	s.holds = func(text string) bool { return sqlstore.HoldsAll(text, s.words) }
	if err := s.begin(q.After); err != nil || len(s.words) == 0 && s.calls.All() || q.Limit < 1 || s.kinds == 0 {
		return server.Hits{}, err
	}
	err := x.db.Read(ctx, func(d sqlstore.Dialect) error {
		s.d = d
		return s.run(ctx)
	})
	if err != nil {
		return server.Hits{}, fmt.Errorf("search: %w", err)
	}
	return s.answer(ctx)
}

func (x *Index) search(scope server.Scope, q server.SearchQuery) *search {
	return &search{x: x, scope: scope, q: q, kinds: bitsOf(q.KindsOrAll()), calls: derive.CallsOf(q.Tool, q.File),
		since: math.MinInt64, upper: math.MaxInt64, streams: map[int64]*stream{}, began: time.Now(),
		alike: map[alike]place{}, sessions: map[ofOwner]bool{}, seed: maphash.MakeSeed(), budget: x.bounds.Bytes}
}

// begin sets where a page begins and what is read for it.
func (s *search) begin(after string) (err error) {
	if s.after, err = parsePlace(after); err != nil {
		return err
	}
	s.planWalk()
	if !s.q.Since.IsZero() {
		s.since = s.q.Since.UnixMicro()
	}
	if !s.q.Until.IsZero() {
		s.upper = s.q.Until.UnixMicro() - 1
	}
	if s.after != nil {
		s.upper = min(s.upper, s.after.time)
	}
	return nil
}

// run walks through candidates from the newest on. Docs overlap in time, so a hit is not shown before every doc that
// could have a newer one was looked at.
func (s *search) run(ctx context.Context) error {
	x, err := s.segments(ctx)
	if err != nil {
		return err
	}
	s.floor = math.MaxInt64
	for {
		c, err := s.top(ctx, x)
		if err != nil || c == nil {
			return err
		}
		at := c.newestNext()
		if at > s.upper {
			s.used, s.began = 0, time.Now() // the page before read this part: it does not count against this page's budget
		}
		if len(s.hits) > s.q.Limit && s.hits[s.q.Limit].time > at {
			return nil
		}
		if at < s.floor && s.floor <= s.upper && s.spent() {
			s.cut, s.floor = true, at
			return nil
		}
		if at <= s.upper {
			s.floor = at
		}
		if c.doc != nil {
			if err := s.readCandidate(ctx, c); err != nil {
				return err
			}
		}
		more, err := s.next(ctx, c)
		if err != nil {
			return err
		}
		if !more {
			heap.Pop(&x.cursors)
			continue
		}
		heap.Fix(&x.cursors, 0)
	}
}

// planWalk sets how candidates are found. A line with a call has the words and what the call is known by; one with a
// result only the words.
func (s *search) planWalk() {
	needles := s.words
	if s.shown = s.words; !s.calls.All() {
		var known []string
		for _, n := range s.calls.Needles() {
			known = append(known, sqlstore.Needles(`"`+n+`"`)...)
		}
		if s.kinds&results == 0 {
			needles = slices.Concat(s.words, known)
		}
		if len(s.words) == 0 {
			s.shown = known
		}
	}
	s.plan = planOf(needles)
}

// add keeps a hit if its text has what is looked for.
func (s *search) add(h hit, text string) {
	before := s.after != nil && compare(h.place, *s.after) >= 0 // on the page before
	if bitsOf([]string{h.kind})&s.kinds == 0 || before && h.time > s.after.time || !s.holds(text) ||
		s.elsewhere(&h, text) || before {
		return
	}
	i, known := slices.BinarySearchFunc(s.hits, h, func(a, b hit) int { return compare(b.place, a.place) })
	if known || i > s.q.Limit {
		return
	}
	shown := s.shown
	if s.of != nil {
		shown = append(s.of.marked(text), shown...)
	}
	h.text.Snippet = snippet(h.kind, text, shown)
	s.hits = slices.Insert(s.hits, i, h)
	s.hits = s.hits[:min(len(s.hits), s.q.Limit+1)]
}

// end leaves out what belongs to later pages, and says where the next one begins.
func (s *search) end() (next string, cut bool) {
	if s.cut {
		n := 0
		for n < len(s.hits) && s.hits[n].time > s.floor {
			n++
		}
		s.hits = s.hits[:n]
		next, cut = timePlace(s.floor), true
	}
	if len(s.hits) > s.q.Limit {
		s.hits = s.hits[:s.q.Limit]
		next, cut = s.hits[s.q.Limit-1].String(), false
	}
	return next, cut
}

// answer shows what was found.
func (s *search) answer(ctx context.Context) (server.Hits, error) {
	var out server.Hits
	out.Next, out.More = s.end()
	var ids []int64
	for _, h := range s.hits {
		ids = append(ids, h.stream)
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	if len(ids) == 0 {
		return out, nil
	}
	sessions, err := s.x.found.ByID(ctx, ids)
	if err != nil {
		return server.Hits{}, fmt.Errorf("search: %w", err)
	}
	for _, h := range s.hits {
		session, ok := sessions[h.stream]
		if !ok {
			continue // forgotten meanwhile
		}
		x := h.text
		x.Session, x.Summary = session.Session, session.Summary
		x.Generation, x.Line, x.Kind, x.Time = h.generation, h.line, h.kind, sqlstore.Moment(h.time)
		out.List = append(out.List, x)
	}
	return out, nil
}

// Place is an epoch of a stream.
type Place struct{ Owner, Stream, Epoch int64 }

// selectEpochs asks for stream, id and name of the epochs e of streams, and for number and first line of their
// generations g. A condition on e follows.
const selectEpochs = `SELECT e.stream, e.rank, e.name, g.generation, g.rewound_to
FROM epochs e JOIN generations g ON g.owner = e.owner AND g.stream = e.stream AND g.epoch = e.rank WHERE`

// Index is the index of a database. Safe for concurrent use.
type Index struct {
	db     sqlstore.Writer
	held   *lines.Lines
	found  *sqlstore.Finder
	bounds Bounds
	tend   *tender
}

// New returns the index of a database.
func New(db sqlstore.DB, held *lines.Lines, found *sqlstore.Finder) *Index {
	return NewWithin(db, held, found, Bounds{Bytes: budgetBytes, Turns: MostTurns, Segments: rankBytes})
}

// Bounds are what a search may read.
type Bounds struct {
	// Bytes of lines and of the index, for one page. Then it ends, with what it has and where the next page goes on.
	Bytes int
	// Turns that a ranking scores: of more that have words, those that match best.
	Turns int
	// Segments is how many bytes of them a ranking reads for a word; for several, and with enough turns, four sevenths.
	Segments int
}

// NewWithin is New with other bounds.
func NewWithin(db sqlstore.DB, held *lines.Lines, found *sqlstore.Finder, b Bounds) *Index {
	x := &Index{db: sqlstore.Writer{DB: db, How: sqlstore.Lazy}, held: held, found: found, bounds: b}
	x.tend = &tender{x: x, due: map[int64]bool{}}
	return x
}

// lines calls yield with the stored lines of a span of a generation.
func (x *Index) lines(ctx context.Context, d sqlstore.Dialect, at Place, s server.Span,
	yield func(server.Line) error) error {
	return x.held.Read(ctx, d, lines.Place{Owner: at.Owner, Stream: at.Stream, Epoch: at.Epoch}, s, yield)
}

// Close ends what runs in the background.
func (x *Index) Close() { x.tend.close() }

// States of a segment next to its level.
const (
	making = -1 // nobody reads it yet
	gone   = -2 // nobody reads it any more
)

// kinds are all kinds of texts; their positions are bits of a doc.
var kinds = append(server.TextKinds(), server.PlaceKinds()...)

// bitsOf returns the bits of kinds; of names that are none, none.
func bitsOf(names []string) (bits uint32) {
	for _, n := range names {
		if i := slices.Index(kinds, n); i >= 0 {
			bits |= 1 << i
		}
	}
	return bits
}
