package search

import (
	"context"
	"sync"
)

// tender merges in the background, one owner at a time. It begins with the first save, so that a program that only
// reads has none.
type tender struct {
	x *Index

	mu     sync.Mutex
	closed bool               // guarded by mu, as is what follows
	due    map[int64]bool     // owners
	cancel context.CancelFunc // ends the goroutine that runs; nil: none does
	ended  chan struct{}      // closed when it has ended
}

// ScheduleMerge queues the segments of the owners of saved texts for merging, if there are many.
func (x *Index) ScheduleMerge(saved []Prepared) {
	t := x.tend
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return
	}
	for _, p := range saved {
		t.due[p.owner] = true
	}
	if t.cancel == nil {
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan struct{})
		t.cancel, t.ended = cancel, ended
		go func() {
			defer close(ended)
			defer cancel()
			t.run(ctx)
		}()
	}
}

// run works until nothing is due. What fails is due again with the next save of its owner.
func (t *tender) run(ctx context.Context) {
	for {
		owner, some := t.take()
		if !some {
			return
		}
		_ = t.x.Merge(ctx, owner)
	}
}

func (t *tender) take() (owner int64, some bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for owner = range t.due {
		delete(t.due, owner)
		return owner, !t.closed
	}
	t.cancel, t.ended = nil, nil
	return 0, false
}

func (t *tender) close() {
	t.mu.Lock()
	t.closed = true
	cancel, ended := t.cancel, t.ended
	t.mu.Unlock()
	if cancel != nil {
		cancel()
		<-ended
	}
}
