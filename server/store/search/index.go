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
	"github.com/ccship/ccship/server/store/sqlstore"
)

// Database is what the two databases do differently.
type Database interface {
	// Read runs fn on one state of the database.
	Read(ctx context.Context, fn func(sqlstore.Dialect) error) error
	// Write runs fn in a transaction that need not survive a crash. It may be retried: fn then starts afresh.
	Write(ctx context.Context, fn func(sqlstore.Dialect) error) error
	// Lines calls yield with the stored lines of a span of a generation.
	Lines(ctx context.Context, d sqlstore.Dialect, at Place, s server.Span, yield func(server.Line) error) error
	// Sessions are those of the streams that are still there.
	Sessions(ctx context.Context, ids []int64) (map[int64]server.FoundSession, error)
}

// Place is an epoch of a stream.
type Place struct{ Owner, Stream, Epoch int64 }

// selectEpochs asks for stream, id and name of the epochs e of streams, and for number and first line of their
// generations g. A condition on e follows.
const selectEpochs = `SELECT e.stream, e.rank, e.name, g.generation, g.rewound_to
FROM epochs e JOIN generations g ON g.owner = e.owner AND g.stream = e.stream AND g.epoch = e.rank WHERE`

// Index is the index of a database. Safe for concurrent use.
type Index struct {
	db     Database
	budget int // bytes that a page of a search reads
	tend   *tender
}

// New returns the index of a database.
func New(db Database) *Index { return NewWithin(db, budgetBytes) }

// NewWithin is New with another budget: how many bytes of lines and of the index one page of a search may read. Then it
// ends, with what it has and where the next page goes on.
func NewWithin(db Database, budget int) *Index {
	x := &Index{db: db, budget: budget}
	x.tend = newTender(x)
	return x
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

// bitsOf are the bits of kinds; of names that are none, none.
func bitsOf(names []string) (bits uint32) {
	for _, n := range names {
		if i := slices.Index(kinds, n); i >= 0 {
			bits |= 1 << i
		}
	}
	return bits
}
