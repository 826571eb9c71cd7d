package state

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/state/kv"
)

// listener counts or passes on what a DB reports.
type listener struct {
	queued  func(dest string)
	changed func()
}

func (l listener) RowsQueued(dest string) {
	if l.queued != nil {
		l.queued(dest)
	}
}

func (l listener) CapacityReturned() {
	if l.changed != nil {
		l.changed()
	}
}

// capacities asks for both classes.
func capacities(db *DB) [2]bool { return [2]bool{db.HasCapacity(false), db.HasCapacity(true)} }

func TestCapacityUnderTheCap(t *testing.T) {
	db := open(t, Options{Cap: 100_000, ReadAhead: 1 << 30})
	changed := 0
	db.Listener = listener{changed: func() { changed++ }}
	wants := func(when string, imports, live bool, full string) {
		t.Helper()
		if got := capacities(db); got != [2]bool{imports, live} || db.Outbox.Usage().Full != full {
			t.Errorf("%s: import %v live %v %q", when, got[0], got[1], db.Outbox.Usage().Full)
		}
	}
	var seqs []uint64
	put := func(n int64) {
		from := int64(len(seqs))
		for i := range n {
			seqs = append(seqs, commit(t, db, advance(1, from+i, from+i+1, 900))...)
		}
	}
	take := func(n int) {
		settle(t, db, 1, seqs[:n]...)
		seqs = append(seqs[n:], seqs[:n]...) // keeps the length, which is the line
	}
	wants("empty", true, true, "")
	put(96)
	wants("over 90 %", false, true, "cap")
	put(10)
	wants("over the cap", false, false, "cap")
	take(5) // under the cap, but not by enough
	wants("just under the cap", false, false, "cap")
	kit.Equal(t, "told times too early", changed, 0)
	take(4)
	kit.Equal(t, "live capacity returned, told times", changed, 1)
	wants("under the cap", false, true, "cap")
	take(12)
	kit.Equal(t, "import capacity returned, told times", changed, 2)
	wants("at 80 %", true, true, "")
}

func TestCapacityOnTheDisk(t *testing.T) {
	path := t.TempDir() + "/state.db"
	synctest.Test(t, func(t *testing.T) {
		var free, asked atomic.Int64 // free -1: no answer
		free.Store(2000)
		db := open(t, Options{Path: path, HeadRoom: 1000, FreeDisk: func(string) (uint64, uint64, error) {
			asked.Add(1)
			if free.Load() < 0 {
				return 0, 0, errors.New("no answer")
			}
			return uint64(free.Load()), 1 << 30, nil
		}})
		changed := make(chan struct{}, 10)
		db.Listener = listener{changed: func() { changed <- struct{}{} }}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- db.Run(ctx) }()
		for range 100 {
			db.HasCapacity(true)
		}
		if asked.Load() != 1 || capacities(db) != [2]bool{true, true} {
			t.Errorf("asked %d times at once", asked.Load())
		}
		free.Store(999)
		<-time.After(2 * time.Second)
		kit.Check(t, capacities(db) == [2]bool{false, false} && db.Outbox.Usage().Full == "disk",
			"there is capacity on a full disk")
		free.Store(1001) // not enough to spare
		<-time.After(3 * time.Second)
		kit.Check(t, capacities(db) == [2]bool{false, false} && len(changed) == 0, "capacity returned too early")
		free.Store(1100)
		<-changed // Run sees it by itself
		kit.Equal(t, "no capacity, though told so", capacities(db), [2]bool{true, true})
		free.Store(-1)
		<-time.After(2 * time.Second)
		kit.Equal(t, "a disk that does not answer stands in the way", capacities(db), [2]bool{true, true})
		cancel()
		kit.Should(t, <-ended)
	})
}

