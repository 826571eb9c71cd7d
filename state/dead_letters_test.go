package state

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/state/kv"
	"github.com/ccship/ccship/tail"
)

// TestDeadLettersAfterAChange: another version or store behind an address gets the dead letters once more, in the step
// that acknowledges; the same ones in turn do not get them over and over.
func TestDeadLettersAfterAChange(t *testing.T) {
	db, path := openAt(t)
	line := int64(0)
	// answered settles what waits: the server refuses the first row of it, and takes the others.
	answered := func(store, version string) (dead int64) {
		t.Helper()
		commit(t, db, advance(1, line, line+1, 100))
		line++
		p := peek(t, db, 1, 0, outbox.Limits{})
		s := outbox.Settlement{Dest: server, Stream: 1, Ledger: protocol.Ledger{Store: store, Count: line, Version: version}}
		for i := range p.Batches {
			s.Seqs = append(s.Seqs, p.Batches[i].Seq)
		}
		if db.Outbox.Usage().Dead == 0 {
			s.Dead = []outbox.DeadLetter{{Batch: p.Batches[0], Status: 422, Reason: "rejected", At: 5}}
		}
		before := lastTx(t, db)
		kit.Must(t, db.Outbox.Settle(t.Context(), []outbox.Settlement{s}))
		kit.Equal(t, "transactions", lastTx(t, db)-before, 1)
		return db.Outbox.Usage().Dead
	}
	for i, step := range []struct {
		store, version string
		dead           int64 // afterwards; 0: it was queued again
	}{
		{"s", "1", 1}, {"s", "1", 1},
		{"s", "2", 0}, {"s", "2", 1}, // queued again, and refused again
		{"s", "1", 1}, {"s", "2", 1}, {"s", "1", 1}, // both had it
		{"t", "2", 0}, {"t", "2", 1},
		{"t", "", 0}, {"t", "", 1},
	} {
		if i == 4 {
			db = reopen(t, db, path)
		}
		kit.Equal(t, fmt.Sprintf("step %d, %v: dead letters", i, step), answered(step.store, step.version), step.dead)
		if err := db.Outbox.Learn(t.Context(), server, outbox.Learned{Took: true}); err != nil { // changes nothing of that
			t.Fatal(err)
		}
	}
}

// TestDamagedLetterStays: no server can take what cannot be read.
func TestDamagedLetterStays(t *testing.T) {
	db := open(t, Options{Path: filepath.Join(t.TempDir(), "state.db")})
	seqs := commit(t, db, advance(1, 0, 1, 100))
	letter := outbox.DeadLetter{Batch: batch(0, 1, 0, 40), Reason: outbox.ReasonDamaged}
	letter.Batch.Seq = seqs[0]
	for version, s := range []outbox.Settlement{{Seqs: seqs, Dead: []outbox.DeadLetter{letter}}, {}} {
		s.Dest, s.Stream, s.Ledger = server, 1, protocol.Ledger{Store: "s", Count: 1, Version: fmt.Sprint(version)}
		if err := db.Outbox.Settle(t.Context(), []outbox.Settlement{s}); err != nil || db.Outbox.Usage().Dead != 1 {
			t.Errorf("version %d: %v, %+v", version, err, db.Outbox.Usage())
		}
	}
}

// TestJudges: a server that had the dead letters gets them again after a day, and only so many are remembered.
func TestJudges(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	var r destRow
	for i := range 3 * maxJudges {
		if !r.newServerVersion(fmt.Sprint(i), now.Add(time.Duration(i)*time.Second)) || len(r.Judges) > maxJudges {
			t.Fatalf("judge %d: %+v", i, r)
		}
	}
	last, other := fmt.Sprint(3*maxJudges-1), fmt.Sprint(3*maxJudges-2)
	now = now.Add(time.Hour)
	kit.Check(t, !r.newServerVersion(last, now) && !r.newServerVersion(other, now) && !r.newServerVersion(last, now),
		"those in front had them")
	if now = now.Add(judgeRest); r.newServerVersion(last, now) || !r.newServerVersion(other, now) {
		t.Error("not again after a day, or without a change")
	}
}

// TestJudgeByAClockAhead: what a clock noted that was ahead counts no longer than what one noted that is right.
func TestJudgeByAClockAhead(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	r := destRow{Judge: "s 1", Judges: map[string]int64{"s 2": now.AddDate(1, 0, 0).Unix(), "s 3": now.Add(time.Hour).Unix()}}
	kit.Check(t, r.newServerVersion("s 2", now) && !r.newServerVersion("s 3", now), "judges %v", r.Judges)
}

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

