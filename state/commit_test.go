package state

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/state/kv"
	"github.com/ccship/ccship/tail"
)

func TestStepSurvivesReopen(t *testing.T) {
	db, path := openAt(t)
	s := advance(1, 0, 3, 100)
	s.Tracked.File.Kind, s.Tracked.File.Copy = tail.Agent, 2
	s.Tracked.Provisional = tail.Provisional{Length: 5, Hash: 1 << 63}
	s.Tracked.Verified = tail.Stat{Device: 1 << 63, Inode: 2, Size: 3, ModTime: -4, ChangeTime: 5}
	s.Tracked.Gone, s.Tracked.Missed = 6, 7
	s.Tracked.Cursor = tail.Cursor{Offset: 30, Line: 3, Generation: 1<<32 - 1, Anchor: 1<<64 - 1, Mark: 30, Segment: 9}
	s.Routing.Stream.Parent, s.Routing.Stream.MaxEntries, s.Routing.Stream.Extended = "main", 5, true
	s.Routing.RewoundTo, s.Routing.Excluded = 2, 4
	s.Batches[0].Edges = []protocol.Edge{{Line: 1, Before: []byte("  "), After: nil}, {Line: 2, After: []byte("\r")}}
	s.Batches[0].NoNewline, s.Batches[0].Kind, s.Batches[0].RewoundTo = true, outbox.Opaque, 2
	commit(t, db, s)
	epoch := db.Epoch()
	closeNow(t, db)

	db = open(t, Options{Path: path})
	if db.Epoch() != epoch || len(epoch) != 32 {
		t.Errorf("epoch %q, was %q", db.Epoch(), epoch)
	}
	got, err := db.Files.Reload(t.Context(), 1)
	if err != nil || got != s.Tracked {
		t.Errorf("reload: %v %s", err, cmp.Diff(s.Tracked, got))
	}
	all, err := db.Files.Load(t.Context())
	kit.Check(t, err == nil && len(all) == 1 && all[0] == s.Tracked, "load: %v %v", all, err)
	facts, err := db.Files.Routings(t.Context())
	if err != nil || facts[1] != s.Routing {
		t.Errorf("facts: %v %s", err, cmp.Diff(s.Routing, facts[1]))
	}
	f, ok, err := db.Files.Routing(t.Context(), 1)
	kit.Check(t, f == s.Routing && ok && err == nil, "facts of one: %v %v %v", f, ok, err)
	diff := cmp.Diff(outbox.StreamBatches{Stream: s.Routing.Stream, Batches: s.Batches}, peek(t, db, 1, 0, outbox.Limits{}))
	kit.Check(t, diff == "", "%v", diff)
	marks, err := db.Files.Marks(t.Context(), 1)
	kit.Check(t, err == nil && cmp.Equal(marks, s.Marks), "marks %v %v", marks, err)
}

// lastTx is the number of the last committed transaction.
func lastTx(t *testing.T, db *DB) (id int) {
	t.Helper()
	kit.Must(t, db.View(t.Context(), func(tx *kv.Snapshot) error { id = tx.ID(); return nil }))
	return id
}

func TestStaleStepIsLeftOut(t *testing.T) {
	db := open(t, Options{})
	commit(t, db, advance(1, 0, 3, 10))
	before, last := dump(t, db), lastTx(t, db)
	errs, err := db.Commit(t.Context(), []Step{advance(1, 0, 5, 10), advance(2, 4, 5, 10)})
	kit.Require(t, err == nil && errors.Is(errs[0], tail.ErrStale) && errors.Is(errs[1], tail.ErrStale), "%v %v", errs,
		err)
	settle(t, db, 1, 77)
	diff := cmp.Diff(before, dump(t, db))
	kit.Check(t, diff == "" && lastTx(t, db) == last, "stale steps wrote:\n%s", diff)
	errs, err = db.Commit(t.Context(), []Step{advance(1, 0, 5, 10), advance(1, 3, 4, 10), advance(1, 4, 6, 10), advance(2, 0, 1, 10)})
	if err != nil || !errors.Is(errs[0], tail.ErrStale) || errs[1] != nil || errs[2] != nil || errs[3] != nil {
		t.Fatalf("%v %v", errs, err)
	}
	got, _ := db.Files.Reload(t.Context(), 1)
	kit.Check(t, got.Cursor == cursorAt(6, 0), "cursor %+v", got.Cursor)
	kit.Err(t, "unknown file", ErrUnknownFile)(db.Files.Reload(t.Context(), 9))
}

