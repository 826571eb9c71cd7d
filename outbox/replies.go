package outbox

import (
	"cmp"
	"context"
	"errors"
	"time"
)

// result is the result of one request, or of the attempt to make one.
type result struct {
	lane     *lane
	transfer *transfer // nil: nothing to send
	last     uint64
	reply    reply
	request  *request // nil: none was made
	round    uint64   // the gate's round when it began
	probe    bool
	silent   bool  // the server was greeted, and reply is why nothing was sent
	err      error // of reading the queue
}

// send starts one request of a lane.
func (l *loop) send(ctx context.Context, lane *lane, last uint64) {
	lane.busy = true
	l.inFlight++
	r := result{lane: lane, transfer: lane.transfer, last: last, round: l.gate.Round()}
	lane.transfer = nil
	if lane.blobs {
		l.uploads++
	}
	entries := cmp.Or(max(lane.maxEntries, 0), DefaultMaxEntries)
	limits := Limits{Entries: entries, Raw: l.server.rawLimit(), OnlyObjects: l.server.unknown()}
	if lane.blobs {
		limits.Blobs, limits.Raw = true, 1 // one blob: it is fetched again for each chunk
	}
	greets := l.greets()
	if !greets {
		l.greeted = 0
	}
	if l.gate.Closed() && l.failure.verdict == retryLater {
		limits.Raw = 1 // one batch: it may fail again
	}
	passed := lane.aside.passed(l.successes, time.Now())
	lane.aside.to = passed                                     // when it is over, they come again
	after, known := max(lane.acknowledgedTo, passed), l.server // a copy: the loop goes on changing it
	l.running.Go(func() {
		if greets {
			if why := l.sender.greet(ctx, known.Extension); why != nil {
				r.silent, r.reply = true, *why
				l.results <- r
				return
			}
		}
		if r.transfer == nil {
			p, err := l.d.queue.Peek(ctx, l.d.dest.Key, lane.id, after, limits)
			if r.err = err; err == nil && len(p.Batches) > 0 && !(p.Stream.Extended && known.unknown()) {
				p.Stream.ID = lane.id
				r.transfer = newTransfer(l.d.dest.Key, p, limits, &known)
			}
		}
		if r.transfer != nil && len(r.transfer.pieces) > 0 {
			l.attempt(ctx, &r, &known)
		}
		l.results <- r
	})
}

// attempt sends the first piece of the transfer, split until it is small enough.
func (l *loop) attempt(ctx context.Context, r *result, known *capabilities) {
	w := r.transfer
	if w.firstKind() == Blob {
		r.request = &request{stream: &w.stream, batches: w.pieces[0], speaks: known.spoke()}
		r.reply = l.sender.upload(ctx, r.request, r.lane.uploadOf(w.last))
		return
	}
	for w.splitFirst || !w.proving && !w.single() && len(w.pieces[0]) > 0 && rawOf(w.pieces[0]) > known.rawLimit() {
		if err := w.split(l.codecs); err != nil {
			r.reply = reply{verdict: damagedRow}
			if !errors.As(err, &r.reply.damage) {
				r.reply.damage = &damageError{Seq: w.pieces[0][0].Seq, Err: err}
			}
			return
		}
	}
	r.request = &request{
		stream: &w.stream, batches: w.pieces[0], bare: known.bare(), zstd: known.compresses(), speaks: known.spoke(),
	}
	if known.unknown() {
		asked := l.sender.probe(ctx)
		if asked.verdict != acknowledged {
			r.reply = asked
			return
		}
		r.request.bare = !asked.announced.extension
	}
	r.reply = l.sender.send(ctx, r.request)
}

func rawOf(batches []Batch) (n int64) {
	for i := range batches {
		n += batches[i].Raw
	}
	return n
}

