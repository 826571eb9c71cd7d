package tail

import (
	"context"
	"errors"
	"time"
)

// work is one worker: it takes jobs until ctx is done.
func (t *Tailer) work(ctx context.Context) {
	for {
		j, ok := t.next(ctx)
		if !ok {
			return
		}
		t.round(ctx, j)
	}
}

// round looks at the files of a job and delivers what it found in one call.
func (t *Tailer) round(ctx context.Context, j job) {
	a := t.arenas.Get().(*arena)
	defer func() {
		a.reset()
		t.arenas.Put(a)
	}()
	looks := make([]look, len(j.files))
	errs := make([]error, len(j.files))
	chunks := make([]Chunk, 0, len(j.files))
	at := make([]int, 0, len(j.files))
	left := t.cfg.TurnBytes
	t.begin(j, looks)
	for i := range looks {
		l := &looks[i]
		l.turn = max(left, min(markGap, t.cfg.TurnBytes))
		if errs[i] = l.run(ctx, a); errs[i] == nil && l.chunk != nil {
			left -= int64(len(l.chunk.Lines))
			chunks, at = append(chunks, *l.chunk), append(at, i)
		}
	}
	results := make([]Result, len(looks))
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
	for i := range looks {
		if errors.Is(results[i].Err, ErrStale) {
			t.reload(ctx, &looks[i])
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range looks {
		t.finish(&looks[i], errs[i], results[i])
	}
	t.release(j)
	t.ringSyncs()
}

// errNotDelivered is the result of every chunk of a Deliver that failed as a whole.
var errNotDelivered = errors.New("not delivered")

// noteDelivery counts failures in a row, and says one line when they begin and one when they end.
func (t *Tailer) noteDelivery(ctx context.Context, err error) {
	switch {
	case err == nil:
		if n := t.setbacks.Swap(0); n > 0 {
			t.log.Info("delivering again", "failures", n)
		}
	case ctx.Err() == nil && t.setbacks.Add(1) == 1:
		t.log.Warn("cannot deliver, trying again", "err", err)
	}
}

// begin copies what the looks need to know of their files.
func (t *Tailer) begin(j job, looks []look) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, f := range j.files {
		looks[i] = look{
			t: t, f: f, was: f.Tracked, expect: f.seen, deep: f.deep, reread: f.reread,
			solo: len(j.files) == 1, live: j.class != imported, still: f.changed, sure: f.sure, long: f.long,
			before: t.table.before[f],
		}
		f.deep, f.again, f.solo = false, false, false
	}
}

// reload takes over the cursor that somebody else moved.
func (t *Tailer) reload(ctx context.Context, l *look) {
	known, err := t.cursors.Reload(ctx, l.was.File.ID)
	if err != nil {
		if ctx.Err() == nil {
			t.log.Warn("cannot reload cursor, trying again", "path", l.was.File.Path, "err", err)
		}
		return
	}
	l.was.Cursor, l.was.Provisional = known.Cursor, known.Provisional
}

// finish takes a file out of work, remembers what the look found, and decides what is next. The caller holds mu.
func (t *Tailer) finish(l *look, err error, r Result) {
	f := l.f
	t.done(f)
	t.count(f, -1)
	ready := t.remembered(l, err, r)
	t.count(f, 1)
	if f.folder == nil {
		if !f.stored && f.Gone != 0 {
			t.stats.vanished--
			t.table.drop(f) // it vanished before anything of it was taken
		}
		return
	}
	switch {
	case !ready || f.held:
	case l.heavy:
		f.solo = true
		t.push(f, max(l.f.class, backlog))
	case f.again || f.reread || f.deep || f.lookAt == 0 && r.Err == nil && l.more:
		t.pushMore(f, l)
	default:
		t.plan(f, l)
	}
	t.satisfy(f, l, err, r)
}

// pushMore queues a file again that has more to read: behind those that have not had a turn.
func (t *Tailer) pushMore(f *file, l *look) {
	c := imported
	switch {
	case f.again && t.now()-f.changed < activeFor && f.pending() < t.cfg.TurnBytes:
		c = live
	case l.live:
		c = backlog
	}
	t.push(f, c)
}

// remembered stores what a look brought. It answers whether the file may be looked at again before it changes.
func (t *Tailer) remembered(l *look, err error, r Result) bool {
	f := l.f
	switch {
	case err != nil:
		t.unread(f, l, err)
		return f.again
	case l.swapped:
		f.held = true
		t.hint(f.File.Path)
		return false
	case l.heavy:
		f.deep = l.deep
		return true
	case r.Err != nil:
		return t.refused(f, l, r)
	}
	delete(t.table.unread, f)
	f.fails, f.long, f.partial, f.sure = 0, l.long, l.partial, l.whole
	f.tried = l.tried && l.chunk == nil
	if f.File.Stat != l.st {
		f.changed = max(f.changed, t.since(max(l.st.ModTime, l.st.ChangeTime)))
	}
	f.File.Stat = l.st
	if l.whole && !l.more {
		f.Verified = l.st
	}
	if c := l.chunk; c != nil {
		f.Cursor, f.Provisional, f.Verified = c.Tracked.Cursor, c.Tracked.Provisional, c.Tracked.Verified
		f.stored = true
		if f.Cursor.Offset >= t.table.before[f] {
			t.table.forgetBefore(f)
		}
		if f.File.Path != c.File.Path || f.Gone != c.Tracked.Gone {
			t.table.unsaved[f] = struct{}{} // it moved while it was delivered
		}
		t.tally(l)
	}
	if l.reread {
		f.reread = false
	}
	if !f.again && f.seen.sameFile(l.st) {
		f.seen = l.st // newer than the last listing's, for none has seen a change since the look began
	}
	return true
}

// tally counts what was delivered.
func (t *Tailer) tally(l *look) {
	if l.rewound && !l.reread {
		t.stats.rewinds++
		t.log.Info("transcript rewound", "path", l.f.File.Path, "from", l.was.Cursor.Offset, "to", l.base.Offset,
			"generation", l.base.Generation)
	}
	if l.chunk.Oversize != nil {
		t.stats.oversize++
	}
}

// unread puts off a file that could not be read.
func (t *Tailer) unread(f *file, l *look, err error) {
	f.long = nil
	f.deep = f.deep || l.deep
	if notExist(err) {
		f.fails = max(f.fails, 1) // should it be there after all, it is looked at when that is seen
		t.hint(f.File.Path)
		return
	}
	if f.fails++; f.fails == 0 {
		f.fails--
	}
	if f.fails == 3 && !errors.Is(err, context.Canceled) {
		t.table.unread[f] = err
		t.log.Warn("cannot read transcript, trying again", "path", f.File.Path, "err", err)
	}
	t.setLook(f, t.now()+retry(int32(f.fails)))
}

// refused puts off a file whose chunk was not taken.
func (t *Tailer) refused(f *file, l *look, r Result) bool {
	f.deep, f.long = f.deep || l.deep, l.long
	switch {
	case errors.Is(r.Err, ErrReread):
		f.reread = true
		return true
	case errors.Is(r.Err, ErrStale):
		f.Cursor, f.Provisional, f.sure = l.was.Cursor, l.was.Provisional, false
		f.fails = min(f.fails+1, 100)
		t.setLook(f, t.now()+retry(int32(f.fails))/10)
	case errors.Is(r.Err, ErrLater) && r.After > 0:
		t.setLook(f, t.now()+r.After)
	case errors.Is(r.Err, ErrLater):
		f.waiting = !f.again
		return f.again
	default:
		t.setLook(f, t.now()+retry(t.setbacks.Load()))
	}
	return false
}

// plan decides when to look again at a file that was read to its end.
func (t *Tailer) plan(f *file, l *look) {
	now := t.now()
	if f.partial > 0 && f.Provisional.Length == 0 && !f.tried {
		t.setLook(f, max(now+time.Millisecond, f.changed+t.cfg.Quiet))
	}
	switch {
	case f.Verified == f.File.Stat:
		t.setScrub(f, 0)
	case l.chunk == nil && l.was.File.Stat.Size == l.st.Size && l.was.File.Stat != l.st:
		t.setScrub(f, now) // its stat changed, its size did not
	default:
		t.setScrub(f, now+t.cfg.ScrubAfter)
	}
}
