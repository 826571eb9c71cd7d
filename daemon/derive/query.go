package derive

import (
	"context"
	"errors"
	"io/fs"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/tail"
)

// query is a question about one transcript. It is answered once every committed line of it is folded.
type query struct {
	ctx  context.Context
	file tail.FileID
	look func(*FoldStep) error // nil: drop the projection from memory
	done chan error            // gets one answer; has space for it

	taken  atomic.Bool   // by Run, which calls look, or by the caller, who has given up
	looked chan struct{} // closed when look has returned
}

// queryQueue holds the queries that are not answered. It is safe for concurrent use.
type queryQueue struct {
	mu      sync.Mutex
	list    []*query // guarded by mu
	started bool     // Run was called; guarded by mu
}

func (x *queryQueue) start() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.started = true
}

func (x *queryQueue) add(q *query) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.list = append(x.list, q)
}

// addIfStarted adds a query unless Run has not been called yet.
func (x *queryQueue) addIfStarted(q *query) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.started {
		x.list = append(x.list, q)
	}
	return x.started
}

// next removes and returns the oldest query whose caller still waits; nil: there is none.
func (x *queryQueue) next() *query {
	x.mu.Lock()
	defer x.mu.Unlock()
	for len(x.list) > 0 {
		q := x.list[0]
		x.list[0] = nil
		if x.list = x.list[1:]; len(x.list) == 0 {
			x.list = nil
		}
		if q.ctx.Err() == nil {
			return q
		}
	}
	return nil
}

func (x *queryQueue) any() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.list) > 0
}

// refuse answers every query with an error.
func (x *queryQueue) refuse(err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, q := range x.list {
		q.done <- err
	}
	x.list = nil
}

// Query calls look with a transcript as it is now, folded to the last committed line. look runs in Run's goroutine: it
// must not block, and it has returned when Query returns. If look adds effects or calls Save, Query returns once they
// are durable. The error is look's, or says why the transcript cannot be read. It wraps fs.ErrNotExist if the file is
// gone and nothing of it was kept, and state.ErrUnknownFile if it was forgotten or is excluded.
func (d *Deriver) Query(ctx context.Context, file tail.FileID, look func(*FoldStep) error) error {
	q := &query{ctx: ctx, file: file, look: look, done: make(chan error, 1), looked: make(chan struct{})}
	d.queries.add(q)
	d.bell.Ring()
	select {
	case err := <-q.done:
		return err
	case <-ctx.Done():
		if !q.taken.CompareAndSwap(false, true) {
			<-q.looked
		}
		return ctx.Err()
	case <-d.stopped:
		return ErrStopping
	}
}

// answer answers a query, or folds one more slice for it.
func (d *Deriver) answer(ctx context.Context, q *query) {
	if q.look == nil {
		d.dropFromMemory(q)
		return
	}
	p, more, err := d.advance(ctx, q.file)
	if errors.Is(err, fs.ErrNotExist) {
		p, err = d.openGone(ctx, q.file, err)
		more = false
	}
	if err != nil {
		q.done <- err
		return
	}
	if more {
		d.queries.add(q) // behind the others
		return
	}
	t, facts, known, err := d.projections.State.Files.File(ctx, q.file)
	if err == nil && !known {
		err = state.ErrUnknownFile
	}
	if err != nil {
		q.done <- err
		return
	}
	if !q.taken.CompareAndSwap(false, true) {
		return
	}
	p.usedAt, p.transient = time.Now(), false
	s := d.newStep(p, t, facts)
	for _, o := range d.observers {
		o.Begin(s)
	}
	err = q.look(s)
	close(q.looked)
	if err == nil && (hasEffects(&p.effects) || p.saveNow) {
		d.changed(p)
		p.saveWaiters = append(p.saveWaiters, q.done)
		return
	}
	q.done <- err
	d.cache.evict(p)
}

// openGone returns the stored projection of a transcript whose file is gone. If nothing is stored it returns the error
// gone.
func (d *Deriver) openGone(ctx context.Context, id tail.FileID, gone error) (*liveProjection, error) {
	t, facts, known, err := d.projections.State.Files.File(ctx, id)
	if err != nil {
		return nil, err
	}
	if !known {
		return nil, gone
	}
	p, err := d.open(ctx, &t, &facts)
	if err != nil {
		return nil, err
	}
	if p.place.Offset == 0 {
		return nil, gone
	}
	return p, nil
}

// Forget removes the projections of some transcripts from memory and from the state. They are not folded again until
// lines of them are delivered again.
func (d *Deriver) Forget(ctx context.Context, ids []tail.FileID) error {
	for _, id := range ids {
		q := &query{ctx: context.WithoutCancel(ctx), file: id, done: make(chan error, 1)}
		d.schedule.remove(id)
		if !d.queries.addIfStarted(q) {
			continue
		}
		d.bell.Ring()
		select {
		case err := <-q.done:
			if err != nil {
				return err
			}
		case <-d.stopped: // Run has ended
		}
	}
	return d.projections.Drop(ctx, ids)
}

// dropFromMemory removes a projection once no save of it is in flight.
func (d *Deriver) dropFromMemory(q *query) {
	if p := d.cache.projections[q.file]; p != nil && p.saving {
		d.awaitSaves()
	}
	if p := d.cache.projections[q.file]; p != nil {
		d.discard(p, state.ErrUnknownFile)
	}
	q.done <- nil
}
