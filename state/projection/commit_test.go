package projection

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/tail"
)

func placeAt(line int64) Place { return Place{Offset: 10 * line, Line: line} }

// projectionAt is what is kept of a file after so many lines.
func projectionAt(line int64) *Projection {
	text := func(kind string) []byte { return bytes.Repeat(fmt.Appendf(nil, "%s of %d lines. ", kind, line), 20) }
	return &Projection{Place: placeAt(line), Fold: text("fold"), Log: text("log"), Marks: text("marks")}
}

// noise is bytes that do not compress.
func noise(size int) []byte {
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(rand.IntN(256))
	}
	return b
}

func deriveAll(t testing.TB, db *DB, all ...Derivation) []error {
	t.Helper()
	return kit.Try(db.Commit(t.Context(), all)).Must(t)
}

// kept is what is kept of a file; the zero value if nothing is.
func kept(t testing.TB, db *DB, id tail.FileID) Projection {
	t.Helper()
	u, _, err := db.Sessions.Projection(t.Context(), id)
	kit.Must(t, err)
	return u
}

func TestCommitContinues(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	db := open(t, state.Options{Path: path})
	commit(t, db, advance(1, 0, 9, 50))
	beside := outbox.Batch{Kind: outbox.Checkpoints, Items: 1, Raw: 5, Frame: []byte("check")}
	for i, errs := range [][]error{
		deriveAll(t, db, Derivation{File: 1, Projection: projectionAt(3), Batches: []outbox.Batch{beside}}),
		deriveAll(t, db, Derivation{File: 1, Prev: placeAt(3), Projection: projectionAt(7)}),
	} {
		kit.Require(t, errs[0] == nil, "%v %v", i, errs[0])
	}
	closeNow(t, db)
	db = open(t, state.Options{Path: path})
	kit.Same(t, "differs", cmp.Diff(*projectionAt(7), kept(t, db, 1)))
	rows := peek(t, db, 1, 0, outbox.Limits{Entries: 100}).Batches
	kit.Require(t, len(rows) == 2 && string(rows[1].Frame) == "check" && rows[1].Seq > rows[0].Seq, "rows %+v", rows)
	settle(t, db, 1, rows[0].Seq)
	n := db.State.Outbox.QueuedEntries(1)
	kit.Check(t, n == 0 && db.State.Outbox.Usage().Batches == 1, "%d entries wait: a checkpoint is none", n)
}

// A derivation whose position was left by another is left out whole; the others in its call are not.
func TestCommitStale(t *testing.T) {
	db := open(t, state.Options{})
	commit(t, db, advance(1, 0, 9, 50), advance(2, 0, 9, 50))
	deriveAll(t, db, Derivation{File: 1, Projection: projectionAt(3)})
	row := []outbox.Batch{{Kind: outbox.Documents, Items: 1, Raw: 1, Frame: []byte("x")}}
	before := db.State.Outbox.Usage()
	errs := deriveAll(t, db,
		Derivation{File: 1, Projection: projectionAt(5), Batches: row},
		Derivation{File: 1, Prev: placeAt(2), Projection: projectionAt(5), Batches: row},
		Derivation{File: 1, Prev: Place{Offset: 30, Line: 3, Generation: 1}, Projection: projectionAt(5), Batches: row},
		Derivation{File: 3, Projection: projectionAt(5), Batches: row},
		Derivation{File: 2, Projection: projectionAt(5)},
	)
	for i, want := range []error{tail.ErrStale, tail.ErrStale, tail.ErrStale, state.ErrUnknownFile, nil} {
		if !errors.Is(errs[i], want) || want == nil && errs[i] != nil {
			t.Errorf("%d: %v, want %v", i, errs[i], want)
		}
	}
	kit.Same(t, "differs", cmp.Diff(*projectionAt(3), kept(t, db, 1)))
	kit.Equal(t, "rows before", db.State.Outbox.Usage().Batches, before.Batches)
	kit.Equal(t, "the one that was not stale is not kept", kept(t, db, 2).Place, placeAt(5))
	if errs := deriveAll(t, db, Derivation{File: 1, Batches: row}); errs[0] != nil || db.State.Outbox.Usage().Batches != before.Batches+1 {
		t.Errorf("rows without a fold: %v, %d rows", errs[0], db.State.Outbox.Usage().Batches)
	}
}

// What goes nowhere is not queued: the file's project has no server, or may not be sent.
func TestCommitWithoutDestination(t *testing.T) {
	db := open(t, state.Options{})
	kit.Must(t, db.State.Files.Update(t.Context(), []tail.Tracked{tracked(1, tail.Cursor{})}))
	errs := deriveAll(t, db, Derivation{File: 1, Projection: projectionAt(0), Batches: []outbox.Batch{{Kind: outbox.Documents, Frame: []byte("x")}}})
	kit.Check(t, errs[0] == nil && db.State.Outbox.Usage().Batches == 0, "%v, %d rows", errs[0],
		db.State.Outbox.Usage().Batches)
}

