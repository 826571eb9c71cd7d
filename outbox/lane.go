package outbox

import "time"

// laneKey names a lane. The blobs of a stream have one of their own.
type laneKey struct {
	id    uint64
	blobs bool
}

// lane is what the loop remembers of a stream that has something on its way or held back. Owned by the loop.
type lane struct {
	laneKey
	busy      bool    // a request of it is in flight
	work      *work   // begun and to be gone on with
	after     uint64  // acknowledged up to here, though not yet settled
	unsettled int     // its settlements on their way to the queue
	hold      bool    // nothing more until they are settled
	nothing   uint64  // up to this Seq nothing can go now
	waits     bool    // nothing, because the server's abilities are not known
	limit     int     // entries a request when not the default
	upload    *upload // of its first row, begun; nil: none
	doubted   bool    // what it answered while in trouble, that it takes no such thing, was not believed

	failed    bool      // its last request failed
	failedAt  uint64    // how much had been acknowledged at all when it did
	alone     int       // failures in a row with which it was alone: others passed in between
	notBefore time.Time // so it waits on its own
}

// idle says that there is nothing to remember.
func (l *lane) idle() bool {
	return !l.busy && l.work == nil && l.unsettled == 0 && l.nothing == 0 && l.limit == 0 && l.upload == nil && !l.failed
}

// skip says that the stream, whose highest Seq is last, has nothing to send now.
func (l *lane) skip(last uint64, now time.Time) bool {
	return l.busy || l.hold || l.work != nil || last <= l.after || last <= l.nothing || now.Before(l.notBefore)
}

// fail counts a failure. When other streams' requests passed since the one before, this stream alone is refused, and
// must not close the gate for all of them for long: it waits by itself. acknowledged is what was taken at all.
func (l *lane) fail(now time.Time, acknowledged uint64) (alone bool) {
	if l.failed && acknowledged > l.failedAt {
		l.alone++
		l.notBefore = now.Add(min(time.Second<<min(l.alone-1, 6), time.Minute))
	}
	l.failed, l.failedAt = true, acknowledged
	return l.alone > 0
}

func (l *lane) pass() {
	l.failed, l.alone, l.notBefore = false, 0, time.Time{}
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

// drop forgets a lane that has nothing to remember.
func (ls lanes) drop(l *lane) {
	if l.idle() {
		delete(ls, l.laneKey)
	}
}
