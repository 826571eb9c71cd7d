package outbox

import (
	"context"
	"sync"
	"time"
)

const (
	stopGrace = time.Second     // for what is in flight at a stop
	stopFlush = 2 * time.Second // for the last acknowledgements
)

// loop owns everything a running drainer knows. Its goroutine alone touches it; requests and flushes run in
// goroutines of their own and come back through channels.
type loop struct {
	d      *Drainer
	server string // for the log
	codecs *codecs
	sender *sender

	gate   gate
	known  knowledge
	lanes  lanes
	begun  []*lane // lanes with work to be gone on with, the one that waits longest first
	acks   acks
	health Health

	inFlight  int
	uploads   int    // of them, those of blobs
	oldest    bool   // the last Pick asked for the oldest
	turn      int    // picks so far
	worst     *lane  // failed last; others go first
	successes uint64 // requests acknowledged since start

	probeAt    time.Time // next question to a server that is still unknown
	probeWaits interface{ NextBackOff() time.Duration }

	results chan result
	flushes chan flushed
	wg      sync.WaitGroup
}

func newLoop(d *Drainer, learned Learned) *loop {
	c := &codecs{}
	l := &loop{
		d: d, server: d.dest.URL.String(), codecs: c,
		sender: newSender(d, c),
		gate:   newGate(), lanes: lanes{}, acks: acks{waits: newBackOff(time.Minute)},
		known:      knowledge{Learned: learned, plain: d.dest.Plain, proven: learned.Took && learned.Config == d.dest.fingerprint()},
		probeWaits: newBackOff(time.Minute),
		health:     d.Health(),
		results:    make(chan result), flushes: make(chan flushed),
	}
	return l
}

// run is the loop: react to one thing, start whatever may go now, sleep.
func (l *loop) run(ctx context.Context) error {
	requests, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer l.wg.Wait()
	defer cancel()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		l.publish()
		l.start(requests)
		l.flush(requests)
		l.sleepUntil(timer)
		select {
		case <-ctx.Done():
			l.stop(cancel)
			return nil
		case <-l.d.wake:
		case <-l.d.retry:
			l.wakeUp(l.d.changed.Swap(false))
		case r := <-l.results:
			l.finish(r)
		case f := <-l.flushes:
			l.settled(f)
		case <-timer.C:
		}
	}
}

// sleepUntil sets the timer to the next moment at which something falls due by itself.
func (l *loop) sleepUntil(timer *time.Timer) {
	now := time.Now()
	next := now.Add(time.Hour)
	sooner := func(t time.Time) {
		if t.After(now) && t.Before(next) {
			next = t
		}
	}
	sooner(l.gate.next())
	sooner(l.acks.next(l.d))
	sooner(l.probeAt)
	for _, lane := range l.lanes {
		sooner(lane.notBefore)
	}
	timer.Reset(next.Sub(now))
}

// wakeUp forgets everything that holds requests back, except the server's own Retry-After.
func (l *loop) wakeUp(configChanged bool) {
	now := time.Now()
	l.gate.wake(now)
	l.probeAt = time.Time{}
	for _, lane := range l.lanes {
		lane.pass()
		l.lanes.drop(lane)
	}
	if !configChanged {
		return
	}
	k := &l.known
	l.acks.learn = l.acks.learn || k.MaxRaw != 0
	k.MaxRaw, k.MaxRawAt = 0, 0
	k.noCoding, k.proven, k.refusedInRow = false, false, 0
	k.barred, k.itemsRefused = 0, 0
}

// start sends as much as may go now.
func (l *loop) start(ctx context.Context) {
	for !l.d.paused.Load() {
		now := time.Now()
		most := l.d.InFlight
		if l.known.unknown() {
			most = 1 // what the first answer says decides what the others may carry
		}
		if !l.gate.allows(now, l.inFlight, most) {
			return
		}
		if l.known.age(now) {
			l.acks.learn = true
		}
		lane, last := l.next(now)
		if lane == nil {
			l.ask(ctx, now)
			return
		}
		l.send(ctx, lane, last)
	}
}

