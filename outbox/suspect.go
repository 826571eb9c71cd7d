package outbox

import "time"

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
