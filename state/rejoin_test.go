package state

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/bbolt"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/tail"
)

// TestRejoin: a file goes on behind what its server has: cursor, marks, epoch and queue change in one step that
// survives a restart, and other files keep theirs.
func TestRejoin(t *testing.T) {
	db, path := openAt(t)
	commit(t, db, advance(1, 0, 5, 100), advance(2, 0, 3, 100))
	commit(t, db, advance(1, 5, 9, 100))
	was, _ := db.Files.Reload(t.Context(), 1)
	to := tail.Cursor{Offset: 40, Line: 4, Generation: was.Cursor.Generation + 3, Anchor: 7, Mark: 30, Segment: 8}
	r := Rejoin{Expect: was.Cursor, Epoch: "front", Cursor: to, Marks: []tail.Mark{{Offset: 30, Line: 3, Hash: 9}}}
	b, ok, err := db.Outbox.FirstQueued(t.Context(), 1)
	kit.Check(t, b.From.Line == 0 && b.To.Line == 5 && b.Generation == was.Cursor.Generation && ok && err == nil,
		"first queued: %+v %v %v", b, ok, err)
	kit.Err(t, "from another cursor", tail.ErrStale)(db.Rejoin(t.Context(), 1, Rejoin{Expect: to, Cursor: to}))
	kit.Err(t, "an unknown file", ErrUnknownFile)(db.Rejoin(t.Context(), 9, r))
	kit.Must(t, db.Rejoin(t.Context(), 1, r))
	db = reopen(t, db, path)
	checkIndex(t, db)
	got, err := db.Files.Reload(t.Context(), 1)
	kit.Check(t, err == nil && got.Cursor == to, "cursor %+v, %v", got.Cursor, err)
	marks, err := db.Files.Marks(t.Context(), 1)
	kit.Check(t, err == nil && cmp.Equal(marks, r.Marks), "marks %v, %v", marks, err)
	p := peek(t, db, 1, 0, outbox.Limits{})
	at := protocol.Position{Offset: 40, Line: 4}
	if len(p.Batches) != 1 || p.Batches[0].Kind != outbox.Marker || p.Batches[0].Generation != to.Generation ||
		p.Batches[0].RewoundTo != 4 || p.Batches[0].From != at || p.Batches[0].To != at || p.Stream.Epoch != "front" {
		t.Errorf("queued %+v", p)
	}
	kit.Equal(t, "the other file has batches", len(peek(t, db, 2, 0, outbox.Limits{}).Batches), 1)
}

// TestRejoinKeepsThePast: queued lines of a generation that ended are on no disk any more, so they become dead letters.
func TestRejoinKeepsThePast(t *testing.T) {
	db := open(t, Options{})
	commit(t, db, advance(1, 0, 5, 100))
	was, _ := db.Files.Reload(t.Context(), 1)
	rewound := advance(1, 5, 6, 100)
	rewound.From = tail.Cursor{Generation: was.Cursor.Generation + 1}
	rewound.Tracked.Cursor.Generation = was.Cursor.Generation + 1
	rewound.Batches = []outbox.Batch{batch(0, 6, was.Cursor.Generation+1, 100)}
	commit(t, db, rewound)
	now, _ := db.Files.Reload(t.Context(), 1)
	to := tail.Cursor{Generation: now.Cursor.Generation + 1}
	kit.Must(t, db.Rejoin(t.Context(), 1, Rejoin{Expect: now.Cursor, Cursor: to}))
	checkIndex(t, db)
	dead, err := db.DeadLetters.List(t.Context())
	kit.Check(t, err == nil && len(dead) == 1 && dead[0].Reason == ReasonReplaced && dead[0].Batch.Entries == 5,
		"dead letters %+v, %v", dead, err)
	p := peek(t, db, 1, 0, outbox.Limits{})
	kit.Check(t, len(p.Batches) == 1 && p.Batches[0].Kind == outbox.Marker, "queued %+v", p.Batches)
}

