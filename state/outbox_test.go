package state

import (
	"bytes"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/tail"
)

// order picks all streams one after the other.
func order(db *DB, oldest bool) (streams []uint64) {
	for {
		s, ok := db.Outbox.Pick(server, oldest, func(stream, last uint64) bool { return slices.Contains(streams, stream) })
		if !ok {
			return streams
		}
		streams = append(streams, s)
	}
}

func TestPickOrders(t *testing.T) {
	db, path := openAt(t)
	seqs := commit(t, db, advance(5, 0, 1, 10), advance(3, 0, 1, 10), advance(4, 0, 1, 10), advance(9, 0, 1, 10), advance(5, 1, 2, 10), advance(4, 1, 2, 10))
	wants := func(db *DB, newest, oldest []uint64) {
		t.Helper()
		kit.Equal(t, "newest first", order(db, false), newest)
		kit.Equal(t, "oldest first", order(db, true), oldest)
	}
	wants(db, []uint64{4, 5, 9, 3}, []uint64{5, 3, 4, 9})
	settle(t, db, 5, seqs[0]) // its first row is now younger than those of 3, 4 and 9
	settle(t, db, 3, seqs[1])
	wants(db, []uint64{4, 5, 9}, []uint64{4, 9, 5})
	db = reopen(t, db, path)
	wants(db, []uint64{4, 5, 9}, []uint64{4, 9, 5})
	var last uint64
	db.Outbox.Pick(server, false, func(stream, l uint64) bool { last = l; return false })
	kit.Equal(t, "last", last, seqs[5])
	_, ok := db.Outbox.Pick("https://other.example/", false, nil)
	kit.Check(t, !ok, "picked for a destination that has nothing")
}

func TestPeekLimits(t *testing.T) {
	db := open(t, Options{})
	s := advance(1, 0, 12, 10)
	s.Batches = []outbox.Batch{batch(0, 2, 0, 5), batch(2, 4, 0, 5), batch(4, 5, 0, 5), batch(5, 7, 1, 5), batch(7, 9, 1, 5), batch(9, 12, 1, 5)}
	s.Batches[1].Kind = outbox.Opaque
	s.Batches[4].NoNewline = true
	commit(t, db, s, advance(2, 0, 5, 7))
	tests := []struct {
		name  string
		after int // index of a batch, -1: 0
		max   outbox.Limits
		want  []int
	}{
		{"one generation", -1, outbox.Limits{}, []int{0, 1, 2}},
		{"behind the first", 0, outbox.Limits{}, []int{1, 2}},
		{"entries", -1, outbox.Limits{Entries: 4}, []int{0, 1}},
		{"the first alone has more", -1, outbox.Limits{Entries: 1, Raw: 1}, []int{0}},
		{"raw", -1, outbox.Limits{Raw: 49}, []int{0, 1}},
		{"objects", -1, outbox.Limits{OnlyObjects: true}, []int{0, 2}},
		{"no newline ends it", 2, outbox.Limits{}, []int{3, 4}},
		{"behind the end", 5, outbox.Limits{}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var after uint64
			if tt.after >= 0 {
				after = s.Batches[tt.after].Seq
			}
			var want []outbox.Batch
			for _, i := range tt.want {
				want = append(want, s.Batches[i])
			}
			kit.Same(t, "differs", cmp.Diff(want, peek(t, db, 1, after, tt.max).Batches))
		})
	}
	limited := factsFor(1, server)
	limited.Stream.MaxEntries = 4
	kit.Must(t, db.Files.SetRoutings(t.Context(), map[tail.FileID]Routing{1: limited}))
	kit.Equal(t, "the stream's own limit: batches", len(peek(t, db, 1, 0, outbox.Limits{Entries: 100}).Batches), 2)
}

// What Peek answers stays as it is when its rows are gone and their pages written over.
func TestPeekCopiesRows(t *testing.T) {
	db := open(t, Options{})
	seqs := commit(t, db, advance(1, 0, 3, 50_000))
	p := peek(t, db, 1, 0, outbox.Limits{})
	was := slices.Clone(p.Batches[0].Frame)
	settle(t, db, 1, seqs...)
	for i := range int64(10) {
		commit(t, db, advance(2, i, i+1, 50_000))
	}
	kit.Equal(t, "the frame changed", was, p.Batches[0].Frame)
}

