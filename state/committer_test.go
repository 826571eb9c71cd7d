package state

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/ccship/ccship/tail"
)

// gate holds the first commit back until it is opened.
type gate struct {
	once          sync.Once
	reached, open chan struct{}
}

func newGate() *gate { return &gate{reached: make(chan struct{}), open: make(chan struct{})} }

func (g *gate) fault(step string) error {
	if step == "commit" {
		g.once.Do(func() {
			close(g.reached)
			<-g.open
		})
	}
	return nil
}

// lastTx is the number of the last committed transaction.
func lastTx(t *testing.T, db *DB) (id int) {
	t.Helper()
	if err := db.view(t.Context(), func(tx *bbolt.Tx) error { id = tx.ID(); return nil }); err != nil {
		t.Fatal(err)
	}
	return id
}

// waitFor polls until a condition holds.
func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick, deadline := time.NewTicker(time.Millisecond), time.After(20*time.Second)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

func (c *committer) queued() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.waiting)
}

func TestConcurrentCommitsShareTransactions(t *testing.T) {
	g := newGate()
	db := open(t, Options{Fault: g.fault})
	first := lastTx(t, db)
	const n = 40
	var all sync.WaitGroup
	for id := range tail.FileID(n) {
		if id == 1 {
			<-g.reached // the first one went at once, alone
		}
		all.Go(func() {
			s := advance(id+1, 0, 1, 100)
			if id == 7 {
				s.Facts.Dest = "" // lines without a destination: this one can't be done
			}
			errs, err := db.Commit(context.Background(), []Step{s})
			if id == 7 && err == nil || id != 7 && (err != nil || errs[0] != nil) {
				t.Errorf("file %d: %v %v", id+1, errs, err)
			}
		})
	}
	waitFor(t, "the others to queue", func() bool { return db.group.queued() == n-1 })
	close(g.open)
	all.Wait()
	if u := db.Usage(); u.Batches != n-1 {
		t.Errorf("%d batches", u.Batches)
	}
	checkIndex(t, db)

	before := lastTx(t, db)
	if before-first != 1+n-2 { // the group of 39 was rolled back for one of them, then each went alone
		t.Errorf("%d transactions", before-first)
	}
	g2 := newGate()
	db.opt.Fault = g2.fault
	for id := range tail.FileID(n) {
		if id == 1 {
			<-g2.reached
		}
		all.Go(func() {
			prev := tail.Cursor{}
			if id != 7 {
				prev = cursorAt(1, 0)
			}
			s := advance(id+1, 1, 2, 100)
			s.Prev, s.From = prev, prev
			if errs, err := db.Commit(context.Background(), []Step{s}); err != nil || errs[0] != nil {
				t.Errorf("file %d: %v %v", id+1, errs, err)
			}
		})
	}
	waitFor(t, "the others to queue", func() bool { return db.group.queued() == n-1 })
	close(g2.open)
	all.Wait()
	if got := lastTx(t, db) - before; got != 2 {
		t.Errorf("%d commits took %d transactions, want 2", n, got)
	}
}

func TestGroupsAreBounded(t *testing.T) {
	g := newGate()
	db := open(t, Options{Fault: g.fault})
	first := lastTx(t, db)
	var all sync.WaitGroup
	for id := range tail.FileID(5) {
		if id == 1 {
			<-g.reached
		}
		all.Go(func() { commit(t, db, advance(id+1, 0, 1, groupBytes/3)) })
	}
	waitFor(t, "the others to queue", func() bool { return db.group.queued() == 4 })
	close(g.open)
	all.Wait()
	if got := lastTx(t, db) - first; got != 3 { // 1, then 3 that fit, then 1
		t.Errorf("%d transactions", got)
	}
}

// Who gives up while waiting either did nothing or learns the outcome; the others go on.
func TestCancelledCommit(t *testing.T) {
	g := newGate()
	db := open(t, Options{Fault: g.fault})
	var all sync.WaitGroup
	all.Go(func() { commit(t, db, advance(1, 0, 1, 1)) })
	<-g.reached
	ctx, cancel := context.WithCancel(t.Context())
	gaveUp := make(chan error, 1)
	go func() {
		_, err := db.Commit(ctx, []Step{advance(2, 0, 1, 1)})
		gaveUp <- err
	}()
	waitFor(t, "the second to queue", func() bool { return db.group.queued() == 1 })
	all.Go(func() { commit(t, db, advance(3, 0, 1, 1)) })
	waitFor(t, "the third to queue", func() bool { return db.group.queued() == 2 })
	cancel()
	if err := <-gaveUp; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	close(g.open)
	all.Wait()
	if _, err := db.Reload(t.Context(), 2); !errors.Is(err, ErrUnknownFile) {
		t.Errorf("the cancelled one: %v", err)
	}
	if n := db.Usage().Batches; n != 2 {
		t.Errorf("%d batches", n)
	}
}

func TestClosed(t *testing.T) {
	db := open(t, Options{})
	closeNow(t, db)
	if _, err := db.Commit(t.Context(), []Step{advance(1, 0, 1, 1)}); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	if _, err := db.Load(t.Context()); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	closeNow(t, db)
}
