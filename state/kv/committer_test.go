package kv

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ccship/ccship/e2e/kit"
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
func lastTx(t *testing.T, s store) (id int) {
	t.Helper()
	kit.Must(t, s.viewQuietly(func(tx *Snapshot) error { id = tx.ID(); return nil }))
	return id
}

func (c *committer) queued() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.waiting)
}

// together runs n requests of which all but the first wait for it, and answers how many transactions that took.
func together(t *testing.T, s store, n int, do func(i int)) int {
	t.Helper()
	g, first := newGate(), lastTx(t, s)
	s.opt.Fault = g.fault
	var all sync.WaitGroup
	for i := range n {
		if i == 1 {
			<-g.reached // the first one went at once, alone
		}
		all.Go(func() { do(i) })
	}
	waitFor(t, "the others to queue", func() bool { return s.group.queued() == n-1 })
	close(g.open)
	all.Wait()
	return lastTx(t, s) - first
}

func TestConcurrentCommitsShareTransactions(t *testing.T) {
	s := open(t, Options{})
	const n = 40
	refused := errors.New("this one can't be done")
	took := together(t, s, n, func(i int) {
		key := fmt.Sprintf("a%d", i)
		if i != 7 {
			put(t, s, 100, key)
			return
		}
		err := s.Update(context.Background(), 100, func(tx *Tx) error {
			return errors.Join(tx.Put("put row", tx.Bucket(rows), []byte(key), value(key, 100)), refused)
		})
		kit.Check(t, errors.Is(err, refused), "%d: %v", i, err)
	})
	kit.Equal(t, "rows", len(s.held()), n-1)
	checkMemory(t, s)
	if took != 1+n-2 { // the group of 39 was rolled back for one of them, then each went alone
		t.Errorf("%d transactions", took)
	}
	kit.Equal(t, fmt.Sprintf("%d commits: transactions", n),
		together(t, s, n, func(i int) { put(t, s, 100, fmt.Sprintf("b%d", i)) }), 2)
}

func TestGroupsAreBounded(t *testing.T) {
	s := open(t, Options{})
	took := together(t, s, 5, func(i int) { put(t, s, groupBytes/3, fmt.Sprint(i)) })
	if took != 3 { // 1, then 3 that fit, then 1
		t.Errorf("%d transactions", took)
	}
}

// Requests keep their order: one that would fit does not overtake a larger one that waits for the next transaction.
func TestGroupsKeepTheOrder(t *testing.T) {
	g := newGate()
	s := open(t, Options{Fault: g.fault})
	var all sync.WaitGroup
	var order []int64
	update := func(size int64) {
		all.Go(func() {
			err := s.Update(context.Background(), size, func(tx *Tx) error {
				order = append(order, size) // one transaction at a time
				tx.Changes(s.owner).(*changes).put[fmt.Sprint(size)] = 1
				return tx.Put("put row", tx.Bucket(rows), []byte(fmt.Sprint(size)), value(fmt.Sprint(size), 1))
			})
			kit.Should(t, err)
		})
	}
	update(1)
	<-g.reached
	want := []int64{1, 2, groupBytes, 3, groupBytes - 1, 4}
	for i, size := range want[1:] {
		update(size)
		waitFor(t, "it to queue", func() bool { return s.group.queued() == i+1 })
	}
	close(g.open)
	all.Wait()
	kit.Check(t, slices.Equal(order, want), "%v", order)
}

// Who gives up while waiting either did nothing or learns the outcome; the others go on.
func TestCancelledCommit(t *testing.T) {
	g := newGate()
	s := open(t, Options{Fault: g.fault})
	var all sync.WaitGroup
	all.Go(func() { put(t, s, 1, "1") })
	<-g.reached
	ctx, cancel := context.WithCancel(t.Context())
	gaveUp := make(chan error, 1)
	go func() { gaveUp <- s.putRows(ctx, 1, "2") }()
	waitFor(t, "the second to queue", func() bool { return s.group.queued() == 1 })
	all.Go(func() { put(t, s, 1, "3") })
	waitFor(t, "the third to queue", func() bool { return s.group.queued() == 2 })
	cancel()
	err := <-gaveUp
	kit.Check(t, errors.Is(err, context.Canceled), "%v", err)
	close(g.open)
	all.Wait()
	got := s.held()
	kit.Check(t, len(got) == 2 && got["2"] == 0, "rows %v", got)
}

func TestClosed(t *testing.T) {
	s := open(t, Options{})
	closeNow(t, s)
	err := s.putRows(t.Context(), 1, "1")
	kit.Check(t, errors.Is(err, ErrClosed), "%v", err)
	err = s.View(t.Context(), func(*Snapshot) error { return nil })
	kit.Check(t, errors.Is(err, ErrClosed), "%v", err)
	closeNow(t, s)
}

// A request that panics on a goroutine whose caller recovers, as those of a socket do, keeps nobody from committing.
func TestPanicEndsItsGroup(t *testing.T) {
	s := open(t, Options{})
	put(t, s, 10, "a")
	s.group.write.Lock() // so that the next ones share a transaction
	var callers sync.WaitGroup
	errs := make(chan error, 3)
	var none []int
	for i := range 3 {
		queued := make(chan struct{})
		callers.Go(func() {
			defer func() {
				if recover() != nil {
					errs <- errPanicked
				}
			}()
			close(queued)
			errs <- s.Update(t.Context(), 1, func(tx *Tx) error {
				if i == 0 {
					return errors.New(string(rune(none[3])))
				}
				return nil
			})
		})
		<-queued
		waitFor(t, "it waits", func() bool {
			s.group.mu.Lock()
			defer s.group.mu.Unlock()
			return len(s.group.waiting) == i+1
		})
	}
	s.group.write.Unlock()
	callers.Wait()
	for range 3 {
		kit.Err(t, "who shared a transaction with a panic got", errPanicked)(<-errs)
	}
	put(t, s, 10, "b")
	kit.Same(t, "differs", cmp.Diff(map[string]int{"a": 10, "b": 10}, s.held()))
}
