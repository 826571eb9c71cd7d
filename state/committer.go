package state

import (
	"context"
	"errors"
	"sync"
)

// groupBytes bounds what one transaction carries in memory, unless a single request is larger.
const groupBytes = 8 << 20

// committer runs requests in as few transactions as it can without delaying any: the first caller runs at once, and
// those that arrive while it waits for the disk share the next transaction, run by the first among them.
type committer struct {
	write sync.Mutex // held by whoever runs a transaction, or swaps the file

	mu      sync.Mutex
	waiting []*request // guarded by mu
	busy    bool       // guarded by mu; someone leads
}

// request is one caller's part of a transaction.
type request struct {
	// apply does the work. It may be called again after a transaction that was rolled back, and must begin afresh.
	apply func(*txn) error
	size  int64         // bytes it writes, about
	done  chan struct{} // closed when err is set
	lead  chan struct{} // closed when this request is to run the next group
	err   error
}

// submit runs apply in a transaction, alone or with others, and answers how that ended. When ctx ends first, either
// nothing happened, or the outcome is waited for.
func (db *DB) submit(ctx context.Context, size int64, apply func(*txn) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	r := &request{apply: apply, size: size, done: make(chan struct{}), lead: make(chan struct{})}
	if !db.group.join(r) {
		select {
		case <-r.done:
			return r.err
		case <-r.lead:
		case <-ctx.Done():
			if db.group.leave(r) {
				return ctx.Err()
			}
			select {
			case <-r.done:
				return r.err
			case <-r.lead: // leading is a duty to the others, ctx or not
			}
		}
	}
	db.lead(r)
	<-r.done
	return r.err
}

// join queues a request, and says whether its caller is to lead.
func (c *committer) join(r *request) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting = append(c.waiting, r)
	first := !c.busy
	c.busy = true
	return first
}

// leave takes a request back that no leader has taken yet.
func (c *committer) leave(r *request) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-r.lead:
		return false
	default:
	}
	for i, w := range c.waiting {
		if w == r {
			c.waiting = append(c.waiting[:i], c.waiting[i+1:]...)
			return true
		}
	}
	return false
}

// take removes the requests of one transaction from the queue; own is the leader's and comes first.
func (c *committer) take(own *request) []*request {
	c.mu.Lock()
	defer c.mu.Unlock()
	group, size := []*request{own}, own.size
	rest := c.waiting[:0]
	for _, w := range c.waiting {
		switch {
		case w == own:
		case size+w.size <= groupBytes && len(rest) == 0:
			group, size = append(group, w), size+w.size
		default:
			rest = append(rest, w)
		}
	}
	clear(c.waiting[len(rest):])
	c.waiting = rest
	return group
}

// handOver makes the next waiting request lead, when there is one.
func (c *committer) handOver() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.waiting) == 0 {
		c.busy = false
		return
	}
	close(c.waiting[0].lead)
}

// lead runs one group, that of r.
func (db *DB) lead(r *request) {
	db.group.write.Lock()
	group := db.group.take(r)
	err := db.runGroup(group)
	var own *applyError
	if len(group) > 1 && errors.As(err, &own) {
		// One of them can't be done, and must not take the others along, now or when all of them come again.
		for i := range group {
			db.finish(group[i:i+1], db.runGroup(group[i:i+1]))
		}
	} else {
		db.finish(group, err)
	}
	db.group.write.Unlock()
	db.group.handOver()
}

func (db *DB) finish(group []*request, err error) {
	for _, r := range group {
		r.err = err
		close(r.done)
	}
}

// applyError is the failure of a request's own part, not of the transaction.
type applyError struct{ err error }

func (e *applyError) Error() string { return e.err.Error() }
func (e *applyError) Unwrap() error { return e.err }
