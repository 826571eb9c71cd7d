package state

import (
	"bytes"
	"errors"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/tail"
)

// What is kept outlives a restart and a compaction, and can be forgotten.
func TestRemember(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	failing := false
	fault := func(step string) error {
		if failing && step == "remember" {
			return errors.New("disk on fire")
		}
		return nil
	}
	db := open(t, Options{Path: path, Fault: fault})
	kept := func(db *DB, want []byte) {
		t.Helper()
		got, err := db.Remembered(t.Context(), "pause")
		if err != nil || !bytes.Equal(got, want) || (got == nil) != (want == nil) {
			t.Errorf("remembered %q %v, want %q", got, err, want)
		}
	}
	remember := func(value []byte) {
		t.Helper()
		if err := db.Remember(t.Context(), "pause", value); err != nil {
			t.Fatal(err)
		}
	}
	kept(db, nil)
	remember(nil)
	remember([]byte{})
	kept(db, []byte{})
	remember([]byte("until noon"))
	failing = true
	if err := db.Remember(t.Context(), "pause", []byte("never")); err == nil {
		t.Error("a write that failed is said to be durable")
	}
	remember([]byte("until noon")) // nothing to write: nothing to fail
	failing = false
	if err := db.compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	closeNow(t, db)
	db = open(t, Options{Path: path, Fault: fault})
	kept(db, []byte("until noon"))
	remember(nil)
	kept(db, nil)
}

// Limits take hold at once: room that a higher cap makes is told.
func TestSetLimits(t *testing.T) {
	db := open(t, Options{Cap: 10_000, ReadAhead: 1 << 30})
	told := 0
	db.RoomChanged = func() { told++ }
	commit(t, db, advance(1, 0, 1, 12_000))
	if got := rooms(db); got != [2]bool{} {
		t.Fatalf("room over the cap: %v", got)
	}
	db.SetLimits(Limits{Cap: 1 << 20})
	if got, u := rooms(db), db.Usage(); got != [2]bool{true, true} || told != 1 || u.Cap != 1<<20 || u.Full != "" {
		t.Errorf("room %v, told %d times, usage %+v", got, told, u)
	}
	db.SetLimits(Limits{Cap: 1 << 20, HeadRoom: 1 << 41})
	if got := rooms(db); got != [2]bool{} || db.Usage().Full != "disk" {
		t.Errorf("room %v with more head-room than disk", got)
	}
	db.SetLimits(Limits{})
	if got, l := rooms(db), db.limits(); got != [2]bool{true, true} || l.Cap != 2<<30 || l.CompactAbove != 64<<20 {
		t.Errorf("defaults: room %v, limits %+v", got, l)
	}
}

func TestQueued(t *testing.T) {
	db := open(t, Options{})
	commit(t, db, advance(1, 0, 4, 100))
	commit(t, db, advance(2, 0, 1, 100))
	commit(t, db, advance(3, 0, 1, 100), advance(1, 4, 6, 50))
	got := db.Queued()
	for i := range got {
		if got[i].Oldest.IsZero() || got[i].Bytes == 0 {
			t.Errorf("%+v", got[i])
		}
		got[i].Oldest, got[i].Bytes = time.Time{}, 0
	}
	want := []Queued{
		{Dest: server, File: 1, Waiting: Waiting{Batches: 2, Entries: 6, Raw: 60}},
		{Dest: server, File: 2, Waiting: Waiting{Batches: 1, Entries: 1, Raw: 10}},
		{Dest: server, File: 3, Waiting: Waiting{Batches: 1, Entries: 1, Raw: 10}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	facts, err := db.FactsOf(t.Context(), []tail.FileID{3, 7, 1})
	if err != nil || len(facts) != 2 || facts[1].Stream.SessionID != "s1" || facts[3].Dest != server {
		t.Errorf("facts %+v %v", facts, err)
	}
	if err := db.Settle(t.Context(), []outbox.Settlement{{Dest: server, Stream: 1, Seqs: []uint64{1, 4}}}); err != nil {
		t.Fatal(err)
	}
	if got := db.Queued(); len(got) != 2 || got[0].File != 2 {
		t.Errorf("queued after the acknowledgement: %+v", got)
	}
}

// Whoever is told not to wait for another process is told at once.
func TestNoWait(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	db := open(t, Options{Path: path})
	synctest.Test(t, func(t *testing.T) { // in its time only waiting takes any
		for noWait, want := range map[bool]time.Duration{true: 0, false: lockWait} {
			begun := time.Now()
			if _, err := Open(t.Context(), Options{Path: path, NoWait: noWait}); !errors.Is(err, ErrLocked) {
				t.Errorf("%v, want %v", err, ErrLocked)
			}
			if took := time.Since(begun); took != want {
				t.Errorf("no wait %t: it waited %v, want %v", noWait, took, want)
			}
		}
	})
	closeNow(t, db)
	again := open(t, Options{Path: path, NoWait: true})
	closeNow(t, again)
}
