package outbox

import (
	"context"
	"errors"
	"time"
)

// refusedMost is how many entries in a row the server may refuse alone before it, not they, is held to be wrong.
const refusedMost = 8

// result is what became of one request, or of the attempt to make one.
type result struct {
	lane    *lane
	work    *work // nil: nothing to send was found
	last    uint64
	reply   reply
	request *request // nil: none was made
	round   uint64   // the gate's when it began
	probe   bool
	err     error // of the queue
}

// send lets a lane make one request.
func (l *loop) send(ctx context.Context, lane *lane, last uint64) {
	lane.busy = true
	l.inFlight++
	r := result{lane: lane, work: lane.work, last: last, round: l.gate.round}
	lane.work = nil
	if lane.blobs {
		l.uploads++
	}
	limits := Limits{Entries: max(lane.limit, 0), Raw: l.known.rawLimit(), OnlyObjects: l.known.unknown()}
	if limits.Entries == 0 {
		limits.Entries = DefaultMaxEntries
	}
	if lane.blobs {
		limits.Blobs, limits.Raw = true, 1 // one row: it is fetched for each chunk
	}
	after, known := lane.after, l.known // the loop goes on changing them
	l.wg.Go(func() {
		if r.work == nil {
			p, err := l.d.queue.Peek(ctx, l.d.dest.Key, lane.id, after, limits)
			if r.err = err; err == nil && len(p.Batches) > 0 && !(p.Stream.Extended && known.unknown()) {
				p.Stream.ID = lane.id
				r.work = newWork(l.d.dest.Key, p, limits, &known)
			}
		}
		if r.work != nil && len(r.work.pieces) > 0 {
			l.attempt(ctx, &r, &known)
		}
		l.results <- r
	})
}

// attempt sends the first piece of the work, made small enough before.
func (l *loop) attempt(ctx context.Context, r *result, known *knowledge) {
	w := r.work
	if w.kind() == Blob {
		r.request = &request{stream: &w.stream, batches: w.pieces[0]}
		r.reply = l.sender.upload(ctx, r.request, r.lane.uploadOf(w.last))
		return
	}
	for w.halve || !w.single() && len(w.pieces[0]) > 0 && rawOf(w.pieces[0]) > known.rawLimit() {
		if err := w.split(l.codecs); err != nil {
			r.reply = reply{verdict: broken}
			if !errors.As(err, &r.reply.damage) {
				r.reply.damage = &damage{seq: w.pieces[0][0].Seq, err: err}
			}
			return
		}
	}
	r.request = &request{
		stream: &w.stream, batches: w.pieces[0], bare: w.bare || known.bare(), encoding: known.encoding(),
	}
	r.reply = l.sender.send(ctx, r.request)
}

func rawOf(batches []Batch) (n int64) {
	for i := range batches {
		n += batches[i].Raw
	}
	return n
}

// finish takes in a result and decides what comes next for its lane.
func (l *loop) finish(r result) {
	l.inFlight--
	if r.lane != nil && r.lane.blobs {
		l.uploads--
	}
	now := time.Now()
	if r.probe {
		l.asked(now, r)
		return
	}
	lane, w := r.lane, r.work
	lane.busy = false
	defer l.lanes.drop(lane)
	if w == nil {
		l.found(now, r)
		return
	}
	lane.nothing, lane.waits, lane.limit = 0, false, 0
	if w.stream.MaxEntries > DefaultMaxEntries {
		lane.limit = w.stream.MaxEntries
	}
	if len(w.pieces) > 0 && !l.judge(now, r) {
		return // its rows are still in the queue
	}
	if len(w.pieces) > 0 {
		lane.work = w
		l.begun = append(l.begun, lane)
		return
	}
	lane.upload = nil
	lane.after = max(lane.after, w.last)
	lane.hold = lane.hold || w.objects
	lane.unsettled++
	l.acks.add(now, w.settlement)
}

// found takes in that a stream had nothing to send after all.
func (l *loop) found(now time.Time, r result) {
	lane := r.lane
	if r.err != nil {
		if !errors.Is(r.err, context.Canceled) {
			l.d.Log.Error("cannot read the queue; trying again", "server", l.server, "err", r.err)
		}
		lane.failed, lane.notBefore = true, now.Add(time.Second)
		return
	}
	// Either its rows went away, or they may not go to a server of unknown abilities.
	lane.nothing, lane.waits = r.last, l.known.unknown()
}

// asked takes in what the server said to a probe.
func (l *loop) asked(now time.Time, r result) {
	if r.reply.verdict != taken {
		l.gate.fail(now, r.reply, r.round, false)
		return
	}
	l.recovered(now)
	l.probeAt = now.Add(max(l.probeWaits.NextBackOff(), time.Second))
	if r.reply.announced.extension {
		l.hear(r.reply.announced, 0, true)
	}
}