// handleResult handles the result of a request and decides what its lane does next.
func (l *loop) handleResult(r result) {
	l.inFlight--
	if r.lane != nil && r.lane.blobs {
		l.uploads--
	}
	now := time.Now()
	if r.probe {
		l.probed(now, r)
		return
	}
	lane, w := r.lane, r.transfer
	lane.busy = false
	defer l.lanes.dropIdle(lane)
	if r.silent {
		l.notGreeted(now, r)
		return
	}
	if w == nil {
		l.nothingToSend(now, r)
		return
	}
	lane.emptyTo, lane.needsProbe, lane.maxEntries = 0, false, 0
	if w.stream.MaxEntries > DefaultMaxEntries {
		lane.maxEntries = w.stream.MaxEntries
	}
	if len(w.pieces) > 0 && !l.handleReply(now, r) {
		return // its batches stay in the queue
	}
	if len(w.pieces) == 0 && len(w.suspects) > 0 && !l.retrySuspects(now, r) {
		return
	}
	if len(w.pieces) > 0 {
		lane.transfer = w
		l.resumable = append(l.resumable, lane)
		return
	}
	lane.upload = nil
	if lane.aside.to == 0 { // else what it passes over is not settled yet
		lane.aside = aside{}
		lane.settleRefusals()
	}
	lane.acknowledgedTo = max(lane.acknowledgedTo, w.last)
	lane.blocked = lane.blocked || w.objectsOnly || w.last > lane.aside.to && lane.aside.to > 0
	lane.unflushed++
	w.settlement.Ledger = l.server.Ledger
	l.acks.add(now, w.settlement)
}

// nothingToSend handles a stream that turned out to have nothing to send.
func (l *loop) nothingToSend(now time.Time, r result) {
	lane := r.lane
	if r.err != nil {
		if !errors.Is(r.err, context.Canceled) {
			l.d.Log.Error("cannot read the queue; retrying", "server", l.name, "err", r.err)
		}
		lane.failed, lane.notBefore = true, now.Add(time.Second)
		return
	}
	// Its batches were removed, or must not go to a server with unknown capabilities.
	lane.emptyTo, lane.needsProbe = r.last, l.server.unknown()
}

// probed handles the answer to a probe.
func (l *loop) probed(now time.Time, r result) {
	if r.reply.verdict != acknowledged {
		l.closeGate(now, &r, false)
		return
	}
	l.recovered(now)
	l.probeAt = now.Add(max(l.probeBackoff.NextBackOff(), time.Second))
	if r.reply.announced.extension {
		l.learn(r.reply.announced, 0, true)
	}
}

// handleReply handles the reply to the first piece of a transfer. It reports whether to continue with the transfer. If
// not, the transfer is dropped and its batches are fetched again when the gate opens.
func (l *loop) handleReply(now time.Time, r result) bool {
	w, k := r.transfer, &l.server
	if r.reply.linkRequests {
		l.d.owner.LinkRequests(l.d.dest.Key)
	}
	if r.reply.verdict == outOfStep {
		l.stepBack(now, r)
		return false
	}
	if l.wentBack(&r.reply) {
		l.stepBackServer(now, r)
		return false
	}
	if r.reply.ledger.After(&l.server.Ledger) && !l.outOfStep {
		l.noteLedger(r.reply.ledger)
	}
	if w.firstKind().artifact() {
		if on, judged := l.judgeArtifact(now, r); judged {
			return on
		}
	}
	if w.proving && (r.reply.verdict == tooLarge || r.reply.verdict == rejected) {
		r.reply.verdict, r.reply.entry = refused, false // it accepted the same before
	}
	switch r.reply.verdict {
	case acknowledged:
		l.acknowledge(now, r)
		return true
	case unsupportedEncoding:
		k.noCoding = true
		return true
	case damagedRow:
		if w.deadLetterDamaged(r.reply.damage) {
			l.d.Log.Error("a queued batch is damaged; kept as a dead letter", "server", l.name, "err", r.reply.damage)
			return true
		}
		r.reply = reply{kind: KindRefused, summary: r.reply.damage.Error()}
	case tooLarge:
		return l.handleTooLarge(now, r)
	case rejected:
		return l.handleRejected(now, r)
	}
	return l.handleFailure(now, r)
}

