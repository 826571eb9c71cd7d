package limit

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/ccship/ccship/server/wire"
)

const (
	// DefaultIntake is how many bytes of lines that daemons send are in memory at once, before they are stored.
	DefaultIntake = 128 << 20
	// DefaultQueue is how many requests with lines wait to be read.
	DefaultQueue = 2048

	// leastQueue is how many of one user may wait in a short queue too.
	leastQueue = 64

	// liveBody is the largest body, as sent, that counts as lines just written. What is longer is an import.
	liveBody = 64 << 10
	// leastCharge is what a request costs at least: its buffers, whatever it sends.
	leastCharge = 64 << 10
	// unpacked is how many times longer a compressed body is taken to be until it is known.
	unpacked = 16
	// importsTurn: of so many requests that are let in while both wait, one is an import.
	importsTurn = 8
	// retryMost is the longest time, in seconds, after which a refused client is asked to come back.
	retryMost = 30
)

// BusyError refuses a request because too many wait.
type BusyError struct {
	refusal error
	seconds int
}

func (b *BusyError) Error() string { return b.refusal.Error() }
func (b *BusyError) Unwrap() error { return b.refusal }

// Seconds returns when to try again.
func (b *BusyError) Seconds() int { return b.seconds }

// Intake is the queue before lines are read into memory. It bounds how many requests are worked on and how many bytes
// they hold; the others wait, with nothing read of their bodies, and when too many wait the next one is refused. Users
// take turns. Lines just written go before imports, which get one turn in importsTurn, and half of everything at most.
// Safe for concurrent use.
type Intake struct {
	most      load
	perUser   int // requests of one user that are worked on
	queueMost int
	queueEach int // of one user: each that waits holds a connection, and others need some

	mu      sync.Mutex
	held    load          // guarded by mu, as is all below
	imports load          // of held
	users   map[int64]int // requests that are worked on
	waiting [2][]*Pass    // live ones, imports; in the order in which they came
	last    [2]int64      // whose turn was last
	since   int           // live requests let in since an import was, while one waited
}

// load is a number of requests with their bytes.
type load struct {
	requests int
	bytes    int64
}

// Pass is a request that was let in. Leave gives back what it has.
type Pass struct {
	from  *Intake
	user  int64
	bytes int64
	kind  int // 0: live, 1: an import
	in    chan struct{}
}

// NewIntake lets in so many requests at once, of which one user may have half, holding so many bytes; queue may wait, a
// quarter of them of one user. 0 bytes or queue is the default.
func NewIntake(requests int, bytes int64, queue int) *Intake {
	if bytes <= 0 {
		bytes = DefaultIntake
	}
	if queue <= 0 {
		queue = DefaultQueue
	}
	return &Intake{most: load{requests, bytes}, perUser: max(2, requests/2), queueMost: queue,
		queueEach: max(queue/4, min(queue, leastQueue)), users: map[int64]int{}}
}

