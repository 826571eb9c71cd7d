package outbox

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/ccship/ccship/protocol"
)

// resume continues after Owner.OutOfStep was called and both sides were compared. It drops transfers that began before:
// their batches may have left the queue.
func (l *loop) resume() {
	at, joined, behind := l.d.takeSteps()
	defer l.stepBackFor(behind)
	for _, lane := range l.lanes {
		if at != nil {
			lane.transfer = nil
		}
		if at != nil || slices.Contains(joined, lane.id) {
			lane.outOfStep = false
			l.lanes.dropIdle(lane)
		}
	}
	if at == nil {
		return
	}
	known := at.Known
	known.KeepVersion(&l.server.Ledger)
	l.server.Ledger, l.server.receipts = known, protocol.ReceiptsAfter(&known)
	l.outOfStep, l.acks.learn = false, true
	l.resumable = nil
	l.recovered(time.Now())
}

// stepBackFor stops sending for the code of a call of Drainer.StepBack; "": there was none.
func (l *loop) stepBackFor(code string) {
	if code != "" {
		r := result{reply: reply{summary: "the server stores something else than was acknowledged"}, round: l.gate.Round()}
		r.reply.outOfStep(code)
		l.stepBackServer(time.Now(), r)
	}
}

// reportWhenQuiet starts the comparison once every answer has arrived and is recorded. A later acknowledgement would
// remove batches that the comparison took for queued, and another store may have acknowledged them.
func (l *loop) reportWhenQuiet() {
	if l.refusal.Code == "" || l.inFlight > 0 || l.acks.running || !l.acks.empty() {
		return
	}
	l.reportOutOfStep(l.refusal)
	l.refusal = protocol.Refusal{}
}

// noteLedger keeps the ledger of an answer for the next requests. The next settlement keeps it for the next start.
func (l *loop) noteLedger(at protocol.Ledger) {
	at.Writer = l.d.writer.Load().Incarnation
	at.KeepVersion(&l.server.Ledger)
	l.server.Ledger = at
	l.d.writer.Store(&protocol.Writer{Incarnation: at.Writer, Known: at})
}

// wentBack makes an acknowledgement a refusal if the store has counted another write instead of an earlier one.
func (l *loop) wentBack(r *reply) bool {
	if r.verdict != acknowledged || l.outOfStep || !l.server.receipts.Repeats(&r.ledger) {
		return false
	}
	r.outOfStep(protocol.CodeStoreBehind)
	// The server does not repeat it after a restart: the next flush keeps it with its acknowledgements.
	l.server.Ledger.Doubt, l.acks.learn = true, true
	return true
}

// stepBack handles a refusal by the server's ledger, or of one stream. It drops the transfer: the batches stay queued
// until what both sides have is compared.
func (l *loop) stepBack(now time.Time, r result) {
	if !protocol.RefusesStream(r.reply.refusal.Code) {
		l.stepBackServer(now, r)
		return
	}
	r.lane.outOfStep, r.reply.refusal.Stream = true, r.lane.id
	l.reportOutOfStep(r.reply.refusal)
}

// stepBackServer stops sending, unless it is stopped already.
func (l *loop) stepBackServer(now time.Time, r result) {
	if l.outOfStep {
		return
	}
	l.closeGate(now, &r, false)
	l.outOfStep, l.refusal = true, r.reply.refusal
}

func (l *loop) reportOutOfStep(why protocol.Refusal) {
	l.d.Log.Warn("the server stores other lines than this queue continues; comparing", "server", l.name,
		"code", why.Code)
	l.d.owner.OutOfStep(l.d.dest.Key, why)
}

// maxRefusedInRow is how many entries in a row the server may refuse alone before the server is considered at fault.
const maxRefusedInRow = 8

// suspect is an entry that the server refused alone. The server may be at fault, so the entries after it go on, and it
// is sent again. Only if it is refused in the same way after the server has accepted something is it the entry's fault.
type suspect struct {
	key   entryKey
	piece []Batch // of one entry
	reply reply
}

// entryKey identifies an entry of a stream, also when it is queued again.
type entryKey struct {
	generation uint32
	line       int64
	seq        uint64 // of an artifact, which has no line; queued again it is another one
}

// refusal is what is remembered of a suspect until the server accepts it, over transfers.
type refusal struct {
	status    int
	successes uint64 // requests acknowledged when it was refused, over all lanes
	dead      bool   // it became a dead letter
}

// refusedAlone handles an entry that was refused alone. It becomes a dead letter if it was refused in the same way
// before and the server has accepted something in between; else it is a suspect.
func (l *loop) refusedAlone(now time.Time, r result, reason string) bool {
	w, k := r.transfer, &l.server
	if r.reply.verdict == tooLarge && (r.reply.foreign || k.tookAsLarge(r.request)) {
		return l.refusesSmall(now, r)
	}
	first := &w.pieces[0][0]
	key := entryKey{generation: first.Generation, line: firstLine(first, l.codecs)}
	if w.artifact {
		key.seq = first.Seq
	}
	before, known := r.lane.refusedOnce[key]
	if known && before.status == r.reply.status && before.successes < l.successes {
		before.dead = true
		r.lane.refusedOnce[key] = before
		w.deadLetterFirst(l.codecs, &r.reply, reason)
		return true
	}
	if r.lane.refusedOnce == nil {
		r.lane.refusedOnce = map[entryKey]refusal{}
	}
	r.lane.refusedOnce[key] = refusal{status: r.reply.status, successes: l.successes}
	if !w.artifact {
		if k.refusedInRow++; k.refusedInRow >= maxRefusedInRow {
			r.reply.verdict = refused
			return l.handleFailure(now, r)
		}
	}
	w.suspects = append(w.suspects, suspect{key: key, piece: w.pieces[0], reply: r.reply})
	w.pieces = w.pieces[1:]
	w.progressed = true
	return true
}

