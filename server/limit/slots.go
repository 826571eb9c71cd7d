// Package limit bounds what one client, and all together, can take of the server: connections, requests in progress,
// memory and time of request bodies, and the searches, sums and lists of the store, which all readers go through.
package limit

import (
	"container/list"
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/ccship/ccship/server/wire"
)

// Slots limits what is in use at once, in total and for each user, so that a client that is slow or asks too much
// leaves space for the others: one slot is a request, a snapshot or a byte. Callers get them in turn; one that waits
// for slots of its own user holds up no other user. Safe for concurrent use.
type Slots struct {
	total, perUser int64

	mu      sync.Mutex
	held    int64           // guarded by mu, as are the others
	users   map[int64]int64 // held
	waiting []*want
}

// want is a request for slots.
type want struct {
	user, n int64
	granted chan struct{}
}

// mostWaiting is how many callers of one user wait. Each holds a connection, and others need some.
const mostWaiting = 256

// NewSlots makes n slots, of which one user may hold perUser; 0: half of them, two at least.
func NewSlots(n, perUser int64) *Slots {
	if perUser == 0 {
		perUser = max(2, n/2)
	}
	return &Slots{total: n, perUser: perUser, users: map[int64]int64{}}
}

// Acquire waits for n slots, at most for patience, and not at all where mostWaiting of this user wait already. Who
// wants more than a user may hold gets all of these. The caller calls release once. An error is a *wire.RefusalError,
// or the context's.
func (s *Slots) Acquire(ctx context.Context, user, n int64, patience time.Duration) (release func(), err error) {
	w := &want{user, min(n, s.perUser), make(chan struct{})}
	s.mu.Lock()
	s.waiting = append(s.waiting, w)
	s.grant()
	if s.waitingOf(user) > mostWaiting {
		patience = 0
	}
	s.mu.Unlock()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-w.granted:
	case <-ctx.Done():
		err = ctx.Err()
	case <-timer.C:
		err = wire.Refuse(http.StatusServiceUnavailable, "busy", "too many requests at once")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.waiting, w); i >= 0 {
		s.waiting = slices.Delete(s.waiting, i, i+1)
		s.grant() // others waited for this one's turn
		return nil, err
	}
	return func() { s.release(w) }, nil // granted, however late it is
}

// waitingOf counts a user's callers that wait. The caller holds mu.
func (s *Slots) waitingOf(user int64) (n int) {
	for _, w := range s.waiting {
		if w.user == user {
			n++
		}
	}
	return n
}

func (s *Slots) release(w *want) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held -= w.n
	if s.users[w.user] -= w.n; s.users[w.user] == 0 {
		delete(s.users, w.user)
	}
	s.grant()
}

// grant gives slots to those whose turn it is. The caller holds mu.
func (s *Slots) grant() {
	full := false
	s.waiting = slices.DeleteFunc(s.waiting, func(w *want) bool {
		if full || s.users[w.user]+w.n > s.perUser {
			return false
		}
		if full = s.held+w.n > s.total; full {
			return false
		}
		s.held += w.n
		s.users[w.user] += w.n
		close(w.granted)
		return true
	})
}

// Busy returns how many slots are in use.
func (s *Slots) Busy() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held
}

// Rates bounds how many requests one user makes a minute. Safe for concurrent use; nil bounds nothing.
type Rates struct {
	perMinute int

	mu    sync.Mutex
	users map[int64]*rate // guarded by mu, as is what it holds
	swept time.Time
}

// rate is what one user may still ask for.
type rate struct {
	left float64
	at   time.Time
}

// NewRates bounds requests to so many a minute, which may come at once; 0: no bound.
func NewRates(perMinute int) *Rates {
	if perMinute <= 0 {
		return nil
	}
	return &Rates{perMinute: perMinute, users: map[int64]*rate{}}
}

// Take counts a request. Its error is a *wire.RefusalError with 429: the client is to try again later.
func (r *Rates) Take(user int64, now time.Time) error {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sweep(now)
	u := r.users[user]
	if u == nil {
		u = &rate{left: float64(r.perMinute), at: now}
		r.users[user] = u
	}
	if d := now.Sub(u.at); d > 0 {
		u.left, u.at = min(float64(r.perMinute), u.left+d.Minutes()*float64(r.perMinute)), now
	}
	if u.left < 1 {
		return wire.Refuse(http.StatusTooManyRequests, "quota",
			fmt.Sprintf("this user made more than %d requests in a minute, the server's limit; try again later", r.perMinute))
	}
	u.left--
	return nil
}

// sweep forgets users who may ask for as much as a new one.
func (r *Rates) sweep(now time.Time) {
	if now.Sub(r.swept) < time.Minute {
		return
	}
	r.swept = now
	for user, u := range r.users {
		if now.Sub(u.at) >= time.Minute {
			delete(r.users, user)
		}
	}
}

