package state

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/bbolt"

	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/state/kv"
	"github.com/ccship/ccship/tail"
)

// sampleStep and sampleDead are what the version 1 fixture holds.
func sampleStep() Step {
	c := tail.Cursor{Offset: 300, Line: 3, Generation: 2, Anchor: 11, Mark: 200, Segment: 12}
	return Step{
		Tracked: tail.Tracked{Cursor: c, Provisional: tail.Provisional{Length: 7, Hash: 13}, Gone: 14, Listings: 15,
			File:     tail.File{ID: 5, Kind: tail.Agent, Path: "/r/p/a.jsonl", Root: "/r", Name: "a", Copy: 2, Stat: tail.Stat{Device: 1, Inode: 2, Size: 300, ModTime: 3, ChangeTime: 4}},
			Verified: tail.Stat{Device: 1, Inode: 2, Size: 299, ModTime: 3, ChangeTime: 4}},
		Routing: Routing{Stream: outbox.Stream{ID: 5, SessionID: "m/a", ProjectHash: "h", Path: "p/a.jsonl", Cwd: "/c", Project: "c", Parent: "m", MaxEntries: 6, Extended: true},
			Dest: server, RewoundTo: 1, Decided: true, Excluded: 8, SentBefore: 9},
		Marks: []tail.Mark{{Offset: 200, Line: 2, Hash: 16}},
		Batches: []outbox.Batch{{Kind: outbox.Opaque, Generation: 2, RewoundTo: 1, From: outbox.Position{Offset: 100, Line: 1}, To: outbox.Position{Offset: 300, Line: 3},
			NoNewline: true, Edges: []outbox.Edge{{Line: 1, Before: []byte(" "), After: []byte("\r")}}, Entries: 2, Raw: 190, Frame: []byte("frame")}},
	}
}

// The rows of version 1, byte for byte: as a state of that version has them, whatever today's code writes.
const (
	v1Dest = "01f29acf097b2275726c223a2268747470733a2f2f6f6e652e6578616d706c652f222c226c6561726e6564223a7b22546f6f6b223a747275652c22457874656e73696f6e223a66616c73652c22506c61696e223a66616c73652c225a737464223a66616c73652c22477a6970223a66616c73652c224d6178526177223a302c224d61785261774174223a307d7d"
	v1File = "0194e1c57c010c2f722f702f612e6a736f6e6c022f7201610400000000000000010000000000000002d8040608d8040604000000000000000b9003000000000000000c0e000000000000000d00000000000000010000000000000002d60406081c1e036d2f61016809702f612e6a736f6e6c022f630163016d0c0102020010121201"
	v1Row  = "010000001ae199882ed00f010402c80102d8040604fc0201449b602c0a02020120010d6672616d65"
)

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// v1Fixture writes a state of schema version 1.
func v1Fixture(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "state.db")
	b, err := bbolt.Open(path, 0o600, &bbolt.Options{NoFreelistSync: true, FreelistType: bbolt.FreelistMapType})
	if err != nil {
		t.Fatal(err)
	}
	n := binary.BigEndian
	rows := map[string]map[string][]byte{
		"meta":     {"schema": {0, 0, 0, 1}, "epoch": kv.Seal([]byte("epoch"), append(kv.NewSealed(1, 32), "000102030405060708090a0b0c0d0e0f"...))},
		"dests":    {"\x00\x00\x00\x01": unhex(t, v1Dest)},
		"files":    {string(n.AppendUint64(nil, 5)): unhex(t, v1File)},
		"prefixes": {string(n.AppendUint64(n.AppendUint64(nil, 5), 200)): n.AppendUint64(n.AppendUint64(nil, 2), 16)},
		"outbox":   {string(n.AppendUint64(n.AppendUint64([]byte{0, 0, 0, 1}, 5), 9)): unhex(t, v1Row)},
		"dead":     {},
	}
	err = b.Update(func(tx *bbolt.Tx) error {
		for name, pairs := range rows {
			bucket, err := tx.CreateBucket([]byte(name))
			if err != nil {
				return err
			}
			if err := bucket.SetSequence(map[string]uint64{"dests": 1, "outbox": 9}[name]); err != nil {
				return err
			}
			for k, v := range pairs {
				if err := bucket.Put([]byte(k), v); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err = errors.Join(err, b.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

// checkFixture looks for all that the fixture holds.
func checkFixture(t *testing.T, db *DB) {
	t.Helper()
	want := sampleStep()
	want.Batches[0].Seq = 9
	if len(db.Advice()) != 0 || db.Epoch() != "000102030405060708090a0b0c0d0e0f" {
		t.Errorf("notices %v, epoch %s", db.Advice(), db.Epoch())
	}
	if got, err := db.Files.Reload(t.Context(), 5); err != nil || got != want.Tracked {
		t.Errorf("%v %s", err, cmp.Diff(want.Tracked, got))
	}
	if diff := cmp.Diff(outbox.StreamBatches{Stream: want.Routing.Stream, Batches: want.Batches}, peek(t, db, 5, 0, outbox.Limits{})); diff != "" {
		t.Error(diff)
	}
	if f, _, _ := db.Files.Routing(t.Context(), 5); f != want.Routing {
		t.Error(cmp.Diff(want.Routing, f))
	}
	if marks, _ := db.Files.Marks(t.Context(), 5); !cmp.Equal(marks, want.Marks) {
		t.Error(marks)
	}
	if l, _ := db.Outbox.Learned(t.Context(), server); !l.Took {
		t.Errorf("learned %+v", l)
	}
	if seqs := commit(t, db, advance(1, 0, 1, 1)); seqs[0] != 10 {
		t.Errorf("seq %d", seqs[0])
	}
}

func TestVersion1IsRead(t *testing.T) {
	checkFixture(t, open(t, Options{Path: v1Fixture(t)}))
}

// A state of version 1 with all it holds becomes one of today, and goes on where it was.
func TestVersion1Migrates(t *testing.T) {
	path := v1Fixture(t)
	db := open(t, Options{Path: path})
	if d := dump(t, db); d["meta/schema"] != "\x00\x00\x00\x05" {
		t.Errorf("schema %q", d["meta/schema"])
	}
	checkFixture(t, db)
	prev := sampleStep().Tracked.Cursor
	next := prev
	next.Offset, next.Line = 400, 4
	s := Step{Prev: prev, From: prev, Tracked: sampleStep().Tracked, Routing: sampleStep().Routing}
	s.Tracked.Cursor, s.Routing.Watched, s.Routing.WatchedFrom = next, true, 300
	commit(t, db, s)
	closeNow(t, db)
	db = open(t, Options{Path: path})
	if f, _, err := db.Files.Routing(t.Context(), 5); err != nil || !f.Watched || f.WatchedFrom != 300 || f.SentBefore != 9 {
		t.Errorf("%+v %v", f, err)
	}
}
