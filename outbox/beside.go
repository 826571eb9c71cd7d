package outbox

import "time"

// uploadOf is how far the blob in the row seq has come.
func (l *lane) uploadOf(seq uint64) *upload {
	if l.upload == nil || l.upload.seq != seq {
		l.upload = newUpload(seq)
	}
	return l.upload
}

// noteLinkRequests passes on that link requests wait at the server.
func (l *loop) noteLinkRequests(r *reply) {
	if r.linkRequests && l.d.OnLinkRequests != nil {
		l.d.OnLinkRequests()
	}
}

// judgeBeside takes in the answer to something that lies beside lines, where that is another matter than with lines:
// whatever is wrong with it, lines go on. judged says that it was; on is judge's answer then.
func (l *loop) judgeBeside(now time.Time, r result) (on, judged bool) {
	w := r.work
	switch r.reply.verdict {
	case more:
		l.passed(now, r.lane)
		if n := r.lane.upload.setbacks; n > 0 {
			r.lane.notBefore = now.Add(min(shortestWait<<n, time.Minute))
		}
		return false, true
	case gone:
		if l.health.Gone == 0 && w.settlement.Gone == 0 {
			l.d.Log.Info("a file changed or went away before it was sent; such files are counted", "server", l.server, "err", r.reply.summary)
		}
		w.settlement.Gone++
		w.pieces = w.pieces[1:]
		return true, true
	case unwanted:
		return l.unwanted(now, r), true
	case tooLarge, rejected:
		if !l.known.proven {
			r.reply.verdict = refuse
			return l.failed(now, r), true
		}
		if w.single() {
			return l.buryItem(now, r), true
		}
		if r.reply.verdict == rejected {
			w.halve = true
			return true, true
		}
	}
	return false, false
}

// buryItem takes in that an item was refused alone. When too many are in a row, the server is held not to take their
// kind.
func (l *loop) buryItem(now time.Time, r result) bool {
	if l.known.itemsRefused++; l.known.itemsRefused >= refusedMost {
		return l.unwanted(now, r)
	}
	reason := "rejected"
	if r.reply.verdict == tooLarge {
		reason = "too_large"
	}
	r.work.bury(l.codecs, &r.reply, reason)
	r.lane.pass()
	return true
}

// unwanted takes in that the server does not take a kind though it announced it: from now on it is withheld. While the
// server is in trouble this is not believed at once, for then anyone may be answering in its place.
func (l *loop) unwanted(now time.Time, r result) bool {
	k, kind := &l.known, r.work.kind()
	if l.gate.closed && !r.reply.announced.extension && !r.lane.doubted {
		r.lane.doubted = true
		r.reply.verdict, r.reply.kind = refuse, KindNotFound
		return l.failed(now, r)
	}
	l.d.Log.Warn("the server announces what it does not take; it is withheld", "server", l.server, "kind", kind.announced(), "err", r.reply.summary)
	k.bar(kind, now)
	l.acks.learn = true
	r.work.withholdAll()
	r.lane.pass()
	return true
}