func TestRewindCutsMarks(t *testing.T) {
	db := open(t, Options{})
	commit(t, db, advance(1, 0, 3, 10), advance(1, 3, 6, 10), advance(1, 6, 9, 10), advance(2, 0, 9, 10))
	s := Step{Prev: cursorAt(9, 0), From: cursorAt(3, 1), Tracked: tracked(1, cursorAt(4, 1)), Routing: factsFor(1, server),
		Marks: []tail.Mark{{Offset: 40, Line: 4, Hash: 99}}}
	commit(t, db, s)
	marks, err := db.Files.Marks(t.Context(), 1)
	want := []tail.Mark{{Offset: 30, Line: 3, Hash: 3}, {Offset: 40, Line: 4, Hash: 99}}
	kit.Check(t, err == nil && cmp.Equal(marks, want), "marks %v %v", marks, err)
	marks, _ = db.Files.Marks(t.Context(), 2)
	kit.Check(t, len(marks) == 1, "another file's marks: %v", marks)
}

// A settlement counts at the file while the relay holds older facts; a start from line 0 begins the count anew.
func TestStepKeepsWhatSettlementsCounted(t *testing.T) {
	db := open(t, Options{})
	seqs := commit(t, db, advance(1, 0, 3, 10))
	s := outbox.Settlement{Dest: server, Stream: 1, Seqs: seqs, Withheld: 3, Plain: true}
	for range 2 { // the second time counts nothing
		kit.Must(t, db.Outbox.Settle(t.Context(), []outbox.Settlement{s}))
	}
	commit(t, db, advance(1, 3, 4, 10))
	if f, _, _ := db.Files.Routing(t.Context(), 1); f.Withheld != 3 || !f.Plain || db.Outbox.Usage().Withheld != 3 {
		t.Errorf("after a step: %+v, %d in all", f, db.Outbox.Usage().Withheld)
	}
	commit(t, db, Step{Prev: cursorAt(4, 0), From: tail.Cursor{Generation: 1}, Tracked: tracked(1, tail.Cursor{Generation: 1}), Routing: factsFor(1, server)})
	if f, _, _ := db.Files.Routing(t.Context(), 1); f.Withheld != 0 || f.Plain || db.Outbox.Usage().Withheld != 0 {
		t.Errorf("after a start from line 0: %+v, %d in all", f, db.Outbox.Usage().Withheld)
	}
}

func TestUpdateNeverMovesACursor(t *testing.T) {
	db := open(t, Options{})
	commit(t, db, advance(1, 0, 3, 10))
	moved := tracked(1, cursorAt(99, 0))
	moved.File.Path, moved.Gone, moved.Provisional.Length = "/r/q/s1.jsonl", 77, 4
	fresh, strange := tracked(2, tail.Cursor{}), tracked(3, cursorAt(1, 0))
	kit.Must(t, db.Files.Update(t.Context(), []tail.Tracked{moved, fresh, strange}))
	want := moved
	want.Cursor, want.Provisional = cursorAt(3, 0), tail.Provisional{}
	if got, _ := db.Files.Reload(t.Context(), 1); got != want {
		t.Error(cmp.Diff(want, got))
	}
	f, _, _ := db.Files.Routing(t.Context(), 1)
	kit.Check(t, f == factsFor(1, server), "facts changed: %+v", f)
	kit.Gives(t, "new file", fresh)(db.Files.Reload(t.Context(), 2))
	kit.Err(t, "a cursor without a step was taken", ErrUnknownFile)(db.Files.Reload(t.Context(), 3))
	commit(t, db, advance(2, 0, 1, 10))
}

