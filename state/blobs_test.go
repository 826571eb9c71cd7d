package state

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/tail"
)

// besides queues files of these names beside a transcript, each with its name as its content.
func besides(t *testing.T, db *DB, id tail.FileID, names ...string) (seqs []uint64) {
	t.Helper()
	files, batches := besideFiles(names...)
	if err := db.QueueBeside(t.Context(), server, id, files, batches); err != nil {
		t.Fatal(err)
	}
	for i := range batches {
		seqs = append(seqs, batches[i].Seq)
	}
	return seqs
}

func besideFiles(names ...string) (files []BesideFile, batches []outbox.Batch) {
	p := outbox.NewPacker()
	for _, name := range names {
		files = append(files, BesideFile{Name: name, Size: int64(len(name)), ModTime: 5, SHA256: "aa" + name})
		batches = append(batches, p.Blob(outbox.BlobRef{SHA256: "aa" + name, Name: name, Size: int64(len(name))}, []byte(name)))
	}
	return files, batches
}

func namesOf(t *testing.T, db *DB, id tail.FileID) map[string]BesideFile {
	t.Helper()
	queued, err := db.Beside(t.Context(), server, id)
	if err != nil {
		t.Fatal(err)
	}
	return queued
}

// Blobs of a transcript stand apart from its lines, and outlive a restart.
func TestBlobsAreAQueueOfTheirOwn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	db := open(t, Options{Path: path})
	// Half of all ids have the highest bit set.
	const high = tail.FileID(1<<63 | 7)
	commit(t, db, advance(high, 0, 3, 100), advance(2, 0, 1, 100))
	seqs := besides(t, db, high, "a", "ab")
	besides(t, db, 2, "a")
	closeNow(t, db)
	db = open(t, Options{Path: path})
	if got := namesOf(t, db, high); len(got) != 2 || got["ab"] != (BesideFile{Name: "ab", Size: 2, ModTime: 5, SHA256: "aaab"}) {
		t.Errorf("queued %+v", got)
	}
	id, ok := db.PickBlobs(server, nil2)
	if !ok || id != uint64(high) {
		t.Errorf("picked %d %v", id, ok)
	}
	p, err := db.Peek(t.Context(), server, id, 0, outbox.Limits{Blobs: true})
	if err != nil || len(p.Batches) != 2 || p.Batches[0].Blob.Name != "a" || p.Stream.SessionID != "s9223372036854775815" {
		t.Errorf("blobs %+v %v", p, err)
	}
	p, err = db.Peek(t.Context(), server, id, 0, outbox.Limits{})
	if err != nil || len(p.Batches) != 1 || p.Batches[0].Kind != outbox.Objects {
		t.Errorf("lines %+v %v", p, err)
	}
	for _, q := range db.Queued() {
		if q.File == high && (q.Blobs != (q.Batches == 2) || q.Dest != server) {
			t.Errorf("queued %+v", q)
		}
	}
	u := db.Usage()
	if u.ByDest[server].Batches != 5 || u.Entries != 4 || u.ByDest[server].Raw != 40+4 || u.Batches != 5 {
		t.Errorf("usage %+v", u)
	}
	if n := db.Pending(high); n != 3 {
		t.Errorf("%d entries wait", n)
	}
	settle := outbox.Settlement{Dest: server, Stream: uint64(high), Blobs: true, Seqs: seqs[:1], Gone: 1}
	if err := db.Settle(t.Context(), []outbox.Settlement{settle, settle}); err != nil {
		t.Fatal(err)
	}
	// What was not sent is forgotten, so that it is queued again should it be there after all.
	if got := namesOf(t, db, high); len(got) != 1 || got["ab"].Name == "" {
		t.Errorf("queued %+v", got)
	}
	letter := outbox.DeadLetter{Batch: p.Batches[0]}
	p, _ = db.Peek(t.Context(), server, uint64(high), 0, outbox.Limits{Blobs: true})
	letter.Batch = p.Batches[0]
	err = db.Settle(t.Context(), []outbox.Settlement{{Dest: server, Stream: uint64(high), Blobs: true, Seqs: seqs[1:], Dead: []outbox.DeadLetter{letter}}})
	if err != nil {
		t.Fatal(err)
	}
	if n, err := db.RetryDead(t.Context(), []DeadKey{{Seq: seqs[1]}}); n != 1 || err != nil {
		t.Errorf("retried %d %v", n, err)
	}
	if p, err := db.Peek(t.Context(), server, uint64(high), 0, outbox.Limits{Blobs: true}); err != nil || len(p.Batches) != 1 || p.Batches[0].Blob.Name != "ab" {
		t.Errorf("blobs %+v %v", p, err)
	}
}