// While the server keeps up an import does not read far ahead; when it does not, it does.
func TestCapacityReadAhead(t *testing.T) {
	path := t.TempDir() + "/state.db"
	synctest.Test(t, func(t *testing.T) {
		db := open(t, Options{Path: path, ReadAhead: 10_000})
		changed := make(chan struct{}, 10)
		db.Listener = listener{changed: func() { changed <- struct{}{} }}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- db.Run(ctx) }()
		var seqs []uint64
		for i := range int64(15) {
			seqs = append(seqs, commit(t, db, advance(1, i, i+1, 900))...)
		}
		kit.Equal(t, "nothing was settled: an import may fill the outbox", capacities(db), [2]bool{true, true})
		settle(t, db, 1, seqs[0])
		kit.Equal(t, "the server keeps up: an import must wait, live files not", capacities(db), [2]bool{false, true})
		settle(t, db, 1, seqs[1:6]...)
		kit.Equal(t, "capacity returned too early", capacities(db), [2]bool{false, true})
		settle(t, db, 1, seqs[6:9]...)
		<-changed
		for i := range int64(10) {
			commit(t, db, advance(2, i, i+1, 900))
		}
		kit.Check(t, capacities(db) == [2]bool{false, true} && db.Outbox.Usage().Full == "", "the outbox is long again")
		began := time.Now()
		<-changed
		d := time.Since(began)
		kit.Check(t, d >= takenLag-2*time.Second && d <= takenLag+2*time.Second, "the server stopped taking, and the import went on after %v", d)
		cancel()
		kit.Should(t, <-ended)
	})
}

// With nothing to do, Run has no timer: the fake clock can't move but by ours.
func TestRunSleepsWhenIdle(t *testing.T) {
	path := t.TempDir() + "/state.db"
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64 // a compaction is due, and each look asks whether the disk has place for it
		db, _ := drained(t, Options{Path: path, CompactAbove: 1, FreeDisk: func(string) (uint64, uint64, error) { asked.Add(1); return 0, 0, nil }})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- db.Run(ctx) }()
		commit(t, db, advance(4, 0, 1, 1))
		<-time.After(10 * time.Second)
		was := asked.Load()
		<-time.After(time.Hour)
		now := asked.Load()
		kit.Check(t, now == was && was != 0, "looked %d times, and %d times in an idle hour", was, now-was)
		cancel()
		<-ended
	})
}

func TestHeadRoomDefault(t *testing.T) {
	for total, want := range map[uint64]uint64{0: 0, 100 << 20: 2 << 20, 500 << 30: 256 << 20} {
		kit.Equal(t, fmt.Sprint("disk of ", total), headRoom(0, total), want)
	}
	free, total, err := kv.FreeDisk(t.TempDir())
	kit.Check(t, err == nil && free != 0 && total >= free, "this disk: %d of %d, %v", free, total, err)
}

func TestDiskSpace(t *testing.T) {
	free, head, err := DiskSpace(t.TempDir(), 0)
	kit.Check(t, err == nil && free != 0 && head != 0 && head <= 256<<20, "%d %d %v", free, head, err)
	_, head, err = DiskSpace(t.TempDir(), 77)
	kit.Check(t, err == nil && head == 77, "%d %v", head, err)
	_, _, err = DiskSpace(filepath.Join(t.TempDir(), "none"), 0)
	kit.Check(t, err != nil, "no folder, no error")
}

// drained makes a state with a drained backlog and a few rows left, and answers its content.
func drained(t *testing.T, opt Options) (*DB, map[string]string) {
	t.Helper()
	db := open(t, opt)
	var steps []Step
	for i := range int64(40) {
		steps = append(steps, advance(1, i, i+1, 100_000))
	}
	settle(t, db, 1, commit(t, db, steps...)...)
	commit(t, db, advance(2, 0, 3, 100), advance(3, 0, 3, 100))
	return db, dump(t, db)
}

// Reading goes on when a backlog that filled the disk has drained: the disk stays full, but the file is empty.
func TestCapacityInsideTheFile(t *testing.T) {
	const head = 100 << 10
	free := uint64(1 << 40)
	db := open(t, Options{HeadRoom: head, FreeDisk: func(string) (uint64, uint64, error) { return free, 1 << 40, nil }})
	var seqs []uint64
	for i := range int64(40) {
		seqs = append(seqs, commit(t, db, advance(1, i, i+1, 100<<10))...)
	}
	free = head / 2
	db.capacity.asked = db.capacity.asked.Add(-diskEvery)
	kit.Check(t, !db.HasCapacity(true) && db.Outbox.Usage().Full == "disk",
		"there is capacity on a full disk, and a full file")
	settle(t, db, 1, seqs...)
	db.capacity.asked = db.capacity.asked.Add(-diskEvery)
	if !db.HasCapacity(true) {
		t.Errorf("no capacity, though %d bytes of the file are empty", db.Empty())
	}
}