func TestForgetKeepsWhatWaits(t *testing.T) {
	db := open(t, Options{})
	seqs := commit(t, db, advance(1, 0, 3, 10), advance(2, 0, 3, 10), advance(3, 0, 3, 10))
	dead := outbox.DeadLetter{Batch: batch(0, 1, 0, 10), Line: 0, Status: 400}
	dead.Batch.Seq = seqs[1]
	kit.Must(t, db.Outbox.Settle(t.Context(), []outbox.Settlement{{Dest: server, Stream: 2, Seqs: seqs[1:2], Dead: []outbox.DeadLetter{dead}}}))
	settle(t, db, 3, seqs[2])
	kit.Try(db.Files.Forget(t.Context(), []tail.FileID{1, 2, 3, 4})).Must(t)
	for id, known := range map[tail.FileID]bool{1: true, 2: true, 3: false} {
		_, err := db.Files.Reload(t.Context(), id)
		marks, _ := db.Files.Marks(t.Context(), id)
		kit.Check(t, (err == nil) == known && (len(marks) > 0) == known, "file %d: %v, %d marks", id, err, len(marks))
	}
	settle(t, db, 1, seqs[0])
	n, err := db.DeadLetters.Drop(t.Context(), []DeadKey{{Seq: seqs[1], Line: 0}})
	kit.Require(t, n == 1 && err == nil, "%v %v", n, err)
	kit.Try(db.Files.Forget(t.Context(), []tail.FileID{1, 2})).Must(t)
	all, _ := db.Files.Load(context.Background())
	kit.Check(t, len(all) == 0, "left: %v", all)
}

func TestNothingIsQueuedWithoutDestination(t *testing.T) {
	db := open(t, Options{})
	s := advance(1, 0, 3, 10)
	s.Routing.Dest = ""
	_, err := db.Commit(t.Context(), []Step{s})
	kit.Check(t, err != nil, "lines without a destination were taken")
	s.Batches = nil
	commit(t, db, s)
	f, ok, _ := db.Files.Routing(t.Context(), 1)
	kit.Check(t, ok && f.Dest == "", "facts %+v", f)
}

// What a step noted of watching stays when the routing is replaced by those of a while ago.
func TestSetRoutingsKeepsWatched(t *testing.T) {
	db := open(t, Options{})
	commit(t, db, advance(1, 0, 9, 10))
	old, _, err := db.Files.Routing(t.Context(), 1)
	kit.Must(t, err)
	s := advance(1, 9, 12, 10)
	s.Routing.Watched, s.Routing.WatchedFrom, s.Routing.Compacted = true, 90, true
	commit(t, db, s)
	old.Excluded = 4
	kit.Must(t, db.Files.SetRoutings(t.Context(), map[tail.FileID]Routing{1: old}))
	f, _, err := db.Files.Routing(t.Context(), 1)
	kit.Check(t, err == nil && f.Watched && f.WatchedFrom == 90 && f.Compacted && f.Excluded == 4, "%+v %v", f, err)
}

// After a commit of which only the answer failed, what is in memory is what the disk has.
func TestHalfFailedCommit(t *testing.T) {
	f := &kit.Fault{}
	db := open(t, Options{Fault: f.At})
	prepare(t, db)
	before := describe(&db.index)
	var told []string
	db.Listener = listener{queued: func(dest string) { told = append(told, dest) }}
	f.Step, f.Call = "commit sync", 1
	_, err := db.Commit(t.Context(), []Step{advance(3, 0, 2, 10)})
	kit.Require(t, errors.Is(err, kit.ErrInjected), "%v", err)
	kit.Check(t, !cmp.Equal(before, describe(&db.index)), "memory is as before, the disk is not")
	if !slices.Contains(told, server) { // whoever committed it hears of a failure, and the next try is stale
		t.Errorf("rows wait, and of their server nothing is reported: %q", told)
	}
	checkIndex(t, db)
	got, err := db.Files.Reload(t.Context(), 3)
	kit.Check(t, err == nil && got.Cursor == cursorAt(2, 0), "%+v, %v", got.Cursor, err)
	commit(t, db, advance(3, 2, 3, 10))
}
