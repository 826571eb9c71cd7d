package state

import (
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/tail"
)

// v2Fixture unpacks a state that the ccship of schema version 2 wrote: testdata/README.md.
func v2Fixture(t *testing.T) string {
	t.Helper()
	f, err := os.Open("testdata/v2.db.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "state.db")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A state of version 2 goes on where it was: its epoch, its cursors and what its servers have are as they were, so that
// nothing is sent again, and all that waited still waits.
func TestVersion2Migrates(t *testing.T) {
	path := v2Fixture(t)
	var first map[string]string
	for range 2 { // as it is migrated, and as it is opened after that
		db := open(t, Options{Path: path})
		if len(db.Advice()) != 0 || db.Epoch() != "b2827728db8286742c002f3865d47afe" {
			t.Errorf("notices %v, epoch %s", db.Advice(), db.Epoch())
		}
		checkV2Delivery(t, db)
		content := dump(t, db)
		if content["meta/schema"] != "\x00\x00\x00\x05" || content["notices"] != "1" {
			t.Errorf("schema %q, %s notices", content["meta/schema"], content["notices"])
		}
		if first != nil {
			if diff := cmp.Diff(first, content); diff != "" {
				t.Error(diff)
			}
		}
		first = content
		closeNow(t, db)
	}
	db := open(t, Options{Path: path})
	if seqs := commit(t, db, advance(7, 0, 1, 1)); seqs[0] != 8 {
		t.Errorf("seq %d: one that was given before may come again", seqs[0])
	}
}

// checkV2Delivery looks for what the fixture holds of files, rows and destinations.
func checkV2Delivery(t *testing.T, db *DB) {
	t.Helper()
	const two = "https://two.example" // it was written with a slash at the end, as one is
	ctx := t.Context()
	for id, want := range map[tail.FileID]tail.Cursor{1: {Offset: 50, Line: 5, Generation: 1, Anchor: 35, Mark: 50, Segment: 5},
		2: {Offset: 40, Line: 4, Anchor: 28, Mark: 40, Segment: 4}, 3: {Offset: 90, Line: 9, Anchor: 63, Mark: 90, Segment: 9}} {
		if got, err := db.Files.Reload(ctx, id); err != nil || got.Cursor != want || got.Verified.Size != want.Offset {
			t.Errorf("file %d: %+v %v", id, got, err)
		}
	}
	if marks, err := db.Files.Marks(ctx, 1); err != nil || !cmp.Equal(marks, []tail.Mark{{Offset: 50, Line: 5, Hash: 105}}) {
		t.Errorf("marks %v %v", marks, err)
	}
	h, err := db.Files.History(ctx, 1)
	past := []PastGeneration{
		{File: 1, Dest: server, Next: 1, Cursor: tail.Cursor{Offset: 60, Line: 6, Anchor: 42, Mark: 60, Segment: 6},
			CutOffset: 30, CutLine: 3, Marks: []tail.Mark{{Offset: 60, Line: 6, Hash: 106}}},
	}
	if diff := cmp.Diff(past, h.Past); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	f, _, err := db.Files.Routing(ctx, 3)
	if err != nil || f.Withheld != 2 || !f.Plain || f.Dest != server || f.WatchedFrom != 10 {
		t.Errorf("facts %+v %v", f, err)
	}
	for after, want := range []outbox.Batch{{Seq: 1, Frame: []byte("frame of s1")}, {Seq: 2, Generation: 1, Frame: []byte("frame of s1")},
		{Seq: 6, Kind: outbox.Checkpoints, Frame: []byte("check")}} {
		rows := peek(t, db, 1, uint64(after), outbox.Limits{}).Batches
		if len(rows) != 1 || rows[0].Seq != want.Seq || rows[0].Kind != want.Kind ||
			string(rows[0].Frame) != string(want.Frame) {
			t.Errorf("rows after %d: %+v", after, rows)
		}
	}
	rows := peek(t, db, 1, 0, outbox.Limits{Blobs: true}).Batches
	if len(rows) != 1 || rows[0].Blob.Name != "a/b.txt" {
		t.Errorf("blobs %+v", rows)
	}
	if u := db.Outbox.Usage(); u.Batches != 5 || u.Entries != 10 || u.Dead != 1 || u.Withheld != 2 ||
		u.ByDest[two].Batches != 1 {
		t.Errorf("usage %+v", u)
	}
	dead, err := db.DeadLetters.List(ctx)
	if err != nil || len(dead) != 1 || dead[0].Key != (DeadKey{Seq: 3, Line: 1}) || dead[0].Dest != two ||
		dead[0].Stream.SessionID != "s2" {
		t.Errorf("dead letters %+v %v", dead, err)
	}
	if l, err := db.Outbox.Learned(ctx, server); err != nil || !l.Took || !l.Extension || !l.Zstd {
		t.Errorf("learned %+v %v", l, err)
	}
	for name, want := range map[string]string{"pause": `{"until":"2026-08-20T09:00:00Z"}`, "exclude_types": "progress"} {
		if v, err := db.Meta(ctx, name); err != nil || string(v) != want {
			t.Errorf("%s: %s %v", name, v, err)
		}
	}
}