// maxRefusals bounds what a lane remembers.
const maxRefusals = 1000

// settleRefusals forgets the suspects that the server accepted in the end. Dead letters stay: they can be queued again.
func (l *lane) settleRefusals() {
	for key, r := range l.refusedOnce {
		if !r.dead || len(l.refusedOnce) > maxRefusals {
			delete(l.refusedOnce, key)
		}
	}
}

// refusesSmall handles a 413 to an entry although the server accepted one as large, or a 413 not in the words of the
// protocol: a proxy is at fault, for a while. It discards what was learned from such answers.
func (l *loop) refusesSmall(now time.Time, r result) bool {
	if before := r.transfer.shrunk; before != nil {
		l.server.MaxRaw, l.server.MaxRawAt = before.MaxRaw, before.MaxRawAt
	}
	r.reply.verdict, r.reply.entry, r.reply.foreign = refused, false, true
	r.reply.hint = "check the size limit of any proxy between here and the server"
	if r.transfer.artifact {
		return l.setAside(now, r, false)
	}
	return l.handleFailure(now, r)
}

// retrySuspects goes on when only suspects are left of a transfer. If the server has accepted something since it
// refused them, they are sent again, once. If it has not, a piece that it accepted is sent again first, as a proof that
// the server works. Without one the refusal counts as the server's failure: the transfer is dropped, and its batches
// are fetched again together with what is queued by then. It reports whether to continue.
func (l *loop) retrySuspects(now time.Time, r result) bool {
	w := r.transfer
	last := &w.suspects[len(w.suspects)-1]
	works := r.lane.refusedOnce[last.key].successes < l.successes
	if w.retried || !works && (w.proved || w.witness == nil) {
		r.reply = last.reply
		r.reply.verdict = refused
		if w.artifact {
			return l.setAside(now, r, true)
		}
		l.handleFailure(now, r)
		return false
	}
	if !works {
		w.pieces, w.proving, w.proved = [][]Batch{w.witness}, true, true
		return true
	}
	for i := range w.suspects {
		w.pieces = append(w.pieces, w.suspects[i].piece)
	}
	w.suspects, w.retried = nil, true
	return true
}

// aside is what a lane skips: artifacts that the server refused. Later ones are sent. The skipped ones are sent again
// after a while; suspects as soon as the server has accepted something. The zero aside skips nothing.
type aside struct {
	to        uint64    // highest Seq that is passed over; 0: none
	suspect   bool      // refused again after an acknowledgement, it is a dead letter
	successes uint64    // requests acknowledged, over all lanes, when it was refused
	until     time.Time // then it is sent again in any case
	times     int       // refusals in a row
}

// passed returns the Seq up to which the lane passes over its batches now. successes counts requests over all lanes.
func (a *aside) passed(successes uint64, now time.Time) uint64 {
	if a.suspect && successes != a.successes || !now.Before(a.until) {
		return 0
	}
	return a.to
}

// setAside makes a lane skip the artifacts that were refused: whatever is wrong with them, lines continue. Until the
// server accepts something, it counts as refusing.
func (l *loop) setAside(now time.Time, r result, suspect bool) bool {
	a := &r.lane.aside
	a.to, a.suspect, a.successes = r.transfer.last, suspect, l.successes
	a.until = now.Add(min(time.Second<<min(a.times, 6), time.Minute))
	a.times++
	r.reply.verdict, r.reply.entry = refused, true
	l.closeGate(now, &r, true)
	return false
}

// maxGreetings is how often in a row a server is only greeted. Something in between may answer greetings with 5xx for
// ever, and let rows pass.
const maxGreetings = 3

// greets reports whether to ask the server for a sign of life before rows go to it. A server that is away is asked
// every few seconds, and one that comes back by everybody at once: a few bytes each, not a batch.
func (l *loop) greets() bool {
	f := &l.failure
	away := f.verdict == retryLater && (f.kind == KindUnreachable || f.kind == KindServerError)
	return l.gate.Closed() && away && l.greeted < maxGreetings
}

// greet returns why rows need not be sent now; nil: a server answers. An answer of 5xx counts only if the server is
// known to answer greetings.
func (s *sender) greet(ctx context.Context, speaks bool) *reply {
	r := s.probe(ctx)
	if r.verdict == acknowledged {
		if r.status < http.StatusInternalServerError || !speaks {
			return nil
		}
		r.verdict, r.kind, r.summary = retryLater, KindServerError, "answered "+statusText(r.status)
	}
	return &r
}

// notGreeted handles a greeting without a good answer: nothing of the lane was sent.
func (l *loop) notGreeted(now time.Time, r result) {
	l.greeted++
	if r.transfer != nil {
		r.lane.transfer = r.transfer
		l.resumable = append(l.resumable, r.lane)
	}
	l.failedLast = r.lane
	l.closeGate(now, &r, false)
}
