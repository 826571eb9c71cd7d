package state

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/bbolt"

	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/tail"
)

// setSchema makes a closed state one of an earlier version, whose rows are like today's.
func setSchema(t *testing.T, path string, version byte) {
	t.Helper()
	b, err := bbolt.Open(path, 0o600, &bbolt.Options{NoFreelistSync: true})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	err = b.Update(func(tx *bbolt.Tx) error {
		meta := tx.Bucket([]byte("meta"))
		return errors.Join(meta.Put([]byte("schema"), []byte{0, 0, 0, version}), meta.Delete([]byte("rows")))
	})
	if err != nil {
		t.Fatal(err)
	}
}

// goesTo is the destination of each file, from 1 on.
func goesTo(t *testing.T, db *DB, files int) (dests []string) {
	t.Helper()
	for id := range files {
		f, found, err := db.Files.Routing(t.Context(), tail.FileID(id+1))
		if err != nil || !found {
			t.Fatalf("file %d: %v %v", id+1, found, err)
		}
		dests = append(dests, f.Dest)
	}
	return dests
}

// sendTo commits a line of each file, from 1 on, for a destination each.
func sendTo(t *testing.T, db *DB, dests ...string) {
	t.Helper()
	for i, dest := range dests {
		s := advance(tail.FileID(i+1), 0, 1, 1)
		s.Routing.Dest = dest
		commit(t, db, s)
	}
}

// Another spelling of a server, in a state of version 3, is that server after the upgrade: for its files, its rows and
// what was learned of it. So nothing is sent to it again.
func TestServerSpellingMigrates(t *testing.T) {
	const old, url = "http://h:5000/a//b/api/conversations", "http://h:5000/a/b"
	path := filepath.Join(t.TempDir(), "state.db")
	db := open(t, Options{Path: path})
	sendTo(t, db, old, old+"#/w//p", "no URL")
	if err := db.Outbox.Learn(t.Context(), old, outbox.Learned{Took: true, Config: 7}); err != nil {
		t.Fatal(err)
	}
	closeNow(t, db)
	setSchema(t, path, 3)
	for range 2 {
		db = open(t, Options{Path: path})
		if diff := cmp.Diff([]string{url, url + "#/w//p", "no URL"}, goesTo(t, db, 3)); diff != "" {
			t.Error(diff)
		}
		if by := db.Outbox.Usage().ByDest; by[url].Batches != 1 || by[url+"#/w//p"].Batches != 1 || by["no URL"].Batches != 1 || len(by) != 3 {
			t.Errorf("waiting %+v", by)
		}
		if l, err := db.Outbox.Learned(t.Context(), url); err != nil || !l.Took || l.Config != 7 {
			t.Errorf("learned %+v %v", l, err)
		}
		closeNow(t, db)
	}
}

// Of two spellings that both are in the state, the one that most files go to becomes the server's. What waits for the
// other one still waits.
func TestTwoSpellingsMigrate(t *testing.T) {
	const old, url = "http://h:5000/api/conversations", "http://h:5000"
	path := filepath.Join(t.TempDir(), "state.db")
	db := open(t, Options{Path: path})
	sendTo(t, db, url, old, old)
	closeNow(t, db)
	setSchema(t, path, 3)
	db = open(t, Options{Path: path})
	if diff := cmp.Diff([]string{old, url, url}, goesTo(t, db, 3)); diff != "" {
		t.Error(diff)
	}
	if by := db.Outbox.Usage().ByDest; by[url].Batches != 2 || by[old].Batches != 1 {
		t.Errorf("waiting %+v", by)
	}
}
