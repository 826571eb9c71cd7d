package tail

import (
	"context"
	"errors"
	"time"
)

// runWorker takes jobs until ctx is done.
func (t *Tailer) runWorker(ctx context.Context) {
	for {
		j, ok := t.next(ctx)
		if !ok {
			return
		}
		t.runJob(ctx, j)
	}
}

// runJob inspects the files of a job and delivers what it found in one call.
func (t *Tailer) runJob(ctx context.Context, j job) {
	a := t.arenas.Get().(*arena)
	defer func() {
		a.Reset()
		t.arenas.Put(a)
	}()
	inspections := make([]inspection, len(j.files))
	errs := make([]error, len(j.files))
	chunks := make([]Chunk, 0, len(j.files))
	at := make([]int, 0, len(j.files))
	left := t.cfg.TurnBytes
	t.prepare(j, inspections)
	for i := range inspections {
		l := &inspections[i]
		if l.wishes.reload.open() {
			t.reload(ctx, l)
		}
		l.budget = max(left, min(markGap, t.cfg.TurnBytes))
		if errs[i] = l.run(ctx, a); errs[i] == nil && l.chunk != nil {
			left -= int64(len(l.chunk.Lines))
			chunks, at = append(chunks, *l.chunk), append(at, i)
		}
	}
	results := make([]Result, len(inspections))
	var failed error
	if len(chunks) > 0 {
		var answers []Result
		answers, failed = t.sink.Deliver(ctx, chunks)
		for k, i := range at {
			if k < len(answers) && failed == nil {
				results[i] = answers[k]
			} else {
				results[i] = Result{Err: errNotDelivered}
			}
		}
		t.noteDelivery(ctx, failed)
	}
	for i := range inspections {
		if errors.Is(results[i].Err, ErrStale) {
			t.reload(ctx, &inspections[i])
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range inspections {
		t.finishInspection(&inspections[i], errs[i], results[i])
		t.rest(inspections[i].f)
	}
	t.release(j)
	t.notifySyncs()
}

// errNotDelivered is the result of every chunk of a Deliver that failed.
var errNotDelivered = errors.New("not delivered")

// noteDelivery counts consecutive failures, logs the first one and the end, and keeps the last one for Stats.
func (t *Tailer) noteDelivery(ctx context.Context, err error) {
	if err != nil && ctx.Err() != nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	n := &t.stats
	switch {
	case err != nil && n.failures == 0:
		t.log.Warn("cannot deliver; retrying", "err", err)
	case err == nil && n.failures > 0:
		t.log.Info("delivering again", "failures", n.failures)
	}
	if n.failures++; err == nil {
		n.failures = 0
	}
	n.notTaken = err
}

// prepare copies what the inspections need to know about their files.
func (t *Tailer) prepare(j job, inspections []inspection) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, f := range j.files {
		k := f.facts()
		inspections[i] = inspection{
			t: t, f: f, known: k.Tracked, expect: k.seen, deep: f.wishes.deep.open(), wishes: f.wishes, wakes: t.queue.wakes,
			alone: len(j.files) == 1, live: j.class != imported, unchangedSince: k.changed, pastHolds: f.pastHolds, long: k.long,
			before: t.table.before[f],
		}
		f.changedAgain, f.alone = false, false
	}
}

// reload loads the cursor that another part of the daemon changed.
func (t *Tailer) reload(ctx context.Context, l *inspection) {
	known, err := t.cursors.Reload(ctx, l.known.File.ID)
	if err != nil {
		if ctx.Err() == nil {
			t.log.Warn("cannot reload cursor; retrying", "path", l.known.File.Path, "err", err)
		}
		return
	}
	l.known.Cursor, l.known.Provisional = known.Cursor, known.Provisional
	l.pastHolds, l.known.Verified, l.long = false, Stat{}, nil
	t.mu.Lock()
	defer t.mu.Unlock()
	t.count(l.f, -1)
	k := l.f.facts()
	k.Cursor, k.Provisional, k.Verified, l.f.pastHolds = known.Cursor, known.Provisional, Stat{}, false
	l.f.wishes.reload.grant(l.wishes.reload)
	t.count(l.f, 1)
}

// finishInspection records what an inspection found, and schedules the next one. The caller holds mu.
func (t *Tailer) finishInspection(l *inspection, err error, r Result) {
	f := l.f
	t.done(f)
	t.count(f, -1)
	ready := t.record(l, err, r)
	t.count(f, 1)
	if f.folder == nil {
		if !f.stored && f.facts().Gone != 0 {
			t.stats.vanished--
			t.table.drop(f) // it was deleted before anything of it was stored
		}
		return
	}
	switch {
	case !ready || f.pathTaken:
	case l.deferred:
		f.alone = true
		t.push(f, max(l.f.class, backlog))
	case f.changedAgain || f.wishes.open() || f.facts().inspectAt == 0 && r.Err == nil && l.more:
		t.pushMore(f, l)
	default:
		t.scheduleNext(f, l)
	}
	t.completeSyncs(f, l, err, r)
}

// pushMore queues a file that has more to read, behind those that have not had a turn.
func (t *Tailer) pushMore(f *file, l *inspection) {
	c := imported
	switch {
	case f.changedAgain && t.now()-f.facts().changed < activeFor && f.pending() < t.cfg.TurnBytes:
		c = live
	case l.live:
		c = backlog
	}
	t.push(f, c)
}

// record stores the result of an inspection. It reports whether the file may be inspected again before it changes.
func (t *Tailer) record(l *inspection, err error, r Result) bool {
	f, k := l.f, l.f.facts()
	switch {
	case err != nil:
		t.deferUnreadable(f, l, err)
		return f.changedAgain
	case l.replaced:
		f.pathTaken = true
		t.hint(k.File.Path)
		return false
	case l.deferred:
		f.keepDeep(l)
		return true
	case r.Err != nil:
		return t.deferRefused(f, l, r)
	}
	delete(t.table.unread, f)
	f.fails, k.long, k.partial, f.pastHolds = 0, l.long, l.partial, l.verified
	f.partialTried = l.partialTried && l.chunk == nil
	switch k.File.Stat {
	case l.st:
	case Stat{}: // its first inspection: the change time may be that of a copy, the content older
		k.changed = max(k.changed, t.since(l.st, l.st.ModTime))
	default:
		k.changed = max(k.changed, t.since(l.st, max(l.st.ModTime, l.st.ChangeTime)))
	}
	k.File.Stat = l.st
	if l.verified && !l.more {
		k.Verified = l.st
	}
	if c := l.chunk; c != nil {
		k.Cursor, k.Provisional, k.Verified = c.Tracked.Cursor, c.Tracked.Provisional, c.Tracked.Verified
		f.stored = true
		if k.Cursor.Offset >= t.table.before[f] {
			t.table.forgetBefore(f)
		}
		if k.File.Path != c.File.Path || k.Gone != c.Tracked.Gone {
			t.table.unsaved[f] = struct{}{} // it was moved while it was delivered
		}
		t.countDelivered(l)
	}
	f.wishes.reread.grant(l.wishes.reread)
	f.wishes.deep.grant(l.wishes.deep)
	f.wishes.look.grant(l.wishes.look)
	if !f.changedAgain && k.seen.sameFile(l.st) {
		k.seen = l.st // newer than the last listing's, because none has seen a change since the inspection began
	}
	return true
}

// countDelivered counts and logs what was delivered.
func (t *Tailer) countDelivered(l *inspection) {
	if l.rewound && !l.wishes.reread.open() {
		t.stats.rewinds++
		t.log.Info("transcript rewound", "path", l.f.facts().File.Path, "from", l.known.Cursor.Offset, "to", l.base.Offset,
			"generation", l.base.Generation)
	}
}

// keepDeep asks again for what an inspection that came to nothing found necessary by itself.
func (f *file) keepDeep(l *inspection) {
	if l.deep && !f.wishes.deep.open() {
		f.wishes.deep.ask()
	}
}

// deferUnreadable schedules a retry for a file that could not be read.
func (t *Tailer) deferUnreadable(f *file, l *inspection, err error) {
	k := f.facts()
	f.keepDeep(l)
	k.long = nil
	if notExist(err) {
		f.fails = max(f.fails, 1) // if it exists after all, a listing will find it
		t.hint(k.File.Path)
		return
	}
	if f.fails++; f.fails == 0 {
		f.fails--
	}
	if f.fails == 3 && !errors.Is(err, context.Canceled) {
		t.table.unread[f] = err
		t.log.Warn("cannot read transcript; retrying", "path", k.File.Path, "err", err)
	}
	t.scheduleInspection(f, t.now()+retry(int32(f.fails)))
}

// deferRefused schedules a retry for a file whose chunk was not taken.
func (t *Tailer) deferRefused(f *file, l *inspection, r Result) bool {
	k := f.facts()
	f.keepDeep(l)
	k.long = l.long
	switch {
	case errors.Is(r.Err, ErrReread):
		f.wishes.reread.ask()
		return true
	case errors.Is(r.Err, ErrStale):
		k.Cursor, k.Provisional, f.pastHolds = l.known.Cursor, l.known.Provisional, false
		f.fails = min(f.fails+1, 100)
		t.scheduleInspection(f, t.now()+retry(int32(f.fails))/10)
	case errors.Is(r.Err, ErrLater) && r.After > 0:
		t.scheduleInspection(f, t.now()+r.After)
	case errors.Is(r.Err, ErrLater):
		f.changedAgain = f.changedAgain || l.wakes != t.queue.wakes // the answer may be out of date
		f.waiting = !f.changedAgain
		return f.changedAgain
	default:
		t.scheduleInspection(f, t.now()+retry(t.stats.failures))
	}
	return false
}

// scheduleNext schedules the next inspection and scrub of a file that was read to its end.
func (t *Tailer) scheduleNext(f *file, l *inspection) {
	now, k := t.now(), f.facts()
	if k.partial > 0 && k.Provisional.Length == 0 && !f.partialTried {
		t.scheduleInspection(f, max(now+time.Millisecond, k.changed+t.cfg.Quiet))
	}
	switch {
	case k.Verified == k.File.Stat:
		t.scheduleScrub(f, 0)
	case l.chunk == nil && l.known.File.Stat.Size == l.st.Size && l.known.File.Stat != l.st:
		t.scheduleScrub(f, now) // its stat changed, its size did not
	default:
		t.scheduleScrub(f, now+t.cfg.ScrubAfter)
	}
}
