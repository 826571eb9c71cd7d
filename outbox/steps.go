package outbox

import (
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