// Enter waits until a request may be read, at most for patience. Its error is a *BusyError or the context's.
func (i *Intake) Enter(r *http.Request, user int64, patience time.Duration) (*Pass, error) {
	p := &Pass{from: i, user: user, in: make(chan struct{})}
	if p.bytes = i.charge(r); r.ContentLength < 0 || r.ContentLength > liveBody {
		p.kind = 1
	}
	if err := i.queue(p); err != nil {
		return nil, err
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	var err error
	select {
	case <-p.in:
		return p, nil
	case <-r.Context().Done():
		err = context.Cause(r.Context())
	case <-timer.C:
		err = i.busy()
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	at := slices.Index(i.waiting[p.kind], p)
	if at < 0 {
		return p, nil // let in just now
	}
	i.waiting[p.kind] = slices.Delete(i.waiting[p.kind], at, at+1)
	i.letIn()
	return nil, err
}

// charge returns how many bytes a request's body may take. A body beyond smallBody waits for a token of its own.
func (i *Intake) charge(r *http.Request) int64 {
	n := r.ContentLength
	switch {
	case n < 0 || n > smallBody:
		n = smallBody
	case r.Header.Get("Content-Encoding") != "":
		n *= unpacked
	}
	return i.fitting(n)
}

// fitting keeps a charge between the least and what an import may have.
func (i *Intake) fitting(n int64) int64 { return min(max(n, leastCharge), smallBody, i.most.bytes/2) }

func (i *Intake) queue(p *Pass) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.waiting[p.kind] = append(i.waiting[p.kind], p)
	i.letIn()
	if n := len(i.waiting[0]) + len(i.waiting[1]); n > i.queueMost || i.waitingOf(p.user) > i.queueEach {
		if at := slices.Index(i.waiting[p.kind], p); at >= 0 {
			i.waiting[p.kind] = slices.Delete(i.waiting[p.kind], at, at+1)
			return i.busyFor(n)
		}
	}
	return nil
}

// waitingOf counts a user's requests in the queue. The caller has the lock.
func (i *Intake) waitingOf(user int64) (n int) {
	for _, p := range slices.Concat(i.waiting[0], i.waiting[1]) {
		if p.user == user {
			n++
		}
	}
	return n
}

// letIn lets in those that wait, as far as there is space. The caller has the lock.
func (i *Intake) letIn() {
	for {
		first, second := i.next(0), i.next(1)
		importsNow := second != nil && (first == nil || i.since >= importsTurn-1)
		switch {
		case importsNow && i.fits(second):
			i.since = 0
			i.admit(second)
		case first != nil && !importsNow && i.fits(first):
			if i.since++; second == nil {
				i.since = 0
			}
			i.admit(first)
		default:
			return
		}
	}
}

// next returns whose turn it is among those of a kind whose users may have more: the first one of the user who follows,
// in the order of the queue, the one who was last. An import has to wait while imports have half of everything.
func (i *Intake) next(kind int) *Pass {
	var chosen *Pass
	for _, p := range i.waiting[kind] {
		if i.users[p.user] >= i.perUser || kind == 1 && !i.fitsImport(p) {
			continue
		}
		if p.user != i.last[kind] {
			return p
		}
		if chosen == nil {
			chosen = p
		}
	}
	return chosen
}

func (i *Intake) fits(p *Pass) bool {
	return i.held.requests < i.most.requests && (i.held.bytes+p.bytes <= i.most.bytes || i.held.requests == 0)
}

func (i *Intake) fitsImport(p *Pass) bool {
	half := load{max(1, i.most.requests/2), i.most.bytes / 2}
	return i.imports.requests == 0 || i.imports.requests < half.requests && i.imports.bytes+p.bytes <= half.bytes
}

func (i *Intake) admit(p *Pass) {
	at := slices.Index(i.waiting[p.kind], p)
	i.waiting[p.kind] = slices.Delete(i.waiting[p.kind], at, at+1)
	i.last[p.kind] = p.user
	i.users[p.user]++
	i.hold(p, 1, p.bytes)
	close(p.in)
}

func (i *Intake) hold(p *Pass, requests int, bytes int64) {
	i.held.requests += requests
	i.held.bytes += bytes
	if p.kind == 1 {
		i.imports.requests += requests
		i.imports.bytes += bytes
	}
}

// Resize says how long the request's body is, once that is known.
func (p *Pass) Resize(bytes int64) {
	p.from.mu.Lock()
	defer p.from.mu.Unlock()
	now := p.from.fitting(bytes)
	p.from.hold(p, 0, now-p.bytes)
	p.bytes = now
	p.from.letIn()
}

// Leave gives back what the request has. Call it once.
func (p *Pass) Leave() {
	i := p.from
	i.mu.Lock()
	defer i.mu.Unlock()
	i.hold(p, -1, -p.bytes)
	if i.users[p.user]--; i.users[p.user] == 0 {
		delete(i.users, p.user)
	}
	i.letIn()
}

func (i *Intake) busy() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.busyFor(len(i.waiting[0]) + len(i.waiting[1]))
}

// busyFor asks to come back the later, the more wait.
func (i *Intake) busyFor(waiting int) error {
	return &BusyError{wire.Refuse(http.StatusServiceUnavailable, "busy",
		"the server has as many lines to store as it can hold; nothing is lost, send them again later"),
		min(1+waiting/max(1, i.most.requests), retryMost)}
}

// IntakeState is how full an Intake is.
type IntakeState struct {
	Requests int   // worked on
	Bytes    int64 // that they hold
	Live     int   // lines just written that wait
	Imports  int   // imports that wait
}

// State returns how full it is.
func (i *Intake) State() IntakeState {
	i.mu.Lock()
	defer i.mu.Unlock()
	return IntakeState{i.held.requests, i.held.bytes, len(i.waiting[0]), len(i.waiting[1])}
}