// next chooses a lane, and says how far its stream goes when its rows are still to be fetched. What was begun goes
// first, which also bounds it; then live lines and the backlog take turns. The lane that failed last goes last, for
// it may be the only one that does.
func (l *loop) next(now time.Time) (*lane, uint64) {
	worst := l.worst
	for range 2 {
		for i, lane := range l.begun {
			if (worst == nil || lane.laneKey != worst.laneKey) && !now.Before(lane.notBefore) {
				l.begun = append(l.begun[:i:i], l.begun[i+1:]...)
				return lane, 0
			}
		}
		if len(l.begun) < l.d.InFlight {
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

// pick asks the queue for a stream that has something to send. Blobs may take half of what may be in flight, and turns
// with the rest.
func (l *loop) pick(now time.Time, not *lane) (*lane, uint64) {
	l.turn++
	blobs := l.uploads < max(l.d.InFlight/2, 1)
	if blobs && l.turn%3 == 0 {
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

// pickOf asks for a stream that has blobs, or anything else.
func (l *loop) pickOf(now time.Time, not *lane, blobs bool) (*lane, uint64) {
	var last uint64
	skip := func(stream, seq uint64) bool {
		last = seq
		key := laneKey{stream, blobs}
		lane := l.lanes[key]
		return not != nil && not.laneKey == key || lane != nil && lane.skip(seq, now)
	}
	pick := l.d.queue.PickBlobs
	if !blobs {
		l.oldest = !l.oldest
		pick = func(dest string, skip func(stream, last uint64) bool) (uint64, bool) {
			return l.d.queue.Pick(dest, l.oldest, skip)
		}
	}
	id, ok := pick(l.d.dest.Key, skip)
	if !ok {
		return nil, 0
	}
	return l.lanes.get(laneKey{id, blobs}), last
}

// ask probes a server whose abilities are not known, when that is what everything waits for.
func (l *loop) ask(ctx context.Context, now time.Time) {
	if !l.known.unknown() || l.inFlight > 0 || now.Before(l.probeAt) {
		return
	}
	waits := false
	for _, lane := range l.lanes {
		waits = waits || lane.waits
	}
	if !waits {
		return
	}
	l.inFlight++
	round := l.gate.round
	l.wg.Go(func() { l.results <- result{probe: true, reply: l.sender.probe(ctx), round: round} })
}

// flush records what is due.
func (l *loop) flush(ctx context.Context) {
	a := &l.acks
	if !a.due(time.Now(), l.d, l.inFlight == 0) {
		return
	}
	var learned *Learned
	if a.learn {
		copied := l.known.Learned
		learned = &copied
	}
	tell := a.tell
	for i := range a.pending {
		s := &a.pending[i]
		// Sent before the announcement, answered after it.
		tell = tell || l.known.Extension && (s.Plain || s.Withheld > 0)
	}
	todo := flushed{settlements: a.pending, learned: learned, telling: tell, begins: a.begins, again: a.again}
	a.pending, a.raw, a.learn, a.tell, a.running = nil, 0, false, false, true
	a.begins, a.again = 0, false
	l.wg.Go(func() { l.flushes <- l.d.flush(ctx, todo) })
}

// settled takes in what became of a flush; what failed is tried again.
func (l *loop) settled(f flushed) {
	now := time.Now()
	a := &l.acks
	a.running = false
	if f.settled {
		for i := range f.settlements {
			l.count(&f.settlements[i])
		}
	} else {
		a.pending = append(f.settlements, a.pending...)
		a.since = now
		for i := range f.settlements {
			a.raw += f.settlements[i].Raw
		}
	}
	a.learn = a.learn || f.learned != nil && !f.saved
	if f.begins != 0 && !f.begun {
		a.begins, a.again = a.begins|f.begins, a.again || f.again
	}
	a.tell = a.tell || f.telling && !f.told
	if f.err == nil {
		a.waits.Reset()
		a.failing = false
		return
	}
	a.notYet = now.Add(max(a.waits.NextBackOff(), shortestWait))
	if !a.failing {
		l.d.Log.Error("cannot record deliveries; trying again", "server", l.server, "err", f.err)
	}
	a.failing = true
}

// count takes a recorded settlement into the counters, and lets its lane go on.
func (l *loop) count(s *Settlement) {
	h := &l.health
	h.Entries += s.Entries
	h.Bytes += s.Raw
	h.Withheld += s.Withheld
	h.Items += s.Items
	h.Unwanted += s.Unwanted
	h.Gone += s.Gone
	h.Dead += int64(len(s.Dead))
	lane := l.lanes.get(laneKey{s.Stream, s.Blobs})
	if lane.unsettled--; lane.unsettled == 0 {
		lane.hold, lane.after = false, 0
	}
	l.lanes.drop(lane)
}

// stop waits shortly for what is in flight, then records what was acknowledged.
func (l *loop) stop(cancel context.CancelFunc) {
	grace := time.AfterFunc(stopGrace, cancel)
	defer grace.Stop()
	for l.inFlight > 0 || l.acks.running {
		select {
		case r := <-l.results:
			l.finish(r)
		case f := <-l.flushes:
			l.settled(f)
		}
	}
	l.acks.notYet = time.Time{}
	ctx, done := context.WithTimeout(context.Background(), stopFlush)
	defer done()
	l.flush(ctx)
	if l.acks.running {
		l.settled(<-l.flushes)
	}
	l.publish()
}