func TestSettleCounts(t *testing.T) {
	db := open(t, Options{})
	var told []string
	db.Listener = listener{queued: func(dest string) { told = append(told, dest) }}
	other := advance(3, 0, 1, 30)
	other.Routing.Dest = "https://two.example/"
	seqs := commit(t, db, advance(1, 0, 3, 10), advance(1, 3, 5, 10), advance(2, 0, 7, 20), other)
	kit.Equal(t, "told", told, []string{server, "https://two.example/"})
	u := db.Outbox.Usage()
	if u.Batches != 4 || u.Entries != 13 || u.Raw != 130 || u.ByDest[server].Entries != 12 || u.Oldest.IsZero() {
		t.Errorf("usage %+v", u)
	}
	kit.Equal(t, "pending", db.Outbox.QueuedEntries(1), 5)
	settle(t, db, 1, seqs[0], 12345)
	settle(t, db, 1, seqs[0])
	kit.Equal(t, "pending", db.Outbox.QueuedEntries(1), 2)
	kit.Should(t,
		db.Outbox.Settle(t.Context(), []outbox.Settlement{{Dest: "https://none.example/", Stream: 1, Seqs: seqs}}))
	settle(t, db, 1, seqs[1])
	settle(t, db, 2, seqs[2])
	u = db.Outbox.Usage()
	kit.Check(t, u.Batches == 1 && len(u.ByDest) == 1 && u.Stored > 30, "usage %+v", u)
	kit.Equal(t, "destinations", db.Outbox.Destinations(), []string{server, "https://two.example/"})
	next := commit(t, db, advance(9, 0, 1, 1))
	kit.Check(t, next[0] == seqs[3]+1, "seq %d after %d", next[0], seqs[3])
}

// Rows may leave from the middle and the end, and with them whole pages of the tree.
func TestSettleOutOfOrder(t *testing.T) {
	db := open(t, Options{})
	seqs := map[uint64][]uint64{}
	for i := range int64(30) {
		for id := range tail.FileID(4) {
			seqs[uint64(id)+1] = append(seqs[uint64(id)+1], commit(t, db, advance(id+1, i, i+1, 3000))...)
		}
	}
	for _, span := range [][2]int{{20, 30}, {5, 10}, {0, 4}, {10, 20}, {4, 5}} {
		var all []outbox.Settlement
		for id := range uint64(3) {
			all = append(all, outbox.Settlement{Dest: server, Stream: id + 2, Seqs: seqs[id+2][span[0]:span[1]]})
		}
		kit.Must(t, db.Outbox.Settle(t.Context(), all))
		checkIndex(t, db)
	}
	kit.Equal(t, "left", order(db, true), []uint64{1})
}

func TestDeadLetters(t *testing.T) {
	db, path := openAt(t)
	seqs := commit(t, db, advance(1, 0, 3, 100))
	letters := []outbox.DeadLetter{
		{Batch: batch(1, 2, 0, 40), Line: 1, Status: 422, Reason: "rejected", Answer: "no", At: 5},
		{Batch: batch(2, 3, 0, 50), Line: 2, Status: 413, Reason: "too_large", At: 6},
	}
	for i := range letters {
		letters[i].Batch.Seq = seqs[0]
	}
	s := []outbox.Settlement{{Dest: server, Stream: 1, Seqs: seqs, Entries: 1, Raw: 10, Dead: letters}}
	kit.Must(t, db.Outbox.Settle(t.Context(), s))
	db = reopen(t, db, path)
	list, err := db.DeadLetters.List(t.Context())
	if err != nil || len(list) != 2 || db.Outbox.Usage().Dead != 2 || db.Outbox.Usage().Stored < 90 {
		t.Fatalf("%v %v %+v", list, err, db.Outbox.Usage())
	}
	want := DeadLetter{Key: DeadKey{Seq: seqs[0], Line: 1}, Dest: server, Stream: factsFor(1, server).Stream, DeadLetter: letters[0]}
	want.Batch.Frame = nil
	kit.Same(t, "differs", cmp.Diff(want, list[0]))
	n, err := db.DeadLetters.Retry(t.Context(), []DeadKey{list[0].Key, list[0].Key, {Seq: 77}})
	kit.Require(t, n == 1 && err == nil, "%v %v", n, err)
	p := peek(t, db, 1, 0, outbox.Limits{})
	if len(p.Batches) != 1 || p.Batches[0].Seq <= seqs[0] || !bytes.Equal(p.Batches[0].Frame, letters[0].Batch.Frame) {
		t.Errorf("queued again: %+v", p)
	}
	if err := db.Outbox.Settle(t.Context(), s); err != nil { // late repetition: the letter is not to rise again
		t.Fatal(err)
	}
	n, err = db.DeadLetters.Drop(t.Context(), []DeadKey{list[1].Key})
	kit.Check(t, n == 1 && err == nil && db.Outbox.Usage().Dead == 0, "%v %v %v", n, err, db.Outbox.Usage().Dead)
}

func TestLearned(t *testing.T) {
	db, path := openAt(t)
	l, err := db.Outbox.Learned(t.Context(), server)
	kit.Check(t, err == nil && l == (outbox.Learned{}), "%+v %v", l, err)
	want := outbox.Learned{Took: true, Zstd: true, MaxRaw: 1 << 20, MaxRawAt: 9}
	kit.Must(t, db.Outbox.Learn(t.Context(), server, want))
	commit(t, db, advance(1, 0, 1, 1))
	db = reopen(t, db, path)
	l, err = db.Outbox.Learned(t.Context(), server)
	kit.Check(t, err == nil && l == want, "%+v %v", l, err)
}
