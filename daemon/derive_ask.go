package daemon

import (
	"context"
	"errors"
	"io/fs"
	"sync/atomic"
	"time"

	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/tail"
)

// ask is a question about one transcript: it is answered once all that was read of it is understood.
type ask struct {
	ctx  context.Context
	id   tail.FileID
	fn   func(*pass) error // nil: leave is what is asked for
	done chan error        // one answer; has room for it

	taken atomic.Bool   // by whoever calls fn, or by whoever waits no more: then fn is not called
	ran   chan struct{} // closed behind fn
}

// visit calls fn with a transcript as it stands, understood up to the last line that was read. fn runs where passes do:
// it must not wait, and it does not run any more when visit has returned. When it adds to the step or calls keep, visit returns once that is durable. The error is fn's, or
// says why the transcript cannot be read; it wraps fs.ErrNotExist when the file is gone and nothing is kept of it.
func (v *deriver) visit(ctx context.Context, id tail.FileID, fn func(*pass) error) error {
	a := &ask{ctx: ctx, id: id, fn: fn, done: make(chan error, 1), ran: make(chan struct{})}
	v.mu.Lock()
	v.asks = append(v.asks, a)
	v.mu.Unlock()
	v.ring()
	select {
	case err := <-a.done:
		return err
	case <-ctx.Done():
		if !a.taken.CompareAndSwap(false, true) {
			<-a.ran
		}
		return ctx.Err()
	case <-v.gone:
		return errStopping
	}
}

func (v *deriver) nextAsk() *ask {
	v.mu.Lock()
	defer v.mu.Unlock()
	for len(v.asks) > 0 {
		a := v.asks[0]
		v.asks[0] = nil
		if v.asks = v.asks[1:]; len(v.asks) == 0 {
			v.asks = nil
		}
		if a.ctx.Err() == nil {
			return a
		}
	}
	return nil
}

// serve answers, or goes one slice on towards the answer.
func (v *deriver) serve(ctx context.Context, a *ask) {
	if a.fn == nil {
		v.leave(a)
		return
	}
	f, more, err := v.advance(ctx, a.id)
	if errors.Is(err, fs.ErrNotExist) {
		f, err = v.remembered(ctx, a.id, err)
		more = false
	}
	if err != nil {
		a.done <- err
		return
	}
	if more {
		v.again(a)
		return
	}
	t, facts, known, err := v.db.File(ctx, a.id)
	if err == nil && !known {
		err = state.ErrUnknownFile
	}
	if err != nil {
		a.done <- err
		return
	}
	if !a.taken.CompareAndSwap(false, true) {
		return
	}
	f.used, f.passing = time.Now(), false
	p := v.pass(f, t, facts)
	for _, o := range v.observers {
		o.begin(p)
	}
	err = a.fn(p)
	close(a.ran)
	if err == nil && (effects(&f.step) || f.urgent) {
		v.changed(f)
		f.waiters = append(f.waiters, a.done)
		return
	}
	a.done <- err
	v.bound(f)
}

// again puts a question behind the others.
func (v *deriver) again(a *ask) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.asks = append(v.asks, a)
}

// remembered is a transcript whose file is gone, as it was understood last; else gone.
func (v *deriver) remembered(ctx context.Context, id tail.FileID, gone error) (*following, error) {
	t, facts, known, err := v.db.File(ctx, id)
	if err != nil {
		return nil, err
	}
	if !known {
		return nil, gone
	}
	f, err := v.open(ctx, &t, &facts)
	if err != nil {
		return nil, err
	}
	if f.place.Offset == 0 {
		return nil, gone
	}
	return f, nil
}

// forget removes all that is understood of some transcripts, in memory and in the state. Nothing more comes of them
// until lines of them are delivered again.
func (v *deriver) forget(ctx context.Context, ids []tail.FileID) error {
	for _, id := range ids {
		a := &ask{ctx: context.WithoutCancel(ctx), id: id, done: make(chan error, 1)}
		v.mu.Lock()
		begun := v.begun
		if begun {
			v.asks = append(v.asks, a)
		}
		delete(v.wanted, id)
		delete(v.later, id)
		v.mu.Unlock()
		if !begun {
			continue
		}
		v.ring()
		select {
		case <-a.done:
		case <-v.gone: // nobody folds any more
		}
	}
	return v.db.DropDerived(ctx, ids)
}

// leave takes a transcript out of the memory, once nothing of it is on its way to the disk.
func (v *deriver) leave(a *ask) {
	f := v.hot[a.id]
	if f != nil && f.saving {
		v.again(a)
		v.outcomesOrWait()
		return
	}
	if f != nil {
		v.forsake(f, state.ErrUnknownFile)
	}
	a.done <- nil
}

// outcomesOrWait waits for the disk: there is nothing else to do for a question.
func (v *deriver) outcomesOrWait() {
	v.mu.Lock()
	none := len(v.saved) == 0
	v.mu.Unlock()
	if none {
		<-v.bell
	}
}

// refuse answers all that was not answered, for the daemon stops.
func (v *deriver) refuse() {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, a := range v.asks {
		a.done <- errStopping
	}
	v.asks = nil
}