// Every step of Derive may fail; then nothing of it is there, and it can be done again.
func TestCommitFails(t *testing.T) {
	for _, step := range []string{"put session", "put messages", "put batch", "commit"} {
		t.Run(step, func(t *testing.T) {
			failing := false
			db := open(t, state.Options{Fault: func(at string) error { return kit.If[error](failing && at == step, kit.ErrInjected, nil) }})
			commit(t, db, advance(1, 0, 9, 50))
			d := []Derivation{{File: 1, Projection: projectionAt(4), Batches: []outbox.Batch{{Kind: outbox.Documents, Frame: []byte("x")}}}}
			before := dump(t, db)
			failing = true
			_, err := db.Commit(t.Context(), d)
			kit.Require(t, errors.Is(err, kit.ErrInjected), "%v", err)
			failing = false
			kit.Same(t, "differs", cmp.Diff(before, dump(t, db)))
			errs := deriveAll(t, db, d...)
			kit.Check(t, errs[0] == nil && kept(t, db, 1).Place == placeAt(4), "again: %v", errs)
		})
	}
}

// Above the bound the fold that was written the longest ago goes, its position stays, and what is to be kept is.
func TestFoldsAreBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	db := openWith(t, state.Options{Path: path}, 64<<10)
	const files = 40
	for id := tail.FileID(1); id <= files; id++ {
		commit(t, db, advance(id, 0, 9, 10))
		u := projectionAt(4)
		u.Log = noise(5000) // does not compress
		u.Cleared = int64(id)
		deriveAll(t, db, Derivation{File: id, Projection: u})
		n := db.memory.foldBytes()
		kit.Require(t, n <= 64<<10, "%d bytes after %d", n, id)
		kit.Require(t, len(kept(t, db, id).Fold) != 0, "the newest, %d, lost its fold", id)
	}
	without := 0
	for id := tail.FileID(1); id <= files; id++ {
		u := kept(t, db, id)
		kit.Check(t, u.Place == placeAt(4) && u.Cleared == int64(id), "%d is at %+v", id, u)
		if len(u.Fold) == 0 {
			without++
		}
	}
	kit.Check(t, without >= files/2 && without != files, "%d of %d have no fold", without, files)
	want := db.memory.foldBytes()
	closeNow(t, db)
	if db = open(t, state.Options{Path: path}); db.memory.foldBytes() != want {
		t.Errorf("%d bytes, %d after opening", want, db.memory.foldBytes())
	}
}

func TestDrop(t *testing.T) {
	db := open(t, state.Options{})
	commit(t, db, advance(1, 0, 9, 50), advance(2, 0, 9, 50))
	deriveAll(t, db, Derivation{File: 1, Projection: projectionAt(3)}, Derivation{File: 2, Projection: projectionAt(3)})
	kit.Must(t, db.Drop(t.Context(), []tail.FileID{1, 7}))
	_, known, _ := db.Sessions.Projection(t.Context(), 1)
	kit.Check(t, !known, "it is still there")
	kit.Equal(t, "another one went with it", kept(t, db, 2).Place, placeAt(3))
	errs := deriveAll(t, db, Derivation{File: 1, Prev: placeAt(3), Projection: projectionAt(5)})
	kit.Check(t, errors.Is(errs[0], tail.ErrStale), "a late fold of it: %v", errs[0])
	settle(t, db, 2, peek(t, db, 2, 0, outbox.Limits{Entries: 100}).Batches[0].Seq)
	kit.Try(db.State.Files.Forget(t.Context(), []tail.FileID{2})).Must(t)
	kit.Equal(t, "bytes of files that are gone", db.memory.foldBytes(), 0)
}

// Lagging returns what is not folded to its end, if it is followed.
func TestLagging(t *testing.T) {
	db := open(t, state.Options{})
	var steps []state.Step
	for id := tail.FileID(1); id <= 5; id++ {
		s := advance(id, 0, 9, 10)
		s.Routing.Watched, s.Routing.WatchedFrom = id <= 3, 40
		s.Routing.Compacted = id == 4
		steps = append(steps, s)
	}
	commit(t, db, steps...)
	deriveAll(t, db, Derivation{File: 2, Projection: projectionAt(9)}, Derivation{File: 3, Projection: projectionAt(4)})
	ids := kit.Try(db.Sessions.Lagging(t.Context())).Must(t)
	got := map[tail.FileID]bool{}
	for _, id := range ids {
		got[id] = true
	}
	kit.Same(t, "differs", cmp.Diff(map[tail.FileID]bool{1: true, 3: true, 4: true}, got))
	f, _, err := db.State.Files.Routing(t.Context(), 1)
	kit.Check(t, err == nil && f.Watched && f.WatchedFrom == 40 && !f.Compacted, "%+v %v", f, err)
}
