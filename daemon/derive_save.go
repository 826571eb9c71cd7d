package daemon

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/tail"
)

// A save is what one transcript's folding brought, on its way to the disk. The disk may be slow: the saver waits for
// it, while folding and answers go on.

// save is one derivation on its way, and who waits for it.
type save struct {
	f       *following
	d       state.Derivation
	waiters []chan<- error
}

// outcome is how a save ended.
type outcome struct {
	save
	err error
}

// retrySave is how long a save that failed is put off: the disk may be full.
const retrySave = 2 * time.Second

// changed notes that a transcript is not stored as it is.
func (v *deriver) changed(f *following) {
	if f.dirty.IsZero() {
		f.dirty = time.Now()
	}
	if effects(&f.step) {
		f.urgent = true
	}
	v.owing(f, f.urgent)
}

func effects(d *state.Derivation) bool {
	return len(d.Checkpoints)+len(d.Pending)+len(d.Documents)+len(d.Asks)+len(d.Batches) > 0
}

// owing counts the transcripts with effects that are not stored.
func (v *deriver) owing(f *following, owes bool) {
	if f.owing == owes {
		return
	}
	f.owing = owes
	v.mu.Lock()
	defer v.mu.Unlock()
	if owes {
		v.owed++
	} else {
		v.owed--
	}
}

// due is when a transcript is to be stored.
func (f *following) due() time.Time {
	at := f.dirty.Add(saveEvery)
	if f.urgent {
		at = f.dirty
	}
	if at.Before(f.after) {
		at = f.after
	}
	return at
}

// save hands over what is due, or with all what there is, if the saver is free. When the memory is full everything
// goes at once, for one transaction costs as much as another.
func (v *deriver) save(all bool) {
	if v.flight {
		return
	}
	all = all || v.full
	var list []save
	now := time.Now()
	for _, f := range v.hot {
		if f.dirty.IsZero() || f.saving || now.Before(f.after) || !all && now.Before(f.due()) {
			continue
		}
		list = append(list, save{f: f, d: f.take(), waiters: f.waiters})
		f.waiters = nil
	}
	if len(list) == 0 {
		return
	}
	for i := range list {
		list[i].f.saving = true
	}
	v.flight = true
	v.saves <- list
}

// take makes the step that is to be stored, and begins another.
func (f *following) take() state.Derivation {
	d := f.step
	log, _ := f.log.MarshalBinary() // these never fail
	marks, _ := f.marks.MarshalBinary()
	d.File, d.Prev = f.id, f.stored
	d.Understood = &state.Understood{Place: f.place, Cleared: f.cleared, Had: f.had, Fold: f.fold(), Log: log, Marks: marks}
	f.size = len(d.Understood.Fold) + len(log) + len(marks)
	f.step, f.urgent, f.dirty = state.Derivation{}, false, time.Time{}
	return d
}

// saver stores until saves is closed.
func (v *deriver) saver(stopped chan<- struct{}) {
	defer close(stopped)
	for list := range v.saves {
		all := make([]state.Derivation, len(list))
		for i := range list {
			all[i] = list[i].d
		}
		errs, err := v.db.Derive(context.Background(), all)
		if err != nil {
			errs = v.apart(all, err)
		}
		v.mu.Lock()
		for i := range list {
			v.saved = append(v.saved, outcome{save: list[i], err: errs[i]})
		}
		v.mu.Unlock()
		v.ring()
	}
}

// apart stores one by one what could not be stored together: one that never can must not take the others along.
func (v *deriver) apart(all []state.Derivation, why error) []error {
	errs := make([]error, len(all))
	for i := range all {
		if errs[i] = why; len(all) == 1 {
			break
		}
		one, err := v.db.Derive(context.Background(), all[i:i+1])
		if errs[i] = err; err == nil {
			errs[i] = one[0]
		}
	}
	return errs
}

// outcomes takes in how saves ended.
func (v *deriver) outcomes() {
	v.mu.Lock()
	list := v.saved
	v.saved = nil
	v.mu.Unlock()
	if len(list) > 0 {
		v.flight = false
	}
	for i := range list {
		v.outcome(&list[i])
	}
	if len(list) > 0 {
		v.bound(v.newest())
	}
}

func (v *deriver) outcome(o *outcome) {
	f := o.f
	f.saving = false
	switch {
	case v.hot[f.id] != f: // it was given up meanwhile: what is not stored comes again
		if o.err == nil {
			v.stored(&o.d)
		}
	case o.err == nil:
		f.stored = o.d.Understood.Place
		f.after = time.Time{}
		v.owing(f, f.urgent)
		v.stored(&o.d)
	case errors.Is(o.err, tail.ErrStale), errors.Is(o.err, state.ErrUnknownFile):
		v.forsake(f, o.err) // somebody dropped what was stored: it is folded anew
	default:
		v.putBack(f, o)
		return
	}
	for _, w := range o.waiters {
		w <- o.err
	}
	if v.hot[f.id] == f && f.dirty.IsZero() && f.passing {
		delete(v.hot, f.id)
	}
}

// putBack keeps what could not be stored, to try it again.
func (v *deriver) putBack(f *following, o *outcome) {
	if f.after.IsZero() {
		v.log.Warn("cannot store what sessions mean, trying again", "err", o.err)
	}
	f.step.Checkpoints = slices.Concat(o.d.Checkpoints, f.step.Checkpoints)
	f.step.Pending = slices.Concat(o.d.Pending, f.step.Pending)
	f.step.Documents = slices.Concat(o.d.Documents, f.step.Documents)
	f.step.Asks = slices.Concat(o.d.Asks, f.step.Asks)
	f.step.Batches = slices.Concat(o.d.Batches, f.step.Batches)
	f.after = time.Now().Add(retrySave)
	v.changed(f)
	for _, w := range o.waiters {
		w <- o.err
	}
}

// last stores everything, for the daemon stops.
func (v *deriver) last() {
	for _, f := range v.hot {
		f.after = time.Time{}
	}
	for range 2 { // what was on its way at first, and what came since
		v.drain()
		v.save(true)
	}
	v.drain()
}

// drain waits until nothing is on its way.
func (v *deriver) drain() {
	for v.outcomes(); v.flight; v.outcomes() {
		<-v.bell
	}
}
