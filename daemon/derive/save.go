package derive

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"time"

	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/state/projection"
	"github.com/ccship/ccship/tail"
)

const (
	// saveAfter is how long after its first change a projection without effects is saved: after a crash the lines since
	// then are folded again, which is cheap, and a session that is written saves far less often than it folds.
	saveAfter = 10 * time.Second
	retrySave = 2 * time.Second // after a failed save: the disk may be full
)

// save is a projection on its way to the disk.
type save struct {
	projection *liveProjection
	derivation projection.Derivation
	waiters    []chan<- error // each gets the result
}

// saveResult is how a save ended.
type saveResult struct {
	save
	err error
}

// saver writes projections to the state in its own goroutine: while the disk is slow, folding and queries go on. At
// most one list of saves is in flight.
type saver struct {
	projections *projection.DB
	in          chan []save       // Run closes it
	out         chan []saveResult // one list for each list of in
	busy        bool              // a list is in flight; owned by Run's goroutine
}

func newSaver(projections *projection.DB) saver {
	return saver{projections: projections, in: make(chan []save, 1), out: make(chan []saveResult, 1)}
}

// run saves until in is closed.
func (s *saver) run() {
	for list := range s.in {
		all := make([]projection.Derivation, len(list))
		for i := range list {
			all[i] = list[i].derivation
		}
		errs, err := s.projections.Commit(context.Background(), all)
		if err != nil {
			errs = s.saveEach(all, err)
		}
		results := make([]saveResult, len(list))
		for i := range list {
			results[i] = saveResult{save: list[i], err: errs[i]}
		}
		s.out <- results
	}
}

// saveEach saves one by one what could not be saved together: one that cannot be saved must not block the others.
func (s *saver) saveEach(all []projection.Derivation, err error) []error {
	errs := make([]error, len(all))
	for i := range all {
		if errs[i] = err; len(all) == 1 {
			break
		}
		one, err := s.projections.Commit(context.Background(), all[i:i+1])
		if errs[i] = err; err == nil {
			errs[i] = one[0]
		}
	}
	return errs
}

// changed notes that a projection differs from what is saved.
func (d *Deriver) changed(p *liveProjection) {
	if p.dirtySince.IsZero() {
		p.dirtySince = time.Now()
	}
	if hasEffects(&p.effects) {
		p.saveNow = true
	}
	d.setUnsaved(p, p.saveNow)
}

func hasEffects(d *projection.Derivation) bool {
	return len(d.Checkpoints)+len(d.Notices)+len(d.Shown)+len(d.Documents)+len(d.LinkRequests)+len(d.Batches) > 0
}

// setUnsaved counts the projections that must be saved before the deriver has caught up.
func (d *Deriver) setUnsaved(p *liveProjection, unsaved bool) {
	if p.unsaved == unsaved {
		return
	}
	p.unsaved = unsaved
	if unsaved {
		d.schedule.addUnsaved(1)
	} else {
		d.schedule.addUnsaved(-1)
	}
}

// saveAt returns when a changed projection is to be saved.
func (p *liveProjection) saveAt() time.Time {
	at := p.dirtySince.Add(saveAfter)
	if p.saveNow || !p.retryAt.IsZero() {
		at = p.dirtySince
	}
	if at.Before(p.retryAt) {
		at = p.retryAt
	}
	return at
}

// save hands the projections that are due to the saver, if it is free, and with them those that soon will be, because
// one transaction costs the same for one or many; with all, or when the cache is full, every changed one.
func (d *Deriver) save(all bool) {
	if d.saver.busy {
		return
	}
	all = all || d.cache.full
	var list []save
	now := time.Now()
	if !all && !d.anyDue(now) {
		return
	}
	for _, p := range d.cache.projections {
		if !p.unsavedAt(now) || !all && now.Add(saveAfter/2).Before(p.saveAt()) {
			continue
		}
		list = append(list, save{projection: p, derivation: p.takeEffects(), waiters: p.saveWaiters})
		p.saveWaiters, p.saving = nil, true
	}
	if len(list) == 0 {
		return
	}
	d.saver.busy = true
	d.saver.in <- list
}

// unsavedAt reports whether a projection differs from what is saved, and may be saved now.
func (p *liveProjection) unsavedAt(now time.Time) bool {
	return !p.dirtySince.IsZero() && !p.saving && !now.Before(p.retryAt)
}

func (d *Deriver) anyDue(now time.Time) bool {
	for _, p := range d.cache.projections {
		if p.unsavedAt(now) && !now.Before(p.saveAt()) {
			return true
		}
	}
	return false
}

// takeEffects returns the effects to save, and begins a new set.
func (p *liveProjection) takeEffects() projection.Derivation {
	d := p.effects
	d.File, d.Prev, d.Projection = p.file, p.savedPlace, p.encode()
	p.size = len(d.Projection.Fold) + len(d.Projection.Log) + len(d.Projection.Marks)
	p.effects, p.saveNow, p.dirtySince = projection.Derivation{}, false, time.Time{}
	return d
}

// finishSaves processes the results of the list in flight.
func (d *Deriver) finishSaves(results []saveResult) {
	d.saver.busy = false
	for i := range results {
		d.finishSave(&results[i])
	}
	d.cache.evict(d.cache.newest())
}

