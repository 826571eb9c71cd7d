package state

import (
	"testing"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/tail"
)

// Every named step of every write is made to fail, on its first and its second call: nothing may have happened, on
// disk or in memory, and the same write must pass afterwards.
func TestEveryStepFailsWhole(t *testing.T) {
	ctx := t.Context()
	var seqs []uint64
	rewind := Step{Prev: cursorAt(6, 0), From: cursorAt(3, 1), Tracked: tracked(1, cursorAt(5, 1)), Routing: factsFor(1, server),
		Marks:   []tail.Mark{{Offset: 40, Line: 4, Hash: 4}, {Offset: 50, Line: 5, Hash: 5}},
		Batches: []outbox.Batch{batch(3, 4, 1, 9000), batch(4, 5, 1, 10)}}
	elsewhere := advance(4, 0, 2, 10)
	elsewhere.Routing.Dest = "https://two.example/"
	letter := outbox.DeadLetter{Batch: batch(0, 1, 0, 10), Status: 400}
	tests := []struct {
		name  string
		steps []string
		do    func(db *DB) error
	}{
		{"commit", []string{"check", "put past", "cut marks", "put marks", "put file", "put batch", "put destination", "commit"}, func(db *DB) error {
			_, err := db.Commit(ctx, []Step{rewind, advance(3, 0, 2, 10), elsewhere})
			return err
		}},
		{"settle", []string{"delete row", "put dead", "put routing", "commit"}, func(db *DB) error {
			l := letter
			l.Batch.Seq = seqs[0]
			return db.Outbox.Settle(ctx, []outbox.Settlement{{Dest: server, Stream: 1, Seqs: seqs[:2], Withheld: 3, Plain: true, Dead: []outbox.DeadLetter{l}},
				{Dest: server, Stream: 2, Seqs: seqs[2:3]}})
		}},
		{"retry dead", []string{"put batch", "delete dead", "commit"}, func(db *DB) error {
			_, err := db.DeadLetters.Retry(ctx, []DeadKey{{Seq: seqs[3], Line: 0}})
			return err
		}},
		{"drop", []string{"delete row", "delete dead", "commit"}, func(db *DB) error {
			_, err := db.Outbox.Drop(ctx, []tail.FileID{1, 2})
			return err
		}},
		{"update", []string{"put file", "commit"}, func(db *DB) error {
			f := tracked(1, cursorAt(6, 0))
			f.Gone = 1
			return db.Files.Update(ctx, []tail.Tracked{tracked(8, tail.Cursor{}), f})
		}},
		{"facts", []string{"put file", "commit"}, func(db *DB) error {
			f := factsFor(1, server)
			f.Excluded = 8
			return db.Files.SetRoutings(ctx, map[tail.FileID]Routing{1: f})
		}},
		{"forget", []string{"forget file", "commit"}, func(db *DB) error { _, err := db.Files.Forget(ctx, []tail.FileID{5}); return err }},
		{"learn", []string{"put learned", "put destination", "commit"}, func(db *DB) error {
			return db.Outbox.Learn(ctx, "https://three.example/", outbox.Learned{Took: true})
		}},
	}
	for _, tt := range tests {
		for _, step := range tt.steps {
			t.Run(tt.name+"/"+step, func(t *testing.T) {
				f := &kit.Fault{}
				db := open(t, Options{Fault: f.At})
				seqs = prepare(t, db)
				f.FailEach(t, step, func() error { return tt.do(db) }, func() any { return []any{dump(t, db), describe(&db.index)} })
			})
		}
	}
}

// prepare fills a state: rows of 1 and 2, a dead letter of 1, and file 5 without rows.
func prepare(t *testing.T, db *DB) []uint64 {
	t.Helper()
	seqs := commit(t, db, advance(1, 0, 3, 5000), advance(1, 3, 6, 10), advance(2, 0, 2, 10), advance(1, 6, 7, 10), advance(5, 0, 3, 1))
	dead := outbox.DeadLetter{Batch: batch(6, 7, 0, 10)}
	dead.Batch.Seq = seqs[3]
	err := db.Outbox.Settle(t.Context(), []outbox.Settlement{{Dest: server, Stream: 1, Seqs: seqs[3:4], Dead: []outbox.DeadLetter{dead}}, {Dest: server, Stream: 5, Seqs: seqs[4:]}})
	kit.Must(t, err)
	commit(t, db, Step{Prev: cursorAt(7, 0), From: cursorAt(7, 0), Tracked: tracked(1, cursorAt(6, 0)), Routing: factsFor(1, server)})
	return seqs
}

// A file that may grow no further stands for a full disk: the commit fails whole, deleting still works, and with
// space back the next commit does.
func TestFullDisk(t *testing.T) {
	db := open(t, Options{maxSize: 4 << 20})
	var seqs []uint64
	line := int64(0)
	var err error
	for ; err == nil; line++ {
		s := advance(1, line, line+1, 100_000)
		if _, err = db.Commit(t.Context(), []Step{s}); err == nil {
			seqs = append(seqs, s.Batches[0].Seq)
		}
		kit.Require(t, line <= 100, "the file never got full")
	}
	line--
	t.Logf("after %d rows: %v", len(seqs), err)
	checkIndex(t, db)
	got, _ := db.Files.Reload(t.Context(), 1)
	kit.Check(t, got.Cursor == cursorAt(line, 0) && int64(len(seqs)) == line, "cursor %+v after %d rows", got.Cursor, len(seqs))
	_, err = db.Commit(t.Context(), []Step{advance(1, line, line+1, 1_000_000)})
	kit.Check(t, err != nil, "a row larger than what is left was taken")
	settle(t, db, 1, seqs[:len(seqs)/2]...)
	commit(t, db, advance(2, 0, 1, 1)) // what was freed can be used from the next transaction on
	commit(t, db, advance(1, line, line+1, 100_000))
}