// Forgetting takes the rows of both queues, and what is remembered of them.
func TestDropTakesBlobs(t *testing.T) {
	db := open(t, Options{})
	commit(t, db, advance(1, 0, 3, 100), advance(2, 0, 1, 100))
	besides(t, db, 1, "a", "b")
	besides(t, db, 2, "a")
	dropped, err := db.Drop(t.Context(), []tail.FileID{1})
	if err != nil || dropped.Rows != 3 || dropped.Entries != 3 {
		t.Errorf("dropped %+v %v", dropped, err)
	}
	if len(namesOf(t, db, 1)) != 0 || len(namesOf(t, db, 2)) != 1 {
		t.Error("what is remembered of the wrong files was dropped")
	}
	// A file with blobs waiting is kept.
	if err := db.Settle(t.Context(), []outbox.Settlement{{Dest: server, Stream: 2, Seqs: []uint64{2}}}); err != nil {
		t.Fatal(err)
	}
	if err := db.Forget(t.Context(), []tail.FileID{1, 2}); err != nil {
		t.Fatal(err)
	}
	if _, known, _ := db.Facts(t.Context(), 2); !known {
		t.Error("a file was forgotten whose blobs wait")
	}
	if _, known, _ := db.Facts(t.Context(), 1); known {
		t.Error("a file without rows was kept")
	}
}

func TestDropDestinations(t *testing.T) {
	db := open(t, Options{})
	elsewhere := advance(3, 0, 2, 100)
	elsewhere.Facts.Dest = "https://two.example/"
	seqs := commit(t, db, advance(1, 0, 3, 100), advance(2, 0, 1, 100), elsewhere)
	besides(t, db, 1, "a", "b")
	dead := outbox.DeadLetter{Batch: batch(0, 1, 0, 10)}
	dead.Batch.Seq = seqs[1]
	if err := db.Settle(t.Context(), []outbox.Settlement{{Dest: server, Stream: 2, Seqs: seqs[1:2], Dead: []outbox.DeadLetter{dead}}}); err != nil {
		t.Fatal(err)
	}
	first := func(skip string) uint64 { return db.FirstSeq(func(dest string) bool { return dest == skip }) }
	if first("") != seqs[0] || first(server) != seqs[2] || first("https://two.example/") != seqs[0] {
		t.Errorf("first rows %d %d", first(""), first(server))
	}
	dropped, err := db.DropDestinations(t.Context(), []string{server, "https://never.example/"})
	if err != nil || dropped != (Dropped{Rows: 3, Entries: 3, Dead: 1}) {
		t.Errorf("dropped %+v %v", dropped, err)
	}
	if u := db.Usage(); u.Batches != 1 || u.Dead != 0 || first("") != seqs[2] || len(namesOf(t, db, 1)) != 0 {
		t.Errorf("usage %+v", u)
	}
	if got := db.KnownDestinations(); len(got) != 2 {
		t.Errorf("destinations %q", got)
	}
}

// Files are not queued for a server that the transcript's lines do not go to any more.
func TestQueueBesideElsewhere(t *testing.T) {
	db := open(t, Options{})
	commit(t, db, advance(1, 0, 3, 100))
	files, batches := besideFiles("a")
	for _, id := range []tail.FileID{1, 9} {
		if err := db.QueueBeside(t.Context(), "https://two.example/", id, files, batches); err != nil {
			t.Fatal(err)
		}
	}
	if u := db.Usage(); u.Batches != 1 {
		t.Errorf("usage %+v", u)
	}
	besides(t, db, 1, strings.Repeat("n", MostBesideName))
	if err := db.ForgetBeside(t.Context(), server); err != nil || len(namesOf(t, db, 1)) != 0 {
		t.Errorf("still remembered: %v", err)
	}
}

// Files are queued with what is remembered of them, or not at all.
func TestQueueBesideFailsWhole(t *testing.T) {
	for _, step := range []string{"put beside", "put batch", "commit"} {
		f := &fault{}
		db := open(t, Options{Fault: f.at})
		commit(t, db, advance(1, 0, 3, 100))
		files, batches := besideFiles("a", "b")
		f.failEach(t, step, func() error { return db.QueueBeside(t.Context(), server, 1, files, batches) },
			func() any { return []any{dump(t, db), describe(&db.index)} })
	}
}

// A row of lines is the same bytes as before there were others.
func TestRowsOfLinesAreUnchanged(t *testing.T) {
	b := outbox.Batch{Kind: outbox.Opaque, Generation: 3, RewoundTo: 4, From: outbox.Position{Offset: 1, Line: 2}, To: outbox.Position{Offset: 3, Line: 4},
		NoNewline: true, Edges: []outbox.Edge{{Line: 2, Before: []byte(" "), After: []byte("\r")}}, Entries: 2, Raw: 5, Frame: []byte("frame")}
	const landed = "\x01\x00\x00\x00\x16;\xbfL[\x0e\x01\x06\b\x02\x04\x06\b\x04\n\x01D\x9b`,\n\x02\x04\x01 \x01\rframe"
	key := rowKey(1, 2, 3)
	v := encodeBatchRow(key, &b, 7)
	if diff := cmp.Diff(landed, string(v)); diff != "" {
		t.Error(diff)
	}
	got, at, sum, err := decodeBatchRow(key, v)
	if err == nil {
		err = detach(&got, sum)
	}
	if diff := cmp.Diff(b, got); err != nil || at != 7 || diff != "" {
		t.Error(err, diff)
	}
	v[len(v)-8]++ // in the header
	if _, _, _, err := decodeBatchRow(key, v); !errors.Is(err, ErrCorrupt) {
		t.Errorf("a damaged row is read: %v", err)
	}
}

func nil2(uint64, uint64) bool { return false }
