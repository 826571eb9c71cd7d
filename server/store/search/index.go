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
	"context"
	"slices"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store/lines"
	"github.com/ccship/ccship/server/store/sqlstore"
)

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