// Rows of files that are found one after the other fill their pages, and stay so while lines come to some of them.
func TestFilesFillPages(t *testing.T) {
	db := open(t, Options{})
	const files, group = 1000, 8
	for first := 1; first < files; first += group {
		var steps []Step
		for id := first; id < first+group; id++ {
			steps = append(steps, advance(tail.FileID(id), 0, 1, 10))
		}
		commit(t, db, steps...)
	}
	filled := func() (share float64) {
		kit.Must(t, db.View(t.Context(), func(tx *kv.Snapshot) error {
			s := tx.Bucket(bucketFiles).Stats()
			share = float64(s.LeafInuse) / float64(s.LeafAlloc)
			return nil
		}))
		return share
	}
	share := filled()
	kit.Check(t, share >= 0.75, "%.0f %% of the pages of files are filled", 100*share)
	for id := 3; id < files; id += 10 {
		commit(t, db, advance(tail.FileID(id), 1, 1<<40, 10))
	}
	share = filled()
	kit.Check(t, share >= 0.75, "after lines came to a tenth of the files, %.0f %% are", 100*share)
}

// Limits take effect at once, and capacity that a higher cap brings is reported.
func TestSetLimits(t *testing.T) {
	db := open(t, Options{Cap: 10_000, ReadAhead: 1 << 30})
	told := 0
	db.Listener = listener{changed: func() { told++ }}
	commit(t, db, advance(1, 0, 1, 12_000))
	got := capacities(db)
	kit.Require(t, got == [2]bool{}, "capacity over the cap: %v", got)
	db.SetLimits(Limits{Cap: 1 << 20})
	got, u := capacities(db), db.Outbox.Usage()
	kit.Check(t, got == [2]bool{true, true} && told == 1 && u.Cap == 1<<20 && u.Full == "", "capacity %v, told %d times, usage %+v", got, told, u)
	db.SetLimits(Limits{Cap: 1 << 20, HeadRoom: 1 << 41})
	got = capacities(db)
	kit.Check(t, got == [2]bool{} && db.Outbox.Usage().Full == "disk", "capacity %v with more head-room than disk", got)
	db.SetLimits(Limits{})
	got, l := capacities(db), db.limits()
	kit.Check(t, got == [2]bool{true, true} && l.Cap == 2<<30 && l.CompactAbove == 0, "defaults: capacity %v, limits %+v", got, l)
}

func TestQueued(t *testing.T) {
	db := open(t, Options{})
	commit(t, db, advance(1, 0, 4, 100))
	commit(t, db, advance(2, 0, 1, 100))
	commit(t, db, advance(3, 0, 1, 100), advance(1, 4, 6, 50))
	got := db.Outbox.Queued()
	for i := range got {
		kit.Check(t, !got[i].Oldest.IsZero() && got[i].Bytes != 0, "%+v", got[i])
		got[i].Oldest, got[i].Bytes = time.Time{}, 0
	}
	want := []Queued{
		{Dest: server, File: 1, Waiting: Waiting{Batches: 2, Entries: 6, Raw: 60}},
		{Dest: server, File: 2, Waiting: Waiting{Batches: 1, Entries: 1, Raw: 10}},
		{Dest: server, File: 3, Waiting: Waiting{Batches: 1, Entries: 1, Raw: 10}},
	}
	kit.Same(t, "differs", cmp.Diff(want, got))
	facts, err := db.Files.RoutingsOf(t.Context(), []tail.FileID{3, 7, 1})
	kit.Check(t, err == nil && len(facts) == 2 && facts[1].Stream.SessionID == "s1" && facts[3].Dest == server,
		"facts %+v %v", facts, err)
	kit.Must(t, db.Outbox.Settle(t.Context(), []outbox.Settlement{{Dest: server, Stream: 1, Seqs: []uint64{1, 4}}}))
	got = db.Outbox.Queued()
	kit.Check(t, len(got) == 2 && got[0].File == 2, "queued after the acknowledgement: %+v", got)
}

// Whatever was added and cut off, the counts are those of the lines that are left.
func TestOddLines(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		var odd OddLines
		model := map[int64]OddKind{}
		end := int64(0)
		for range 20 {
			var more OddList
			for range rng.IntN(30) {
				kind := OddKind(rng.IntN(6))
				if kind < oddKinds {
					model[end] = kind
					more.Add(end, kind)
				}
				end++
			}
			odd = odd.Plus(&more)
			if rng.IntN(4) == 0 {
				end = rng.Int64N(end + 1)
				odd = odd.Before(end)
				for line := range model {
					if line >= end {
						delete(model, line)
					}
				}
			}
			var want [oddKinds]int64
			for _, kind := range model {
				want[kind]++
			}
			got := odd.Count()
			kit.Require(t, got == want && odd.Total() == int64(len(model)), "%v, want %v", got, want)
		}
	}
}

// A file of nothing but odd lines has a small row, and still the right count.
func TestOddLinesAreBounded(t *testing.T) {
	var l OddList
	const lines = 100_000
	for i := range int64(lines) {
		l.Add(2*i, OddKind(i%2))
	}
	odd := OddLines("").Plus(&l)
	n := odd.Count()
	kit.Check(t, n[OddBlank] == lines/2 && n[OddMalformed] == lines/2 && len(odd) <= 32<<10, "%v in %d bytes", n, len(odd))
	half := odd.Before(lines).Total()
	kit.Check(t, half >= lines*2/5 && half <= lines*3/5 && odd.Before(0) == "", "%d of %d lines before the middle", half, lines)
}
