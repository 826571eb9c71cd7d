package daemon

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/tail"
)

// errStopping is answered to whoever still waits when the daemon stops.
var errStopping = errors.New("the daemon is stopping")

// run folds what is wanted until ctx is done, then stores what is not. Questions come first, and every transcript gets
// one slice at a time, so that a large one holds nobody up.
func (v *deriver) run(ctx context.Context) error {
	v.mu.Lock()
	v.begun = true
	v.mu.Unlock()
	defer close(v.gone)
	stopped := make(chan struct{})
	go v.saver(stopped)
	defer func() {
		close(v.saves)
		<-stopped
		v.refuse()
	}()
	v.resume(ctx)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		if v.turn(ctx) {
			continue
		}
		next := v.rest()
		if next == 0 {
			continue
		}
		timer.Reset(next)
		select {
		case <-ctx.Done():
		case <-v.bell:
		case <-timer.C:
		}
	}
	v.last()
	return nil
}

// resume takes up what an earlier daemon had not understood yet.
func (v *deriver) resume(ctx context.Context) {
	ids, err := v.db.Behind(ctx)
	if err != nil {
		v.log.Warn("sessions that were not understood to their end are taken up when something happens in them", "err", err)
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, id := range ids {
		v.wanted[id] = struct{}{}
	}
}

// turn does one piece of work, and says whether there was any: a slice for a question, and one for a transcript that is
// written, so that neither waits for the other.
func (v *deriver) turn(ctx context.Context) bool {
	v.outcomes()
	a := v.nextAsk()
	if a != nil {
		v.serve(ctx, a)
	}
	if len(v.hot) >= mostBurst {
		v.save(false)
		return a != nil // else the saver rings, or what failed falls due
	}
	id, ok := v.nextWanted()
	history := false
	if !ok {
		id, ok = v.nextLater()
		history = true
	}
	if ok {
		v.follow(ctx, id, history)
	}
	v.save(false)
	return ok || a != nil
}

// follow goes one slice on with a transcript.
func (v *deriver) follow(ctx context.Context, id tail.FileID, history bool) {
	f, more, err := v.advance(ctx, id)
	if err != nil {
		more = v.failing(id, err)
	} else {
		delete(v.failed, id)
	}
	v.mu.Lock()
	switch {
	case more && history:
		v.later[id] = struct{}{}
	case more:
		v.wanted[id] = struct{}{}
	}
	v.active = false
	v.mu.Unlock()
	if f != nil && !more {
		f.passing = history
		v.bound(f)
	}
}

// nextWanted takes a transcript off the list of those that are written now.
func (v *deriver) nextWanted() (tail.FileID, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.nextOf(v.wanted)
}

// nextLater takes one off the list of those with a compaction that came with an import, once that is over.
func (v *deriver) nextLater() (tail.FileID, bool) {
	v.mu.Lock()
	none := len(v.later) == 0
	v.mu.Unlock()
	if none || v.importing() {
		return 0, false
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.nextOf(v.later)
}

// nextOf takes one off a list. The caller holds mu.
func (v *deriver) nextOf(list map[tail.FileID]struct{}) (tail.FileID, bool) {
	now := time.Now()
	for id := range list {
		if x, failed := v.failed[id]; failed && now.Before(x.after) {
			continue
		}
		delete(list, id)
		v.active = true
		return id, true
	}
	return 0, false
}

// failing decides what becomes of a transcript that could not be followed, and says whether it is tried again.
func (v *deriver) failing(id tail.FileID, err error) bool {
	if errors.Is(err, state.ErrUnknownFile) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, context.Canceled) {
		delete(v.failed, id) // when it comes back, its next line brings it up
		return false
	}
	x := v.failed[id]
	if x.times++; x.times >= giveUp {
		v.log.Warn("a transcript cannot be understood, leaving it until it changes", "err", err)
		delete(v.failed, id)
		return false
	}
	x.after = time.Now().Add(firstRetry << x.times)
	v.failed[id] = x
	return true
}

// rest puts away what is not needed, and says for how long there is nothing to do. 0: there is something.
func (v *deriver) rest() time.Duration {
	now := time.Now()
	next := time.Hour
	for _, f := range v.hot {
		switch {
		case f.saving, v.flight && !f.dirty.IsZero(): // the saver rings
		case !f.dirty.IsZero():
			next = min(next, max(time.Millisecond, f.due().Sub(now)))
		case now.Sub(f.used) >= quietAfter:
			delete(v.hot, f.id)
			if len(v.hot) == 0 {
				v.buf, v.packer, v.hot = nil, nil, map[tail.FileID]*following{}
				v.rested()
			}
		default:
			next = min(next, quietAfter-now.Sub(f.used))
		}
	}
	v.inMemory.Store(int64(len(v.hot)))
	v.mu.Lock()
	defer v.mu.Unlock()
	for id, x := range v.failed {
		if _, wanted := v.wanted[id]; wanted {
			next = min(next, max(time.Millisecond, x.after.Sub(now)))
		}
	}
	if len(v.later) > 0 {
		next = min(next, time.Second)
	}
	if len(v.asks)+len(v.saved) > 0 {
		return 0
	}
	return next
}

// bound keeps the memory small: of what is stored, that leaves it which was used the longest ago. latest stays, unless
// it is passing; nil: there is none.
func (v *deriver) bound(latest *following) {
	v.full = false
	if latest != nil && latest.passing && latest.kept() {
		delete(v.hot, latest.id)
	}
	for {
		size := 0
		var oldest *following
		for _, f := range v.hot {
			size += f.size
			if f != latest && f.kept() && (oldest == nil || f.used.Before(oldest.used)) {
				oldest = f
			}
		}
		if len(v.hot) <= mostHot && size <= hotBytes {
			return
		}
		if oldest == nil {
			v.full = len(v.hot) > 1 // they leave once they are stored
			return
		}
		delete(v.hot, oldest.id)
	}
}

// newest is what was used last; nil: nothing is in memory.
func (v *deriver) newest() (last *following) {
	for _, f := range v.hot {
		if last == nil || f.used.After(last.used) {
			last = f
		}
	}
	return last
}

// kept says whether the state has it as it is.
func (f *following) kept() bool { return f.dirty.IsZero() && !f.saving }