// acknowledge handles the acknowledgement of the first piece.
func (l *loop) acknowledge(now time.Time, r result) {
	w, k := r.transfer, &l.server
	if w.proving {
		w.pieces, w.proving = w.pieces[1:], false
		l.requestSucceeded(now, r.lane)
		return
	}
	artifact := w.firstKind().artifact()
	entries, _ := w.acknowledge(r.request.bare || !r.reply.announced.extension)
	w.settlement.Forgotten = w.settlement.Forgotten || r.reply.forgotten
	if artifact {
		k.tookItem[r.request.kind()] = max(k.tookItem[r.request.kind()], r.request.itemSize())
	} else {
		l.learn(r.reply.announced, entries, false)
	}
	if entries > 0 {
		if !k.proven {
			k.Config = l.d.dest.fingerprint()
			l.acks.learn = true
		}
		k.proven, k.refusedInRow = true, 0
		if r.request.raw() > k.TookRaw && r.request.wire > k.TookWire {
			k.TookRaw, k.TookWire = r.request.raw(), r.request.wire
		}
	}
	l.requestSucceeded(now, r.lane)
}

// requestSucceeded records that the server accepted a request.
func (l *loop) requestSucceeded(now time.Time, lane *lane) {
	l.successes++
	l.health.Requests++
	l.health.LastOKAt = now
	l.failedLast = nil
	lane.clearFailure()
	l.recovered(now)
}

// closeGate makes requests wait after a failure. quick backs off by seconds even after a refusal, as after an answer
// that is not the server's own.
func (l *loop) closeGate(now time.Time, r *result, quick bool) {
	pace := backOff
	switch {
	case r.reply.entry:
		pace = atOnce // only the stream that it refused waits
	case r.reply.verdict == refused && !quick && !r.reply.foreign:
		pace = probing
	}
	if l.gate.Fail(now, r.round, pace, r.reply.retryAfter) {
		l.failure = r.reply
	}
}

// recovered opens the gate.
func (l *loop) recovered(now time.Time) {
	if msg := l.gate.Pass(now); msg != "" {
		l.failure = reply{}
		l.d.Log.Info(msg, "server", l.name)
	}
}

// learn applies what the server announced.
func (l *loop) learn(a announcement, entries int64, probe bool) {
	before, unknown := l.server.Learned, l.server.unknown()
	if l.server.learn(a, entries, probe) {
		l.acks.announce = true
	}
	if l.server.Learned != before {
		l.acks.learn = true
	}
	if begins := l.server.Accepts &^ before.Accepts; begins != 0 {
		l.acks.newKinds |= begins
		l.acks.tookBefore = l.acks.tookBefore || before.Took
	}
	if !unknown || l.server.unknown() {
		return
	}
	for _, lane := range l.lanes {
		if lane.needsProbe {
			lane.emptyTo, lane.needsProbe = 0, false
			l.lanes.dropIdle(lane)
		}
	}
}

// handleTooLarge splits a request that was answered with 413, and makes the next ones smaller.
func (l *loop) handleTooLarge(now time.Time, r result) bool {
	w, k := r.transfer, &l.server
	if w.single() {
		return l.refusedAlone(now, r, "too_large")
	}
	if w.shrunk == nil {
		before := k.Learned
		w.shrunk = &before
	}
	k.shrink(rawOf(w.pieces[0]), now)
	l.acks.learn, w.splitFirst = true, true
	return true
}

// handleRejected handles a 400 or 422 to the first piece.
func (l *loop) handleRejected(now time.Time, r result) bool {
	w, k := r.transfer, &l.server
	switch {
	case !k.proven || k.refusedInRow >= maxRefusedInRow:
		r.reply.verdict = refused
		return l.handleFailure(now, r)
	case !w.single():
		w.splitFirst = true
		return true
	}
	return l.refusedAlone(now, r, "rejected")
}

// handleFailure closes the gate. A transfer that has made progress is kept if a retry may help, so that a server which
// fails now and then cannot prevent the end of a long bisection.
func (l *loop) handleFailure(now time.Time, r result) bool {
	r.reply.entry = r.reply.entry && l.server.proven
	alone := r.lane.noteFailure(now, l.successes, r.reply.entry)
	r.lane.overQuota = nil
	if r.reply.kind == KindOverQuota {
		r.lane.overQuota = &r.reply
	}
	l.failedLast = r.lane
	l.closeGate(now, &r, alone)
	return r.reply.verdict == retryLater && r.transfer.progressed
}
