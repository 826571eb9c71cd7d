package projection

import (
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.etcd.io/bbolt"

	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/state/kv"
)

// fixture unpacks a state of an earlier schema: testdata/README.md of package state.
func fixture(t *testing.T, name string) string {
	t.Helper()
	f, err := os.Open(filepath.Join("..", "testdata", name))
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

// A state of version 1, which kept nothing of sessions, can be derived from.
func TestVersion1Migrates(t *testing.T) {
	path := fixture(t, "v1.db.gz")
	db := open(t, state.Options{Path: path})
	f, r, known, err := db.State.Files.File(t.Context(), 5)
	if err != nil || !known {
		t.Fatal(known, err)
	}
	step := state.Step{Prev: f.Cursor, From: f.Cursor, Tracked: f, Routing: r}
	step.Tracked.Cursor.Offset, step.Tracked.Cursor.Line = 400, 4
	commit(t, db, step)
	p := &Projection{Place: PlaceOf(step.Tracked.Cursor), Fold: []byte("fold")}
	if errs := deriveAll(t, db, Derivation{File: 5, Projection: p}); errs[0] != nil {
		t.Fatal(errs[0])
	}
	closeNow(t, db)
	db = open(t, state.Options{Path: path})
	if got := kept(t, db, 5); !cmp.Equal(got, *p) {
		t.Error(cmp.Diff(*p, got))
	}
}

// A state of version 2 has all that it kept of sessions, as it is migrated and as it is opened after that, and nothing
// of it counts as missing: nothing is queued again.
func TestVersion2Migrates(t *testing.T) {
	path := fixture(t, "v2.db.gz")
	var first map[string]string
	for range 2 {
		db := open(t, state.Options{Path: path})
		checkV2Sessions(t, db)
		content := dump(t, db)
		if first != nil {
			if diff := cmp.Diff(first, content); diff != "" {
				t.Error(diff)
			}
		}
		first = content
		closeNow(t, db)
	}
	db := open(t, state.Options{Path: path})
	before := db.State.Outbox.Usage()
	d := Derivation{File: 1, Prev: Place{Offset: 40, Line: 4, Generation: 1}, Projection: &Projection{},
		Batches: []outbox.Batch{{Kind: outbox.Checkpoints, Items: 1, Frame: []byte("check")}}}
	if errs := deriveAll(t, db, d); errs[0] == nil || db.State.Outbox.Usage().Batches != before.Batches {
		t.Errorf("a derivation from an earlier place is taken: %v", errs[0])
	}
}

// Another spelling of a server, in a state of version 3, is that server after the upgrade, so that no document counts
// as queued for another one.
func TestServerSpellingMigrates(t *testing.T) {
	const old, url = "http://h:5000/a//b/api/conversations", "http://h:5000/a/b"
	path := filepath.Join(t.TempDir(), "state.db")
	db := open(t, state.Options{Path: path})
	commit(t, db, advance(1, 0, 1, 1))
	docs := []Document{{Session: "s1", Path: "a.md", Linked: true, Dest: old}, {Session: "s1", Path: "b.md", Linked: true}}
	if err := deriveOne(t, db, Derivation{File: 1, Documents: docs}); err != nil {
		t.Fatal(err)
	}
	closeNow(t, db)
	b, err := bbolt.Open(path, 0o600, &bbolt.Options{NoFreelistSync: true})
	if err != nil {
		t.Fatal(err)
	}
	err = b.Update(func(tx *bbolt.Tx) error {
		meta := tx.Bucket([]byte(kv.BucketMeta))
		return errors.Join(meta.Put([]byte("schema"), []byte{0, 0, 0, 3}), meta.Delete([]byte("rows")))
	})
	if err = errors.Join(err, b.Close()); err != nil {
		t.Fatal(err)
	}
	docs[0].Dest = url
	for range 2 {
		db = open(t, state.Options{Path: path})
		if diff := cmp.Diff(docs, documentsOf(t, db)); diff != "" {
			t.Error(diff)
		}
		closeNow(t, db)
	}
}

// checkV2Sessions looks for what the fixture keeps of sessions.
func checkV2Sessions(t *testing.T, db *DB) {
	t.Helper()
	ctx := t.Context()
	u := Projection{
		Place:          Place{Offset: 50, Line: 5, Generation: 1},
		Cleared:        1,
		EffectsThrough: 5,
		Fold:           []byte("fold"),
		Log:            []byte("log"),
		Marks:          []byte("marks"),
	}
	if diff := cmp.Diff(u, kept(t, db, 1)); diff != "" {
		t.Error(diff)
	}
	c := Checkpoint{
		ID:          "cp-1",
		File:        1,
		Session:     "s1",
		Trigger:     "compact",
		Tokens:      160_000,
		Budget:      167_000,
		ContextHash: "00ff",
		Summary:     "고침",
		ActiveFiles: []string{
			"/w/a",
		},
		At:         time.Date(2026, 8, 20, 9, 0, 0, 0, time.UTC),
		Line:       3,
		Generation: 1,
		Model:      "m",
		Automatic:  true,
	}
	if got, _, err := db.Checkpoints.Checkpoint(ctx, "cp-1"); err != nil || !cmp.Equal(c, got, cmpopts.IgnoreUnexported(c)) {
		t.Errorf("%v %s", err, cmp.Diff(c, got, cmpopts.IgnoreUnexported(c)))
	}
	if b := db.Checkpoints.Budgets(); b.Models["m"] != 100_000 || b.Files[1] != 90_000 {
		t.Errorf("budgets %+v", b)
	}
	docs := []Document{
		{
			Session:   "s1",
			Path:      "docs/spec.md",
			Linked:    true,
			AddedAt:   1,
			AddedBy:   "user",
			Version:   3,
			ChangedAt: 2,
			By:        "claude",
			Size:      4,
			SHA256:    "ab",
			Stat: Stamp{
				Size:       4,
				ModTime:    5,
				ChangeTime: 6,
				Inode:      7,
			},
			Folder: Folder{Device: 8, Inode: 9},
			Dest:   server,
		},
	}
	if diff := cmp.Diff(docs, documentsOf(t, db)); diff != "" {
		t.Error(diff)
	}
	asks := []LinkRequest{{Session: "s1", Line: 4, Tool: "toolu_1", Link: true, Path: "notes.md", Base: "/w"}}
	if diff := cmp.Diff(asks, linkRequestsOf(t, db)); diff != "" {
		t.Error(diff)
	}
	if i, found, err := db.Introductions.Get(
		ctx,
		"s1",
	); err != nil || !found ||
		i != (Introduction{Session: "s1", Name: "a name", Cwd: "/w", At: 7}) {
		t.Errorf("introduction %+v %v %v", i, found, err)
	}
	beside, err := db.Attachments.Queued(ctx, server, 1)
	if err != nil ||
		!cmp.Equal(beside, map[string]Attachment{"a/b.txt": {Name: "a/b.txt", Size: 3, ModTime: 5, SHA256: "cd"}}) {
		t.Errorf("attachments %+v %v", beside, err)
	}
}