// judge takes in the answer to the first piece of a work. It reports whether to go on with the work; if not, it is
// forgotten, and its rows are fetched again when the gate opens.
func (l *loop) judge(now time.Time, r result) bool {
	w, k := r.work, &l.known
	l.noteLinkRequests(&r.reply)
	if w.kind().beside() {
		if on, judged := l.judgeBeside(now, r); judged {
			return on
		}
	}
	switch r.reply.verdict {
	case taken:
		l.took(now, r)
		return true
	case unsupported:
		k.noCoding = true
		return true
	case broken:
		if w.buryDamaged(r.reply.damage) {
			l.d.Log.Error("a row of the queue is damaged; kept as a dead letter", "server", l.server, "err", r.reply.damage)
			return true
		}
		r.reply = reply{kind: KindRefused, summary: r.reply.damage.Error()}
	case tooLarge:
		if w.single() {
			return l.bury(now, r, "too_large")
		}
		k.shrink(rawOf(w.pieces[0]), now)
		l.acks.learn = true
		w.halve = true
		return true
	case rejected:
		return l.rejected(now, r)
	}
	return l.failed(now, r)
}

// took takes in an acknowledgement of the first piece.
func (l *loop) took(now time.Time, r result) {
	w, k := r.work, &l.known
	beside := w.kind().beside()
	entries, _ := w.acknowledge(r.request.bare || !r.reply.announced.extension)
	w.settlement.Forgotten = w.settlement.Forgotten || r.reply.forgotten
	if w.bare && !k.Plain {
		k.Plain, w.bare = true, false
		l.acks.learn = true
	}
	if beside {
		k.itemsRefused = 0
	} else {
		l.hear(r.reply.announced, entries, false)
	}
	if entries > 0 {
		if !k.proven {
			k.Config = l.d.dest.fingerprint()
			l.acks.learn = true
		}
		k.proven, k.refusedInRow = true, 0
	}
	l.passed(now, r.lane)
}

// passed takes in that the server took a request.
func (l *loop) passed(now time.Time, lane *lane) {
	l.successes++
	l.health.Requests++
	l.health.LastOKAt = now
	l.worst = nil
	lane.pass()
	l.recovered(now)
}

// recovered opens the gate.
func (l *loop) recovered(now time.Time) {
	if words := l.gate.pass(now); words != "" {
		l.d.Log.Info(words, "server", l.server)
	}
}

// hear takes in what the server said of itself.
func (l *loop) hear(a announcement, entries int64, probe bool) {
	before, unknown := l.known.Learned, l.known.unknown()
	if l.known.hear(a, entries, probe) {
		l.acks.tell = true
	}
	if l.known.Learned != before {
		l.acks.learn = true
	}
	if begins := l.known.Accepts &^ before.Accepts; begins != 0 {
		l.acks.begins |= begins
		l.acks.again = l.acks.again || before.Took
	}
	if !unknown || l.known.unknown() {
		return
	}
	for _, lane := range l.lanes {
		if lane.waits {
			lane.nothing, lane.waits = 0, false
			l.lanes.drop(lane)
		}
	}
}

// rejected takes in a 400 or 422 to the first piece.
func (l *loop) rejected(now time.Time, r result) bool {
	w, k := r.work, &l.known
	switch {
	case !k.Took && !r.request.bare && !r.reply.announced.extension:
		w.bare = true // perhaps it minds the extension
		return true
	case !k.proven || k.refusedInRow >= refusedMost:
		r.reply.verdict = refuse
		return l.failed(now, r)
	case !w.single():
		w.halve = true
		return true
	}
	return l.bury(now, r, "rejected")
}

// bury takes in that an entry was refused alone. When too many are in a row, the server is held to be wrong.
func (l *loop) bury(now time.Time, r result, reason string) bool {
	l.known.refusedInRow = min(l.known.refusedInRow+1, refusedMost)
	if l.known.refusedInRow == refusedMost {
		r.reply.verdict = refuse
		return l.failed(now, r)
	}
	r.work.bury(l.codecs, &r.reply, reason)
	return true
}

// failed takes in that nothing can be done at once: it closes the gate. Work is kept while trying again may help, if
// something of it was done, so that a server that fails now and then cannot keep a long bisection from its end.
func (l *loop) failed(now time.Time, r result) bool {
	alone := r.lane.fail(now, l.successes)
	l.worst = r.lane
	l.gate.fail(now, r.reply, r.round, alone)
	return r.reply.verdict == again && r.work.progressed
}
