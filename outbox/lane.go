package outbox

import (
	"crypto/sha256"
	"time"
)

// laneKey identifies a lane. The blobs of a stream have their own.
type laneKey struct {
	id    uint64
	blobs bool
}

// lane is the sending state of a stream that has something in flight or delayed. Owned by the loop.
type lane struct {
	laneKey
	busy           bool      // a request of it is in flight
	transfer       *transfer // unfinished; nil: none
	acknowledgedTo uint64    // highest acknowledged Seq, possibly not yet settled
	unflushed      int       // settlements not yet recorded
	blocked        bool      // send nothing until they are recorded
	emptyTo        uint64    // up to this Seq nothing can be sent now
	needsProbe     bool      // because the server's capabilities are unknown
	maxEntries     int       // entries per request; 0: the default
	upload         *upload   // of its first batch, begun; nil: none
	outOfStep      bool      // the server stores something else of this stream; send nothing until StreamInStep
	unwantedOnce   bool      // the server refused the kind once while it was failing; that was not believed

	aside       aside                // artifacts that it passes over
	refusedOnce map[entryKey]refusal // its entries that were refused alone

	failed        bool      // its last request failed
	failedAt      uint64    // requests acknowledged, over all lanes, when it did
	aloneFailures int       // consecutive failures while other lanes succeeded
	notBefore     time.Time // so it backs off by itself
	overQuota     *reply    // of its last request, when the server stores no more of this user
}

// idle reports whether the lane has no state to keep.
func (l *lane) idle() bool {
	return !l.busy && l.transfer == nil && l.unflushed == 0 && l.emptyTo == 0 && l.maxEntries == 0 &&
		l.upload == nil && !l.failed && !l.outOfStep && len(l.refusedOnce) == 0 && l.aside.to == 0
}

// skips reports whether the stream, whose highest Seq is last, has nothing to send now. successes counts requests.
func (l *lane) skips(last, successes uint64, now time.Time) bool {
	return l.busy || l.blocked || l.outOfStep || l.transfer != nil ||
		last <= max(l.acknowledgedTo, l.emptyTo, l.aside.passed(successes, now)) || now.Before(l.notBefore)
}

// noteFailure counts a failure. If other streams succeeded since this lane's last failure, only this stream is refused:
// it backs off by itself and must not close the gate for the others. The same holds if the server refused its content.
// acknowledged counts requests over all lanes.
func (l *lane) noteFailure(now time.Time, acknowledged uint64, content bool) (alone bool) {
	if content || l.failed && acknowledged > l.failedAt {
		l.aloneFailures++
		l.notBefore = now.Add(min(time.Second<<min(l.aloneFailures-1, 6), time.Minute))
	}
	l.failed, l.failedAt = true, acknowledged
	return l.aloneFailures > 0
}

func (l *lane) clearFailure() {
	l.failed, l.aloneFailures, l.notBefore, l.overQuota = false, 0, time.Time{}, nil
}

// overQuota returns a lane that waits because the server stores no more of this user, the one that is sent next; nil
// without any.
func (ls lanes) overQuota() (first *lane) {
	for _, l := range ls {
		if l.overQuota != nil && (first == nil || l.notBefore.Before(first.notBefore)) {
			first = l
		}
	}
	return first
}

// lanes finds lanes by stream.
type lanes map[laneKey]*lane

func (ls lanes) get(key laneKey) *lane {
	l := ls[key]
	if l == nil {
		l = &lane{laneKey: key}
		ls[key] = l
	}
	return l
}

// dropIdle removes a lane that has no state to keep.
func (ls lanes) dropIdle(l *lane) {
	if l.idle() {
		delete(ls, l.laneKey)
	}
}

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
