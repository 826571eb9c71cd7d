package state

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/tail"
)

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
