package projection

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/tail"
)

// besides queues files of these names next to a transcript, each with its name as its content.
func queueAttachments(t *testing.T, db *DB, id tail.FileID, names ...string) (seqs []uint64) {
	t.Helper()
	files, batches := attachments(names...)
	kit.Must(t, db.Attachments.Queue(t.Context(), server, id, files, batches))
	for i := range batches {
		seqs = append(seqs, batches[i].Seq)
	}
	return seqs
}

func attachments(names ...string) (files []Attachment, batches []outbox.Batch) {
	p := outbox.NewPacker()
	for _, name := range names {
		files = append(files, Attachment{Name: name, Size: int64(len(name)), ModTime: 5, SHA256: "aa" + name})
		batches = append(batches, p.Blob(outbox.BlobRef{SHA256: "aa" + name, Name: name, Size: int64(len(name))}, []byte(name)))
	}
	return files, batches
}

func queuedNames(t *testing.T, db *DB, id tail.FileID) map[string]Attachment {
	t.Helper()
	return kit.Try(db.Attachments.Queued(t.Context(), server, id)).Must(t)
}

// Blobs of a transcript stand apart from its lines, and outlive a restart.
func TestBlobsAreAQueueOfTheirOwn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	db := open(t, state.Options{Path: path})
	// Half of all ids have the highest bit set.
	const high = tail.FileID(1<<63 | 7)
	commit(t, db, advance(high, 0, 3, 100), advance(2, 0, 1, 100))
	seqs := queueAttachments(t, db, high, "a", "ab")
	queueAttachments(t, db, 2, "a")
	closeNow(t, db)
	db = open(t, state.Options{Path: path})
	if got := queuedNames(t, db, high); len(got) != 2 || got["ab"] != (Attachment{Name: "ab", Size: 2, ModTime: 5, SHA256: "aaab"}) {
		t.Errorf("queued %+v", got)
	}
	id, ok := db.State.Outbox.PickBlobs(server, nil2)
	kit.Check(t, ok && id == uint64(high), "picked %d %v", id, ok)
	p, err := db.State.Outbox.Peek(t.Context(), server, id, 0, outbox.Limits{Blobs: true})
	if err != nil || len(p.Batches) != 2 || p.Batches[0].Blob.Name != "a" || p.Stream.SessionID != "s9223372036854775815" {
		t.Errorf("blobs %+v %v", p, err)
	}
	p, err = db.State.Outbox.Peek(t.Context(), server, id, 0, outbox.Limits{})
	kit.Check(t, err == nil && len(p.Batches) == 1 && p.Batches[0].Kind == outbox.Objects, "lines %+v %v", p, err)
	for _, q := range db.State.Outbox.Queued() {
		kit.Check(t, q.File != high || q.Blobs == (q.Batches == 2) && q.Dest == server, "queued %+v", q)
	}
	u := db.State.Outbox.Usage()
	kit.Check(t, u.ByDest[server].Batches == 5 && u.Entries == 4 && u.ByDest[server].Raw == 40+4 && u.Batches == 5,
		"usage %+v", u)
	kit.Equal(t, "entries wait", db.State.Outbox.QueuedEntries(high), 3)
	settle := outbox.Settlement{Dest: server, Stream: uint64(high), Blobs: true, Seqs: seqs[:1], Gone: 1}
	kit.Must(t, db.State.Outbox.Settle(t.Context(), []outbox.Settlement{settle, settle}))
	// What was not sent is forgotten, so that it is queued again should it be there after all.
	got := queuedNames(t, db, high)
	kit.Check(t, len(got) == 1 && got["ab"].Name != "", "queued %+v", got)
	letter := outbox.DeadLetter{Batch: p.Batches[0]}
	p, _ = db.State.Outbox.Peek(t.Context(), server, uint64(high), 0, outbox.Limits{Blobs: true})
	letter.Batch = p.Batches[0]
	err = db.State.Outbox.Settle(t.Context(), []outbox.Settlement{{Dest: server, Stream: uint64(high), Blobs: true, Seqs: seqs[1:], Dead: []outbox.DeadLetter{letter}}})
	kit.Must(t, err)
	n, err := db.State.DeadLetters.Retry(t.Context(), []state.DeadKey{{Seq: seqs[1]}})
	kit.Check(t, n == 1 && err == nil, "retried %d %v", n, err)
	p, err = db.State.Outbox.Peek(t.Context(), server, uint64(high), 0, outbox.Limits{Blobs: true})
	kit.Check(t, err == nil && len(p.Batches) == 1 && p.Batches[0].Blob.Name == "ab", "blobs %+v %v", p, err)
}