// Conns limits open connections. When there are too many, it closes the oldest that has not made a request yet, else
// the one that has been idle longest, or, where these are more, the one that has been longest in a request of nobody
// who is known: one whose body never ends, for example. Where all are in requests of users, it is the oldest of the
// user who has most. So thousands of such connections do not displace those of others. Safe for concurrent use.
type Conns struct {
	max int

	mu    sync.Mutex
	open  map[net.Conn]place   // guarded by mu, as is all below
	mute  *list.List           // of net.Conn that have not made a request, the oldest first
	idle  *list.List           // of net.Conn between requests, the longest idle first
	busy  *list.List           // of net.Conn in a request whose user is not known, the oldest request first
	users map[int64]*list.List // of net.Conn in a user's requests, the oldest first; none is empty
}

// place is where a connection stands.
type place struct {
	list  *list.List
	at    *list.Element
	user  int64
	known int // requests of that user in work
}

// leave takes a connection out of its list. The caller holds mu, as for enter.
func (c *Conns) leave(conn net.Conn) {
	p, open := c.open[conn]
	if !open {
		return
	}
	if p.list.Remove(p.at); p.known > 0 && p.list.Len() == 0 {
		delete(c.users, p.user)
	}
}

func (c *Conns) enter(conn net.Conn, l *list.List) {
	c.open[conn] = place{list: l, at: l.PushBack(conn)}
}

// NewConns bounds connections to max.
func NewConns(max int) *Conns {
	return &Conns{max: max, open: map[net.Conn]place{}, mute: list.New(), idle: list.New(), busy: list.New(),
		users: map[int64]*list.List{}}
}

// Changed is for http.Server.ConnState.
func (c *Conns) Changed(conn net.Conn, state http.ConnState) {
	var surplus net.Conn
	c.mu.Lock()
	c.leave(conn)
	switch state {
	case http.StateNew:
		c.enter(conn, c.mute)
		if len(c.open) > c.max {
			surplus = c.surplus()
		}
	case http.StateIdle:
		c.enter(conn, c.idle)
	case http.StateActive:
		c.enter(conn, c.busy)
	case http.StateClosed, http.StateHijacked:
		delete(c.open, conn)
	}
	c.mu.Unlock()
	if surplus != nil {
		_ = surplus.Close() // its own goroutine notices
	}
}

// inRequest is the key, in a request's context, of a func() that says that its user is known.
type inRequest struct{}

// Context is for http.Server.ConnContext.
func (c *Conns) Context(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, inRequest{}, func(user int64) (answered func()) {
		c.known(conn, user, 1)
		return func() { c.known(conn, user, -1) }
	})
}

// known counts a user's requests. A connection without them is one of nobody again: the rest of a body that was refused
// may never come.
func (c *Conns) known(conn net.Conn, user int64, more int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p, open := c.open[conn]
	if !open || p.known+more < 0 { // closed, or idle: an HTTP/2 client ended the request before its answer
		return
	}
	if c.leave(conn); p.known+more == 0 {
		c.enter(conn, c.busy)
		return
	}
	if c.users[user] == nil {
		c.users[user] = list.New()
	}
	c.enter(conn, c.users[user])
	now := c.open[conn]
	now.user, now.known = user, p.known+more
	c.open[conn] = now
}

// Known says whose request it is, until answered is called.
func Known(ctx context.Context, user int64) (answered func()) {
	if known, ok := ctx.Value(inRequest{}).(func(int64) func()); ok {
		return known(user)
	}
	return func() {}
}

// surplus picks the connection to close, at worst the newest one. The caller holds mu.
func (c *Conns) surplus() net.Conn {
	from := c.mute
	if from.Len() == 1 { // the only silent one has just arrived
		if c.busy.Len() > c.idle.Len() {
			from = c.busy
		} else if c.idle.Len() > 0 {
			from = c.idle
		} else {
			for _, of := range c.users {
				if of.Len() > from.Len() {
					from = of
				}
			}
		}
	}
	conn := from.Front().Value.(net.Conn)
	c.leave(conn)
	delete(c.open, conn)
	return conn
}

// Count returns how many connections are open, and how many of them have no request.
func (c *Conns) Count() (open, idle int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.open), c.mute.Len() + c.idle.Len()
}

// eventPatience is how long a listener may take to read one event.
const eventPatience = 10 * time.Second

// Events is an answer of server-sent events.
type Events struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

// NewEvents begins an answer.
func NewEvents(w http.ResponseWriter) Events {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // nginx would keep events to itself
	return Events{w, http.NewResponseController(w)}
}

// Send writes an event or a comment, with a time limit.
func (e Events) Send(text string) error {
	_ = e.control.SetWriteDeadline(time.Now().Add(eventPatience))
	if _, err := e.w.Write([]byte(text)); err != nil {
		return fmt.Errorf("send event: %w", err)
	}
	return e.control.Flush()
}
