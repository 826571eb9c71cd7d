package kv

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// groupBytes limits what one transaction carries in memory, unless a single request is larger. bbolt holds all pages
// that a transaction changes in memory until the commit.
const groupBytes = 8 << 20

// committer runs requests in as few transactions as possible without delaying any. The first caller runs at once; those
// that arrive while it waits for the disk share the next transaction, which the first among them runs. A commit is two
// fsyncs, whatever it carries: a hundred waiting callers cost no more than one.
//
// It has no goroutine of its own. One of the waiting callers leads: it takes as many requests as fit into one
// transaction, runs it, tells the others the result, and hands over to the first of those that arrived meanwhile. So
// nothing has to be started or stopped, and a single commit costs two locks.
type committer struct {
	write turn // held while a transaction runs or the file is swapped

	mu      sync.Mutex
	waiting []*request // guarded by mu
	busy    bool       // guarded by mu; someone leads
}

// request is one caller's part of a transaction. It is in waiting from join until a leader takes it.
type request struct {
	// apply does the work. It may be called again after a rollback, and must then start afresh.
	apply func(*Tx) error
	size  int64         // bytes it writes, about
	later bool          // it waits for others, and does not lead; guarded by committer.mu
	done  chan struct{} // closed when err is set
	lead  chan struct{} // closed when this request is to run the next group
	err   error
}

// Update runs apply in a write transaction, alone or with those of other callers, and returns the result: nil means
// that it is on disk. size is the approximate number of bytes that apply writes. An error of apply undoes what it
// wrote, but not what others wrote; apply may be called a second time for that, so it must start afresh. When ctx ends
// first, either nothing has happened, or Update waits for the result.
func (db *DB) Update(ctx context.Context, size int64, apply func(*Tx) error) error {
	return db.UpdateLater(ctx, size, nil, apply)
}

// UpdateLater is Update for what need not be on disk soon: until now is closed it waits for someone else's
// transaction to share. nil: it does not wait.
func (db *DB) UpdateLater(ctx context.Context, size int64, now <-chan struct{}, apply func(*Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := db.failure(); err != nil {
		return err
	}
	r := &request{apply: apply, size: size, later: now != nil, done: make(chan struct{}), lead: make(chan struct{})}
	if !db.group.join(r) {
		if leads, err := db.await(ctx, r, now); !leads {
			return err
		}
	}
	db.lead(r)
	<-r.done
	return r.err
}

// await waits for the result of a request, or until its caller must lead: the others depend on the leader, whatever ctx
// says.
func (db *DB) await(ctx context.Context, r *request, now <-chan struct{}) (leads bool, err error) {
	ended, broken := ctx.Done(), (<-chan struct{})(db.broken)
	for {
		select {
		case <-r.done:
			return false, r.err
		case <-r.lead:
			return true, nil
		case <-now:
			if now = nil; db.group.hasten(r) {
				return true, nil
			}
		case <-ended:
			if ended = nil; db.group.leave(r) {
				return false, ctx.Err()
			}
		case <-broken:
			if broken = nil; db.group.leave(r) {
				return false, db.cause
			}
		}
	}
}

// turn is a mutex with a wait that can be ended.
type turn chan struct{}

// Lock waits for the turn.
func (t turn) Lock() { t <- struct{}{} }

// Unlock releases the turn.
func (t turn) Unlock() { <-t }

// lockUnless waits for the turn until end is closed; false: it did not get the turn.
func (t turn) lockUnless(end <-chan struct{}) bool {
	select {
	case t <- struct{}{}:
		return true
	case <-end:
		return false
	}
}

// join queues a request, and reports whether its caller must lead because nobody else does.
func (c *committer) join(r *request) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting = append(c.waiting, r)
	if r.later || c.busy {
		return false
	}
	c.busy = true
	return true
}

// hasten ends a request's wait for others. It reports whether its caller must lead.
func (c *committer) hasten(r *request) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	r.later = false
	if c.busy || !slices.Contains(c.waiting, r) { // the leader takes it, or has taken it
		return false
	}
	c.busy = true
	return true
}

// leave withdraws a request that no leader has taken yet. false: the caller must wait for the result, or has been made
// the next leader and must lead.
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

// take removes the requests of one transaction from the queue; own, the leader's, comes first. Requests keep their
// order: it takes none after the first one that does not fit.
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

// handOver makes the first waiting request lead that does not wait for others. If there is none, the next caller to
// join leads.
func (c *committer) handOver() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.waiting {
		if !r.later {
			close(r.lead)
			return
		}
	}
	c.busy = false
}

// errPanicked is for those that share a transaction with a request that panicked. Nothing of it was written.
var errPanicked = errors.New("commit state: a programming error ended the transaction")

// lead runs the group of r, and tells its callers the result. A panic of a request goes on, and the goroutine that
// serves its caller may recover from it: nobody is left waiting for it.
func (db *DB) lead(r *request) {
	if !db.group.write.lockUnless(db.broken) { // the holder may hang
		db.finish(db.group.take(r), db.cause)
		db.group.handOver()
		return
	}
	group := db.group.take(r)
	defer func() {
		if left := slices.DeleteFunc(group, (*request).finished); len(left) > 0 {
			db.stale = true // what is in memory is read again
			db.finish(left, errPanicked)
		}
		db.group.write.Unlock()
		db.group.handOver()
	}()
	err := db.runGroup(group)
	var own *applyError
	if len(group) > 1 && errors.As(err, &own) {
		// One of them cannot be done. It must not affect the others, now or when all of them come again.
		for i := range group {
			db.finish(group[i:i+1], db.runGroup(group[i:i+1]))
		}
	} else {
		db.finish(group, err)
	}
}

// finished reports whether a request has its result.
func (r *request) finished() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// finish tells the callers of a group the result.
func (db *DB) finish(group []*request, err error) {
	for _, r := range group {
		r.err = err
		close(r.done)
	}
}

// applyError is the failure of one request, not of the transaction: the requests of its group then run one by one, so
// that only its caller gets the error.
type applyError struct{ err error }

func (e *applyError) Error() string { return e.err.Error() }
func (e *applyError) Unwrap() error { return e.err }
