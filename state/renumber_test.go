package state

import (
	"testing"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/tail"
)

// rewoundTwice queues lines of a file, and those of the generation after them.
func rewoundTwice(t *testing.T) *DB {
	db := open(t, Options{})
	commit(t, db, advance(1, 0, 5, 100), advance(2, 0, 3, 100))
	was, _ := db.Files.Reload(t.Context(), 1)
	rewound := advance(1, 5, 6, 100)
	rewound.From = tail.Cursor{Generation: was.Cursor.Generation + 1}
	rewound.Tracked.Cursor.Generation = was.Cursor.Generation + 1
	rewound.Batches = []outbox.Batch{batch(0, 6, was.Cursor.Generation+1, 100)}
	commit(t, db, rewound)
	return db
}

// TestRenumber: the queued lines of a file that is gone keep their bytes and their order, behind the server's.
func TestRenumber(t *testing.T) {
	db := rewoundTwice(t)
	before := peek(t, db, 1, 0, outbox.Limits{})
	kit.Err(t, "an unknown file", ErrUnknownFile)(db.Renumber(t.Context(), 9, "front", 7))
	kit.Must(t, db.Renumber(t.Context(), 1, "front", 7))
	checkIndex(t, db)
	first := peek(t, db, 1, 0, outbox.Limits{})
	if len(first.Batches) != 1 || first.Stream.Epoch != "front" || first.Batches[0].Generation != 8 ||
		first.Batches[0].RewoundTo != first.Batches[0].From.Line ||
		string(first.Batches[0].Frame) != string(before.Batches[0].Frame) {
		t.Errorf("queued %+v", first)
	}
	second := peek(t, db, 1, first.Batches[0].Seq, outbox.Limits{})
	kit.Check(t, len(second.Batches) == 1 && second.Batches[0].Generation == 9, "then %+v", second)
	now, _ := db.Files.Reload(t.Context(), 1)
	kit.Check(t, now.Cursor.Generation == 9, "the file is in generation %d", now.Cursor.Generation)
	kit.Equal(t, "the other file has batches", len(peek(t, db, 2, 0, outbox.Limits{}).Batches), 1)
}