func (d *Deriver) finishSave(r *saveResult) {
	p := r.projection
	p.saving = false
	switch {
	case !d.cache.holds(p): // discarded meanwhile: what is not saved is folded again
		if r.err == nil {
			d.notifySaved(&r.derivation)
		}
	case r.err == nil:
		p.savedPlace = r.derivation.Projection.Place
		p.retryAt = time.Time{}
		d.setUnsaved(p, p.saveNow)
		d.notifySaved(&r.derivation)
	case errors.Is(r.err, tail.ErrStale), errors.Is(r.err, state.ErrUnknownFile):
		d.discard(p, r.err) // the stored projection was removed: fold the transcript again
	default:
		d.putBack(p, r)
	}
	for _, w := range r.waiters {
		w <- r.err
	}
	if d.cache.holds(p) && p.saved() && p.transient {
		d.cache.remove(p)
	}
}

// notifySaved tells the observers about durable effects.
func (d *Deriver) notifySaved(effects *projection.Derivation) {
	for _, o := range d.observers {
		if s, ok := o.(SaveObserver); ok {
			s.Saved(effects)
		}
	}
}

// putBack keeps the effects that could not be saved, for the next try.
func (d *Deriver) putBack(p *liveProjection, r *saveResult) {
	if p.retryAt.IsZero() {
		d.cfg.Log.Warn("cannot save session projections; retrying", "err", r.err)
	}
	p.effects.Checkpoints = slices.Concat(r.derivation.Checkpoints, p.effects.Checkpoints)
	p.effects.Notices = slices.Concat(r.derivation.Notices, p.effects.Notices)
	p.effects.Shown = slices.Concat(r.derivation.Shown, p.effects.Shown)
	p.effects.Documents = slices.Concat(r.derivation.Documents, p.effects.Documents)
	p.effects.LinkRequests = slices.Concat(r.derivation.LinkRequests, p.effects.LinkRequests)
	p.effects.Batches = slices.Concat(r.derivation.Batches, p.effects.Batches)
	p.retryAt = time.Now().Add(retrySave)
	d.changed(p)
}

// saveAll saves every projection, because the daemon stops.
func (d *Deriver) saveAll() {
	for _, p := range d.cache.projections {
		p.retryAt = time.Time{}
	}
	d.awaitSaves()
	d.save(true)
	d.awaitSaves()
}

// awaitSaves waits for the list in flight, if there is one.
func (d *Deriver) awaitSaves() {
	if d.saver.busy {
		d.finishSaves(<-d.saver.out)
	}
}

// A hook that has received a text may end before it prints it: its time is up, or Claude Code or the user kills it. So
// it confirms the text once it has printed it. Until then the text is on lease: no other hook gets it.

const (
	// leaseTime is how long a lease lasts. A hook takes a second.
	leaseTime = 3 * time.Second
	// lateTime is how long after its end a confirmation still counts: the text was printed.
	lateTime = time.Minute
)

// lease is a text that a hook has received and not confirmed yet.
type lease struct {
	session string
	list    []projection.Notice
	init    bool        // the introduction is in it
	ended   bool        // others may have got the text
	timer   *time.Timer // ends the lease, then removes it
}

// lend leases to a hook the notices of a session that are due and wanted, and its introduction if init says so and no
// other hook has it. It returns an empty receipt when there is nothing.
func (n *notices) lend(session string, init bool,
	wanted func(*projection.Notice) bool) (l *lease, receipt string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	l = &lease{session: session}
	for _, p := range n.held(session) {
		if wanted(&p) {
			l.list = append(l.list, p)
			n.listenerOf(session).of(&p).leased = true
		}
	}
	if init && !n.listenerOf(session).introduced {
		l.init, n.listenerOf(session).introduced = true, true
	}
	if len(l.list) > 0 || l.init {
		receipt = rand.Text()
		n.leases[receipt] = l
		l.timer = time.AfterFunc(n.leaseTime, func() { n.expire(receipt) })
	}
	return l, receipt
}

// confirm ends a lease: its text was printed. It returns the number of notices in it; false if there is no such lease.
func (n *notices) confirm(ctx context.Context, receipt string) (notices int, known bool) {
	n.mu.Lock()
	l := n.leases[receipt]
	if l == nil {
		n.mu.Unlock()
		return 0, false
	}
	l.timer.Stop()
	n.end(l)
	delete(n.leases, receipt)
	n.print(l.session, l.list)
	n.mu.Unlock()
	if l.init {
		n.introductions.markShown(ctx, l.session)
	}
	return len(l.list), true
}

// expire ends a lease whose text may not have been printed: the next hook gets it.
func (n *notices) expire(receipt string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	l := n.leases[receipt]
	switch {
	case l == nil:
	case l.ended:
		delete(n.leases, receipt)
	default:
		l.timer.Stop()
		n.end(l)
		l.timer = time.AfterFunc(lateTime, func() { n.expire(receipt) })
	}
}

// end makes what a lease holds free. The caller holds mu.
func (n *notices) end(l *lease) {
	if l.ended {
		return
	}
	l.ended = true
	of := n.sessions[l.session]
	if of == nil {
		return
	}
	for i := range l.list {
		if h := of.handed[l.list[i].Seq]; h != nil {
			h.leased = false
		}
	}
	if l.init {
		of.introduced = false
	}
}