// Forgetting takes the rows of both queues, and what is remembered of them.
func TestDropTakesBlobs(t *testing.T) {
	db := open(t, state.Options{})
	commit(t, db, advance(1, 0, 3, 100), advance(2, 0, 1, 100))
	queueAttachments(t, db, 1, "a", "b")
	queueAttachments(t, db, 2, "a")
	dropped, err := db.State.Outbox.Drop(t.Context(), []tail.FileID{1})
	kit.Check(t, err == nil && dropped.Rows == 3 && dropped.Entries == 3, "dropped %+v %v", dropped, err)
	kit.Check(t, len(queuedNames(t, db, 1)) == 0 && len(queuedNames(t, db, 2)) == 1,
		"what is remembered of the wrong files was dropped")
	// A file with blobs waiting is kept.
	kit.Must(t, db.State.Outbox.Settle(t.Context(), []outbox.Settlement{{Dest: server, Stream: 2, Seqs: []uint64{2}}}))
	kit.Try(db.State.Files.Forget(t.Context(), []tail.FileID{1, 2})).Must(t)
	_, known, _ := db.State.Files.Routing(t.Context(), 2)
	kit.Check(t, known, "a file was forgotten whose blobs wait")
	_, known, _ = db.State.Files.Routing(t.Context(), 1)
	kit.Check(t, !known, "a file without rows was kept")
}

func TestDropDestinations(t *testing.T) {
	db := open(t, state.Options{})
	elsewhere := advance(3, 0, 2, 100)
	elsewhere.Routing.Dest = "https://two.example/"
	seqs := commit(t, db, advance(1, 0, 3, 100), advance(2, 0, 1, 100), elsewhere)
	queueAttachments(t, db, 1, "a", "b")
	dead := outbox.DeadLetter{Batch: advance(2, 0, 1, 10).Batches[0]}
	dead.Batch.Seq = seqs[1]
	kit.Must(t, db.State.Outbox.Settle(t.Context(), []outbox.Settlement{{Dest: server, Stream: 2, Seqs: seqs[1:2], Dead: []outbox.DeadLetter{dead}}}))
	first := func(skip string) uint64 {
		return db.State.Outbox.FirstSeq(func(dest string) bool { return dest == skip })
	}
	if first("") != seqs[0] || first(server) != seqs[2] || first("https://two.example/") != seqs[0] {
		t.Errorf("first rows %d %d", first(""), first(server))
	}
	dropped, err := db.State.Outbox.DropDestinations(t.Context(), []string{server, "https://never.example/"})
	kit.Check(t, err == nil && dropped == (state.Dropped{Rows: 3, Entries: 3, Dead: 1}), "dropped %+v %v", dropped, err)
	u := db.State.Outbox.Usage()
	kit.Check(t, u.Batches == 1 && u.Dead == 0 && first("") == seqs[2] && len(queuedNames(t, db, 1)) == 0, "usage %+v", u)
	kit.Equal(t, "destinations", len(db.State.Outbox.KnownDestinations()), 2)
}

// Files are not queued for a server that the transcript's lines do not go to any more.
func TestAttachmentsQueueElsewhere(t *testing.T) {
	db := open(t, state.Options{})
	commit(t, db, advance(1, 0, 3, 100))
	files, batches := attachments("a")
	for _, id := range []tail.FileID{1, 9} {
		kit.Must(t, db.Attachments.Queue(t.Context(), "https://two.example/", id, files, batches))
	}
	kit.Equal(t, "usage", db.State.Outbox.Usage().Batches, 1)
	queueAttachments(t, db, 1, strings.Repeat("n", MaxAttachmentName))
	err := db.Attachments.Forget(t.Context(), server, 0)
	kit.Check(t, err == nil && len(queuedNames(t, db, 1)) == 0, "still remembered: %v", err)
}

// Files are queued with what is remembered of them, or not at all.
func TestAttachmentsQueueFailsWhole(t *testing.T) {
	for _, step := range []string{"put attachment", "put batch", "commit"} {
		f := &kit.Fault{}
		db := open(t, state.Options{Fault: f.At})
		commit(t, db, advance(1, 0, 3, 100))
		files, batches := attachments("a", "b")
		f.FailEach(t, step, func() error { return db.Attachments.Queue(t.Context(), server, 1, files, batches) },
			func() any { return []any{dump(t, db), describe(db), db.State.Outbox.Usage()} })
	}
}

func nil2(uint64, uint64) bool { return false }
