package derive

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/tail"
)

// Run folds what is scheduled until ctx is done, then saves all unsaved projections. Queries come first, and
// transcripts take turns, one slice each, so that a large one does not delay the others.
func (d *Deriver) Run(ctx context.Context) error {
	d.queries.start()
	defer close(d.stopped)
	saved := make(chan struct{})
	go func() { defer close(saved); d.saver.run() }()
	defer func() {
		close(d.saver.in)
		<-saved
		d.queries.refuse(ErrStopping)
	}()
	d.scheduleLagging(ctx)
	d.schedule.begin()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		if d.nextWork(ctx) {
			continue
		}
		pause := d.idle(time.Now())
		if pause == 0 {
			continue
		}
		timer.Reset(pause)
		select {
		case <-ctx.Done():
		case <-d.bell:
		case results := <-d.saver.out:
			d.finishSaves(results)
		case <-timer.C:
		}
	}
	d.saveAll()
	return nil
}

// scheduleLagging schedules the transcripts that an earlier daemon has not folded to their end.
func (d *Deriver) scheduleLagging(ctx context.Context) {
	ids, err := d.projections.Sessions.Lagging(ctx)
	if err != nil {
		d.cfg.Log.Warn("cannot find the sessions to catch up with; each waits until something happens in it", "err", err)
		return
	}
	for _, id := range ids {
		d.schedule.add(id, false)
	}
}

// nextWork does one piece of work and reports whether there was any: a slice for a query and a slice of a scheduled
// transcript, so that neither waits for the other.
func (d *Deriver) nextWork(ctx context.Context) bool {
	select {
	case results := <-d.saver.out:
		d.finishSaves(results)
	default:
	}
	q := d.queries.next()
	if q != nil {
		d.answer(ctx, q)
	}
	if len(d.cache.projections) >= maxBurst {
		d.save(false)
		return q != nil // otherwise wait for the saver's report, or for a retry
	}
	id, ok := d.schedule.nextLive()
	backfill := false
	if !ok && d.schedule.hasBackfill() && !d.files.Stats().Importing {
		id, ok = d.schedule.nextBackfill()
		backfill = true
	}
	if ok {
		d.foldNext(ctx, id, backfill)
	}
	d.save(false)
	return ok || q != nil
}

// foldNext folds one slice of a scheduled transcript.
func (d *Deriver) foldNext(ctx context.Context, id tail.FileID, backfill bool) {
	p, more, err := d.advance(ctx, id)
	if err != nil {
		more = d.foldFailed(id, err)
	} else {
		d.schedule.succeed(id)
	}
	d.schedule.folded(id, backfill, more)
	if p != nil && !more {
		p.transient = backfill
		d.cache.evict(p)
	}
}

// foldFailed reports whether a transcript that could not be folded is tried again.
func (d *Deriver) foldFailed(id tail.FileID, err error) bool {
	if errors.Is(err, state.ErrUnknownFile) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, context.Canceled) {
		d.schedule.succeed(id) // if the file comes back, its next line schedules it
		return false
	}
	if d.schedule.fail(id) {
		return true
	}
	d.cfg.Log.Warn("cannot fold a transcript; it is left alone until it changes", "err", err)
	return false
}

// idle removes unused projections, and returns how long Run can wait; 0: there is work.
func (d *Deriver) idle(now time.Time) time.Duration {
	pause := time.Hour
	for _, p := range d.cache.projections {
		switch {
		case p.saving, d.saver.busy && !p.dirtySince.IsZero(): // the saver reports
		case !p.dirtySince.IsZero():
			pause = min(pause, max(time.Millisecond, p.saveAt().Sub(now)))
		case now.Sub(p.usedAt) >= cacheTime:
			d.cache.remove(p)
			if len(d.cache.projections) == 0 {
				d.buf, d.packer, d.cache.projections = nil, nil, map[tail.FileID]*liveProjection{}
				d.freed.Store(true)
			}
		default:
			pause = min(pause, cacheTime-now.Sub(p.usedAt))
		}
	}
	if d.queries.any() {
		return 0
	}
	return d.schedule.waiting(now, pause)
}
