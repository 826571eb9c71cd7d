package outbox

import (
	"context"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/ccship/ccship/protocol"
)

const (
	stopGrace = time.Second     // for requests in flight at a stop
	stopFlush = 2 * time.Second // for the last acknowledgements
)

// loop owns all state of a running drainer. Only its goroutine touches that state; requests and flushes run in
// goroutines of their own and send their results back through channels.
type loop struct {
	d      *Drainer
	name   string // for the log
	codecs *codecs
	sender *sender

	gate      gate
	failure   reply // the last one, while the gate is closed
	server    capabilities
	lanes     lanes
	resumable []*lane // lanes with an unfinished transfer, the one waiting longest first
	acks      acks
	health    Health

	outOfStep bool             // nothing is sent until InStep
	refusal   protocol.Refusal // why, until Owner.OutOfStep is called; Code is "" afterwards

	inFlight   int
	uploads    int    // of them, those of blobs
	pickOldest bool   // the last Pick asked for the oldest
	picks      int    // picks so far
	failedLast *lane  // the lane that failed last; others go first
	successes  uint64 // requests acknowledged since start
	greeted    int    // greetings in a row that failed

	probeAt      time.Time // next probe of a server with unknown capabilities
	probeBackoff *backoff.ExponentialBackOff

	results chan result
	flushes chan flushJob
	running sync.WaitGroup // requests and flushes
}

func newLoop(d *Drainer, learned Learned) *loop {
	c := &codecs{}
	l := &loop{
		d: d, name: spellAddress(d.dest.URL), codecs: c,
		sender: newSender(d, c),
		gate:   newGate(), lanes: lanes{}, acks: acks{backoff: newBackOff(time.Minute)},
		probeBackoff: newBackOff(time.Minute),
		health:       d.Health(),
		results:      make(chan result), flushes: make(chan flushJob),
	}
	proven := learned.Took && learned.Config == d.dest.fingerprint()
	l.server = capabilities{Learned: learned, plain: d.dest.Plain, proven: proven,
		receipts: protocol.ReceiptsAfter(&learned.Ledger)}
	l.stepBackFor(learned.Ledger.Doubted())
	return l
}

// run is the loop: start what may be sent now, flush what is due, wait for the next event.
func (l *loop) run(ctx context.Context) error {
	requests, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer l.running.Wait()
	defer cancel()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		l.publish()
		l.start(requests)
		l.flush(requests)
		l.reportWhenQuiet()
		l.sleepUntil(timer)
		select {
		case <-ctx.Done():
			l.stop(cancel)
			return nil
		case <-l.d.wake:
			if l.d.arrived.Swap(false) {
				l.gate.Arrived(time.Now())
			}
		case <-l.d.retry:
			l.retryNow(l.d.changed.Swap(false), l.d.flushed.Swap(false))
		case r := <-l.results:
			l.handleResult(r)
		case f := <-l.flushes:
			l.flushFinished(f)
		case <-timer.C:
		}
	}
}

// sleepUntil sets the timer to the next time at which something is due.
func (l *loop) sleepUntil(timer *time.Timer) {
	now := time.Now()
	next := now.Add(time.Hour)
	sooner := func(t time.Time) {
		if t.After(now) && t.Before(next) {
			next = t
		}
	}
	sooner(l.gate.Next())
	sooner(l.acks.next(l.d))
	sooner(l.probeAt)
	for _, lane := range l.lanes {
		sooner(lane.notBefore)
		sooner(lane.aside.until)
	}
	timer.Reset(next.Sub(now))
}

// retryNow removes everything that delays requests; the server's own Retry-After only with flush.
func (l *loop) retryNow(configChanged, flush bool) {
	now := time.Now()
	if flush {
		l.gate.Flush(now)
	} else {
		l.gate.Open(now)
	}
	l.probeAt = time.Time{}
	for _, lane := range l.lanes {
		lane.clearFailure()
		lane.aside = aside{}
		l.lanes.dropIdle(lane)
	}
	if !configChanged {
		return
	}
	k := &l.server
	l.acks.learn = l.acks.learn || k.MaxRaw != 0
	k.MaxRaw, k.MaxRawAt, k.TookRaw, k.TookWire = 0, 0, 0, 0
	k.noCoding, k.proven, k.refusedInRow = false, false, 0
	k.disabled, k.tookItem = 0, [Blob + 1]int64{}
}

// start sends as many requests as are allowed now.
func (l *loop) start(ctx context.Context) {
	l.resume()
	for !l.d.paused.Load() && !l.outOfStep {
		now := time.Now()
		most := inFlight
		if l.server.unknown() {
			most = 1 // the first answer decides what later requests may carry
		}
		if !l.gate.Allows(now, l.inFlight, most) {
			return
		}
		if l.server.expire(now) {
			l.acks.learn = true
		}
		lane, last := l.next(now)
		if lane == nil {
			l.probe(ctx, now)
			return
		}
		l.send(ctx, lane, last)
	}
}

// next chooses a lane, and returns its stream's highest Seq when its batches are still to be fetched. Unfinished
// transfers go first, which also bounds their number; then live lines and the backlog alternate. The lane that failed
// last goes last, because it may be the only one that fails.
func (l *loop) next(now time.Time) (*lane, uint64) {
	worst := l.failedLast
	for range 2 {
		for i, lane := range l.resumable {
			if (worst == nil || lane.laneKey != worst.laneKey) && !now.Before(lane.notBefore) {
				l.resumable = append(l.resumable[:i:i], l.resumable[i+1:]...)
				return lane, 0
			}
		}
		if len(l.resumable) < inFlight {
			if lane, last := l.pick(now, worst); lane != nil {
				return lane, last
			}
		}
		if worst == nil {
			break
		}
		worst = nil
	}
	return nil, 0
}