// TestRejoinPast: what is kept of ended generations stays if the server has it under the same numbers.
func TestRejoinPast(t *testing.T) {
	tests := map[string]struct {
		epoch          string
		queued, letter bool
		want           []uint32
	}{
		"all is sent":                             {want: []uint32{1, 0}},
		"one waits, and gets another number":      {queued: true, want: []uint32{0}},
		"a dead letter goes under another number": {letter: true, want: []uint32{1}},
		"the file goes on in another epoch":       {epoch: "front"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			db := open(t, Options{})
			settle(t, db, 1, commit(t, db, advance(1, 0, 6, 20))...)
			first, second := rewound(1, cursorAt(6, 0), 3, 5), rewound(1, cursorAt(5, 1), 0, 2)
			first.Batches, second.Batches = []outbox.Batch{batch(3, 5, 1, 20)}, []outbox.Batch{batch(0, 2, 2, 20)}
			if seqs := commit(t, db, first); !test.queued {
				settle(t, db, 1, seqs...)
			}
			commit(t, db, second)
			r := Rejoin{Expect: cursorAt(2, 2), Epoch: test.epoch, Cursor: tail.Cursor{Generation: 9}}
			if test.letter {
				r.Letters = []RetriedLetter{{Key: dead(t, db, letter(100, 2, 0, "rejected"))[0], Generation: 8}}
			}
			kit.Must(t, db.Rejoin(t.Context(), 1, r))
			var kept []uint32
			for _, p := range kit.Try(db.Files.History(t.Context(), 1)).Must(t).Past {
				kept = append(kept, p.Generation)
			}
			kit.Check(t, cmp.Equal(kept, test.want), "kept %v, want %v", kept, test.want)
		})
	}
}

// TestStored: only queued lines that the server has are removed.
func TestStored(t *testing.T) {
	db := open(t, Options{})
	commit(t, db, advance(1, 0, 5, 100), advance(2, 0, 5, 100))
	commit(t, db, advance(1, 5, 9, 100))
	c, _ := db.Files.Reload(t.Context(), 1)
	n, err := db.Outbox.Stored(t.Context(), 1, c.Cursor.Generation, 7)
	kit.Check(t, n == 5 && err == nil, "%d entries, %v", n, err)
	checkIndex(t, db)
	p := peek(t, db, 1, 0, outbox.Limits{})
	kit.Check(t, len(p.Batches) == 1 && p.Batches[0].From.Line == 5, "queued %+v", p.Batches)
	n, err = db.Outbox.Stored(t.Context(), 1, c.Cursor.Generation+1, 99)
	kit.Check(t, n == 0 && err == nil, "of another generation: %d entries, %v", n, err)
	p = peek(t, db, 2, 0, outbox.Limits{})
	kit.Check(t, len(p.Batches) == 1, "the other file: %+v", p.Batches)
}

// TestLedgerIsKeptWithAcknowledgements: the server's last ledger and the rows it acknowledged go in one step.
func TestLedgerIsKeptWithAcknowledgements(t *testing.T) {
	db, path := openAt(t)
	seqs := commit(t, db, advance(1, 0, 5, 100))
	before := lastTx(t, db)
	want := protocol.Ledger{Store: "s", Count: 7, Writer: "w"}
	err := db.Outbox.Settle(t.Context(), []outbox.Settlement{
		{Dest: server, Stream: 1, Seqs: seqs, Ledger: protocol.Ledger{Store: "s", Count: 6, Writer: "w"}}, {Dest: server, Stream: 2, Ledger: want},
	})
	if err != nil || lastTx(t, db) != before+1 {
		t.Errorf("%v, %d transactions", err, lastTx(t, db)-before)
	}
	db = reopen(t, db, path)
	l, err := db.Outbox.Learned(t.Context(), server)
	kit.Check(t, err == nil && l.Ledger == want, "ledger %+v, %v", l.Ledger, err)
}

// dead makes dead letters of a file's first lines, one batch each, and returns their keys.
func dead(t *testing.T, db *DB, letters ...outbox.DeadLetter) (keys []DeadKey) {
	t.Helper()
	kit.Must(t, db.Outbox.Settle(t.Context(), []outbox.Settlement{{Dest: server, Stream: 1, Dead: letters}}))
	all := kit.Try(db.DeadLetters.List(t.Context())).Must(t)
	for _, l := range all {
		keys = append(keys, l.Key)
	}
	return keys
}

// letter is a dead letter of one line.
func letter(seq uint64, line int64, generation uint32, reason string) outbox.DeadLetter {
	b := batch(line, line+1, generation, 20)
	b.Seq = seq
	return outbox.DeadLetter{Batch: b, Line: line, Reason: reason}
}

