package state

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/tail"
)

// rewound is the step of a file from line prev back to line to and on to line end, in the next generation.
func rewound(id tail.FileID, prev tail.Cursor, to, end int64) Step {
	g := prev.Generation + 1
	return Step{Prev: prev, From: cursorAt(to, g), Tracked: tracked(id, cursorAt(end, g)), Routing: factsFor(id, server),
		Marks: []tail.Mark{{Offset: 10 * end, Line: end, Hash: uint64(end) + uint64(g)<<32}}}
}

func mark(line int64, generation uint32) tail.Mark {
	return tail.Mark{Offset: 10 * line, Line: line, Hash: uint64(line) + uint64(generation)<<32}
}

// A rewind keeps what was known of the generation it ends, the marks it cuts included; forgetting the file does not.
func TestPasts(t *testing.T) {
	db := open(t, Options{})
	commit(t, db, advance(1, 0, 3, 1), advance(1, 3, 6, 1), advance(2, 0, 4, 1))
	settle(t, db, 1, 1, 2)
	commit(t, db, rewound(1, cursorAt(6, 0), 3, 5))
	s := rewound(1, cursorAt(5, 1), 0, 1)
	s.Routing.Excluded = 2
	commit(t, db, s)
	commit(t, db, rewound(1, cursorAt(1, 2), 1, 9))
	want := []PastGeneration{
		{Dest: server, Generation: 2, Next: 3, Cursor: cursorAt(1, 2), CutOffset: 10, CutLine: 1, LeftOut: true},
		{Dest: server, Generation: 1, Next: 2, Cursor: cursorAt(5, 1), Marks: []tail.Mark{mark(3, 0), mark(5, 1)}},
		{Dest: server, Generation: 0, Next: 1, Cursor: cursorAt(6, 0), CutOffset: 30, CutLine: 3, Marks: []tail.Mark{mark(6, 0)}},
	}
	for _, when := range []string{"at once", "after opening again"} {
		h := kit.Try(db.Files.History(t.Context(), 1)).Must(t)
		diff := cmp.Diff(want, h.Past)
		kit.Check(t, diff == "", "%s (-want +got):\n%s", when, diff)
		for generation, want := range [][]tail.Mark{{mark(3, 0), mark(6, 0)}, {mark(3, 0), mark(5, 1)}, {mark(1, 2)}, {mark(1, 2), mark(9, 3)}} {
			got, ok := h.MarksOf(uint32(generation))
			kit.Check(t, ok && cmp.Equal(want, got), "%s: marks of generation %d are %v (%v), want %v", when, generation, got, ok, want)
		}
		_, ok := h.MarksOf(9)
		kit.Check(t, !ok, "a generation that never was has marks")
		h.Past = h.Past[1:]
		_, ok = h.MarksOf(0)
		kit.Check(t, !ok, "marks are known across a past that is missing")
		if when == "at once" {
			path := db.opt.Path
			db = reopen(t, db, path)
		}
	}
	kit.Try(db.Files.Forget(t.Context(), []tail.FileID{1})).Must(t)
	kit.Err(t, "after Forget", ErrUnknownFile)(db.Files.History(t.Context(), 1))
	for key := range dump(t, db) {
		kit.Check(t, !strings.HasPrefix(key, "generations/"), "%q is left", key)
	}
}

// The oldest pasts go when there are too many, and marks when a file is too large.
func TestPastsAreBounded(t *testing.T) {
	db := open(t, Options{})
	commit(t, db, advance(1, 0, 3, 1))
	prev := cursorAt(3, 0)
	for range maxPast + 2 {
		commit(t, db, rewound(1, prev, 2, 3))
		prev = cursorAt(3, prev.Generation+1)
	}
	s := Step{Prev: prev, From: prev, Tracked: tracked(1, cursorAt(9000, prev.Generation)), Routing: factsFor(1, server)}
	for line := range int64(maxPastMarks + 1) {
		s.Marks = append(s.Marks, mark(line+4, prev.Generation))
	}
	commit(t, db, s, rewound(1, s.Tracked.Cursor, 2, 3))
	h := kit.Try(db.Files.History(t.Context(), 1)).Must(t)
	list := h.Past
	if len(list) != maxPast || !list[0].Unmarked || list[0].Marks != nil || list[1].Unmarked || list[0].Generation != maxPast+2 {
		t.Errorf("%d pasts, the newest %+v", len(list), list[0])
	}
}

// Drop takes rows of every destination and dead letters of the named files, and nothing else.
func TestDrop(t *testing.T) {
	db := open(t, Options{})
	seqs := prepare(t, db)
	other := advance(1, 6, 8, 10)
	other.Prev, other.From = cursorAt(6, 0), cursorAt(6, 0)
	other.Routing.Dest = "https://two.example/"
	commit(t, db, other)
	before := db.Outbox.QueuedEntries(2)
	d, err := db.Outbox.Drop(t.Context(), []tail.FileID{1, 77})
	if err != nil || d.Dead != 1 || d.Rows == 0 || db.Outbox.QueuedEntries(1) != 0 || db.Outbox.QueuedEntries(2) != before || before == 0 {
		t.Errorf("dropped %+v, %v; %d entries of 1 wait, %d of 2 (of %d)", d, err, db.Outbox.QueuedEntries(1), db.Outbox.QueuedEntries(2), before)
	}
	letters, err := db.DeadLetters.List(t.Context())
	kit.Check(t, err == nil && len(letters) == 0, "dead letters: %v, %v", letters, err)
	settle(t, db, 1, seqs[0]) // what was in flight
	got, err := db.Files.Reload(t.Context(), 1)
	kit.Check(t, err == nil && got.Cursor == cursorAt(8, 0), "cursor %+v, %v", got.Cursor, err)
}