// pick asks the queue for a stream with something to send. Blobs take turns with the rest, and get at most
// half of the requests in flight.
func (l *loop) pick(now time.Time, not *lane) (*lane, uint64) {
	l.picks++
	blobs := l.uploads < max(inFlight/2, 1)
	if blobs && l.picks%3 == 0 {
		if lane, last := l.pickOf(now, not, true); lane != nil {
			return lane, last
		}
		blobs = false
	}
	if lane, last := l.pickOf(now, not, false); lane != nil || !blobs {
		return lane, last
	}
	return l.pickOf(now, not, true)
}

// pickOf asks for a stream that has blobs, or with blobs false anything else.
func (l *loop) pickOf(now time.Time, not *lane, blobs bool) (*lane, uint64) {
	var last uint64
	skip := func(stream, seq uint64) bool {
		last = seq
		key := laneKey{stream, blobs}
		lane := l.lanes[key]
		return not != nil && not.laneKey == key || lane != nil && lane.skips(seq, l.successes, now)
	}
	pick := l.d.queue.PickBlobs
	if !blobs {
		l.pickOldest = !l.pickOldest
		pick = func(dest string, skip func(stream, last uint64) bool) (uint64, bool) {
			return l.d.queue.Pick(dest, l.pickOldest, skip)
		}
	}
	id, ok := pick(l.d.dest.Key, skip)
	if !ok {
		return nil, 0
	}
	return l.lanes.get(laneKey{id, blobs}), last
}

// probe asks a server for its capabilities when every waiting lane needs them.
func (l *loop) probe(ctx context.Context, now time.Time) {
	if !l.server.unknown() || l.inFlight > 0 || now.Before(l.probeAt) {
		return
	}
	waits := false
	for _, lane := range l.lanes {
		waits = waits || lane.needsProbe
	}
	if !waits {
		return
	}
	l.inFlight++
	round := l.gate.Round()
	l.running.Go(func() { l.results <- result{probe: true, reply: l.sender.probe(ctx), round: round} })
}

// flush starts recording what is due.
func (l *loop) flush(ctx context.Context) {
	a, now := &l.acks, time.Now()
	if !l.patient(now) {
		a.hurry()
	}
	if !a.due(now, l.d, l.inFlight == 0) {
		return
	}
	var learned *Learned
	if a.learn {
		copied := l.server.Learned
		learned = &copied
	}
	announce := a.announce
	for i := range a.pending {
		s := &a.pending[i]
		s.Ledger.DoubtLike(&l.server.Ledger)
		// Sent before the announcement, answered after it.
		announce = announce || l.server.Extension && (s.Plain || s.Withheld > 0)
	}
	todo := flushJob{settlements: a.pending, learned: learned, announce: announce}
	todo.newKinds, todo.tookBefore = a.newKinds, a.tookBefore
	if l.patient(now) {
		a.patience, a.patientTo = make(chan struct{}), now.Add(patience)
		todo.patience = a.patience
	}
	a.pending, a.raw, a.learn, a.announce, a.running = nil, 0, false, false, true
	a.newKinds, a.tookBefore = 0, false
	l.running.Go(func() { l.flushes <- l.d.flush(ctx, todo) })
}

// flushFinished handles the result of a flush. What failed is queued again.
func (l *loop) flushFinished(f flushJob) {
	now := time.Now()
	a := &l.acks
	a.running, a.patience = false, nil
	if f.settled {
		for i := range f.settlements {
			l.countSettled(&f.settlements[i])
		}
	} else {
		a.pending = append(f.settlements, a.pending...)
		a.since = now
		for i := range f.settlements {
			a.raw += f.settlements[i].Raw
		}
	}
	a.learn = a.learn || f.learned != nil && !f.saved
	if f.newKinds != 0 && !f.kindsDone {
		a.newKinds, a.tookBefore = a.newKinds|f.newKinds, a.tookBefore || f.tookBefore
	}
	a.announce = a.announce || f.announce && !f.announced
	if f.err == nil {
		a.backoff.Reset()
		a.failing = false
		return
	}
	a.notBefore = now.Add(max(a.backoff.NextBackOff(), minWait))
	if !a.failing {
		l.d.Log.Error("cannot record acknowledgements; retrying", "server", l.name, "err", f.err)
	}
	a.failing = true
}

// countSettled adds a recorded settlement to the counters and unblocks its lane.
func (l *loop) countSettled(s *Settlement) {
	h := &l.health
	h.Entries += s.Entries
	h.Bytes += s.Raw
	h.Withheld += s.Withheld
	h.Items += s.Items
	h.Unwanted += s.Unwanted
	h.Gone += s.Gone
	h.Dead += int64(len(s.Dead))
	lane := l.lanes.get(laneKey{s.Stream, s.Blobs})
	if lane.unflushed--; lane.unflushed == 0 {
		lane.blocked, lane.acknowledgedTo = false, 0
	}
	l.lanes.dropIdle(lane)
}

// stop waits for requests in flight, at most stopGrace, then records acknowledgements.
func (l *loop) stop(cancel context.CancelFunc) {
	grace := time.AfterFunc(stopGrace, cancel)
	defer grace.Stop()
	l.d.hasty.Add(1)
	l.acks.hurry()
	for l.inFlight > 0 || l.acks.running {
		select {
		case r := <-l.results:
			l.handleResult(r)
		case f := <-l.flushes:
			l.flushFinished(f)
		}
	}
	l.acks.notBefore = time.Time{}
	ctx, done := context.WithTimeout(context.Background(), stopFlush)
	defer done()
	l.flush(ctx)
	if l.acks.running {
		l.flushFinished(<-l.flushes)
	}
	l.publish()
}