// TestRejoinRereadsDeadLetters: what is read again is no dead letter any more; the others stay.
func TestRejoinRereadsDeadLetters(t *testing.T) {
	db := open(t, Options{})
	seqs := commit(t, db, advance(1, 0, 9, 100))
	was, _ := db.Files.Reload(t.Context(), 1)
	g := was.Cursor.Generation
	dead(t, db, letter(seqs[0], 2, g, "rejected"), letter(seqs[0], 7, g, "rejected"), letter(seqs[0], 8, g, "damaged"),
		letter(seqs[0]+100, 8, g, ReasonReplaced), letter(seqs[0]+200, 8, g+1, "rejected"))
	to := tail.Cursor{Offset: 50, Line: 5, Generation: g + 2}
	kit.Must(t, db.Rejoin(t.Context(), 1, Rejoin{Expect: was.Cursor, Cursor: to}))
	checkIndex(t, db)
	left, err := db.DeadLetters.List(t.Context())
	if err != nil || len(left) != 3 || left[0].Line != 2 || left[1].Reason != ReasonReplaced ||
		left[2].Batch.Generation != g+1 {
		t.Errorf("left %+v, %v", left, err)
	}
}

// TestRejoinSendsLetters: dead letters are queued before what follows the cursor, in their own generations.
func TestRejoinSendsLetters(t *testing.T) {
	db := open(t, Options{})
	seqs := commit(t, db, advance(1, 0, 9, 100))
	was, _ := db.Files.Reload(t.Context(), 1)
	g := was.Cursor.Generation
	keys := dead(t, db, letter(seqs[0], 2, g, ReasonReplaced), letter(seqs[0], 3, g, "rejected"))
	to := tail.Cursor{Offset: 20, Line: 2, Generation: g + 2}
	kit.Must(t, db.Rejoin(t.Context(), 1, Rejoin{Expect: was.Cursor, Cursor: to, Letters: []RetriedLetter{
		{Key: keys[0], Generation: g + 1, RewoundTo: 2}, {Key: DeadKey{Seq: 12345}, Generation: g + 1},
	}}))
	checkIndex(t, db)
	usage := db.Outbox.Usage()
	kit.Check(t, usage.Dead == 0 && usage.Entries == 1, "%d dead letters, %d entries wait; want none and the line that is retried", usage.Dead, usage.Entries)
	p := peek(t, db, 1, 0, outbox.Limits{})
	if len(p.Batches) != 1 || p.Batches[0].Generation != g+1 || p.Batches[0].RewoundTo != 2 || p.Batches[0].From.Line != 2 {
		t.Errorf("queued first %+v", p.Batches)
	}
}

// TestRewinds: the lowest line at which a queued generation begins, and not one whose beginning was sent.
func TestRewinds(t *testing.T) {
	db := open(t, Options{})
	line := func() int64 {
		t.Helper()
		return kit.Try(db.Outbox.Rewinds(t.Context(), 1)).Must(t)
	}
	first := commit(t, db, advance(1, 0, 5, 100))
	commit(t, db, advance(1, 5, 9, 100))
	kit.Equal(t, "nothing is sent", line(), 0)
	settle(t, db, 1, first...)
	kit.Equal(t, "it goes on", line(), math.MaxInt64)
	for generation, at := range []int64{7, 3, 6} {
		was, _ := db.Files.Reload(t.Context(), 1)
		to := cursorAt(9, was.Cursor.Generation+1)
		b := batch(at, 9, to.Generation, 100)
		b.RewoundTo = at
		commit(t, db, Step{Prev: was.Cursor, From: cursorAt(at, to.Generation), Tracked: tracked(1, to), Routing: factsFor(1, server), Batches: []outbox.Batch{b}})
		got, want := line(), []int64{7, 3, 3}[generation]
		kit.Check(t, got == want, "generation %d: %d, want %d", generation, got, want)
	}
}

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

// fill sets every field below v to something that is not zero, and no two alike.
func fill(t *testing.T, v reflect.Value, n *int64) {
	t.Helper()
	*n++
	switch v.Kind() {
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(t, key, n)
		fill(t, value, n)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Struct:
		for i := range v.NumField() {
			fill(t, v.Field(i), n)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range 2 {
			fill(t, v.Index(i), n)
		}
	case reflect.Bool:
		v.SetBool(true)
	case reflect.String:
		v.SetString(string(rune('a' + *n)))
	case reflect.Uint8, reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(*n))
	case reflect.Int, reflect.Int64:
		v.SetInt(*n)
	default:
		t.Fatalf("a field of kind %v", v.Kind())
	}
}

