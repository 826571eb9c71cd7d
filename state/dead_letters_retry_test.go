package state

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/protocol"
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
