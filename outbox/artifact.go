package outbox

import (
	"crypto/sha256"
	"time"
)

// uploadOf returns the upload of the blob in batch seq, a new one if none has begun.
func (l *lane) uploadOf(seq uint64) *upload {
	if l.upload == nil || l.upload.seq != seq {
		l.upload = &upload{seq: seq, chunk: blobChunk, sum: sha256.New()}
	}
	return l.upload
}

// judgeArtifact handles replies to artifacts where they differ from replies to lines: whatever is wrong with an
// artifact, lines continue. judged: the reply was handled here; on is the result for handleReply then.
func (l *loop) judgeArtifact(now time.Time, r result) (on, judged bool) {
	w := r.transfer
	switch r.reply.verdict {
	case partial:
		l.requestSucceeded(now, r.lane)
		if n := r.lane.upload.setbacks; n > 0 {
			r.lane.notBefore = now.Add(min(minWait<<n, time.Minute))
		}
		return false, true
	case contentGone:
		if l.health.Gone == 0 && w.settlement.Gone == 0 {
			l.d.Log.Info("a file changed or was removed before it was sent; such files are counted",
				"server", l.name, "err", r.reply.summary)
		}
		w.settlement.Gone++
		w.pieces = w.pieces[1:]
		return true, true
	case unsupportedKind:
		return l.disableKind(now, r), true
	case tooLarge, rejected, refused:
		return l.artifactRefused(now, r)
	}
	return false, false
}

// artifactRefused handles a refusal of artifacts that may be about what they are. It returns what judgeArtifact does.
func (l *loop) artifactRefused(now time.Time, r result) (on, judged bool) {
	w, no := r.transfer, r.reply.verdict
	switch {
	case r.reply.foreign && (no != tooLarge || w.single()), no != refused && (!l.server.proven || w.proving):
		return l.setAside(now, r, false), true // nothing is blamed for it
	case no == refused, no == tooLarge && !w.single():
		return false, false
	case !w.single():
		w.splitFirst = true
		return true, true
	case no == tooLarge:
		return l.refusedAlone(now, r, "too_large"), true
	}
	return l.refusedAlone(now, r, "rejected"), true
}

// disableKind withholds a kind that the server announced but does not accept. While the server is failing it needs two
// such answers, because a proxy may be answering in its place.
func (l *loop) disableKind(now time.Time, r result) bool {
	k, kind := &l.server, r.transfer.firstKind()
	if l.gate.Closed() && !r.reply.announced.extension && !r.lane.unwantedOnce {
		r.lane.unwantedOnce = true
		r.reply.verdict, r.reply.kind = refused, KindNotFound
		return l.handleFailure(now, r)
	}
	l.d.Log.Warn("the server announces a kind that it does not accept; it is withheld",
		"server", l.name, "kind", kind.announced(), "err", r.reply.summary)
	k.disable(kind, now)
	l.acks.learn = true
	r.transfer.withholdRest()
	r.lane.clearFailure()
	return true
}