// A field that is added to what the rooms remember must reach the file, or it is lost at the next start.
func TestEveryFieldIsKept(t *testing.T) {
	var n int64
	var s Step
	fill(t, reflect.ValueOf(&s.Tracked).Elem(), &n)
	fill(t, reflect.ValueOf(&s.Routing).Elem(), &n)
	id := s.Tracked.File.ID
	s.Routing.Stream.ID, s.Routing.Dest = uint64(id), ""
	row := fileRow{tracked: s.Tracked, routing: s.Routing, dest: 7}
	got, err := decodeFileRow(id, row.encode(), nil)
	if err != nil || got != row {
		t.Errorf("file: %v\n%s", err, cmp.Diff(row, got, cmp.AllowUnexported(fileRow{})))
	}

	var b outbox.Batch
	fill(t, reflect.ValueOf(&b).Elem(), &n)
	b.Seq = 0 // in the key
	back, at, _, err := decodeBatchRow([]byte("key"), encodeBatchRow([]byte("key"), &b, 5))
	diff := cmp.Diff(b, back)
	kit.Check(t, err == nil && at == 5 && diff == "", "batch: %v at %d\n%s", err, at, diff)

	dead := deadRow{dest: 3}
	fill(t, reflect.ValueOf(&dead.stream).Elem(), &n)
	fill(t, reflect.ValueOf(&dead.letter).Elem(), &n)
	key := DeadKey{Seq: dead.letter.Batch.Seq, Line: dead.letter.Line}.bytes()
	again, err := decodeDeadRow(key, dead.encode())
	diff = cmp.Diff(dead, again, cmp.AllowUnexported(deadRow{}))
	kit.Check(t, err == nil && diff == "", "dead letter: %v\n%s", err, diff)

	var dest destRow
	fill(t, reflect.ValueOf(&dest).Elem(), &n)
	v := kit.Try(dest.encode(4)).Must(t)
	_, d, err := decodeDestRow(destKey(4), v)
	kit.Check(t, err == nil && reflect.DeepEqual(d, dest), "destination: %v %+v", err, d)
}

// A row of lines is the same bytes as before there were others.
func TestRowsOfLinesAreUnchanged(t *testing.T) {
	b := outbox.Batch{Kind: outbox.Opaque, Generation: 3, RewoundTo: 4, From: protocol.Position{Offset: 1, Line: 2}, To: protocol.Position{Offset: 3, Line: 4},
		NoNewline: true, Edges: []protocol.Edge{{Line: 2, Before: []byte(" "), After: []byte("\r")}}, Entries: 2, Raw: 5, Frame: []byte("frame")}
	const landed = "\x01\x00\x00\x00\x16;\xbfL[\x0e\x01\x06\b\x02\x04\x06\b\x04\n\x01D\x9b`,\n\x02\x04\x01 \x01\rframe"
	key := rowKey(1, 2, 3)
	v := encodeBatchRow(key, &b, 7)
	diff := cmp.Diff(landed, string(v))
	kit.Check(t, diff == "", "%v", diff)
	got, at, sum, err := decodeBatchRow(key, v)
	if err == nil {
		err = detach(&got, sum)
	}
	diff = cmp.Diff(b, got)
	kit.Check(t, err == nil && at == 7 && diff == "", "%v %v", err, diff)
	v[len(v)-8]++ // in the header
	kit.Err(t, "a damaged row is read", ErrCorrupt)(decodeBatchRow(key, v))
}

// A state of another build is refused in one line that says what to do, and stays as it is.
func TestOtherSchema(t *testing.T) {
	for version, want := range map[byte]error{1: ErrEarlier, schemaVersion - 1: ErrEarlier, schemaVersion + 1: ErrNewer} {
		path := filepath.Join(t.TempDir(), "state.db")
		b, err := bbolt.Open(path, 0o600, &bbolt.Options{NoFreelistSync: true})
		kit.Must(t, err)
		err = b.Update(func(tx *bbolt.Tx) error { // as the first versions wrote it: without a sum of rows
			meta, err := tx.CreateBucket([]byte("meta"))
			if err != nil {
				return err
			}
			return meta.Put([]byte("schema"), []byte{0, 0, 0, version})
		})
		kit.Must(t, errors.Join(err, b.Close()))
		before := kit.Try(os.ReadFile(path)).Must(t)
		_, err = Open(t.Context(), Options{Path: path})
		kit.Check(t, errors.Is(err, want) && strings.Contains(err.Error(), path) && !strings.Contains(err.Error(), "\n"),
			"version %d: %v", version, err)
		after, err := os.ReadFile(path)
		kit.Check(t, err == nil && string(after) == string(before), "version %d: it was touched, %v", version, err)
		aside, _ := filepath.Glob(path + ".corrupt-*")
		kit.Check(t, len(aside) == 0, "version %d: it was set aside", version)
	}
}
