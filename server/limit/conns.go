package limit

import (
	"container/list"
	"context"
	"net"
	"net/http"
	"sync"
)

// Conns limits open connections. When there are too many, it closes the oldest that has not made a request yet, else
// the one that has been idle longest, or, where these are more, the one that has been longest in a request of nobody
// who is known: one whose body never ends, for example. So thousands of such connections do not displace those of
// users. Safe for concurrent use.
type Conns struct {
	max int

	mu   sync.Mutex
	open map[net.Conn]place // guarded by mu, as is all below
	mute *list.List         // of net.Conn that have not made a request, the oldest first
	idle *list.List         // of net.Conn between requests, the longest idle first
	busy *list.List         // of net.Conn in a request whose user is not known, the oldest request first
}

// place is where a connection stands; the zero place while a request of a known user is in work.
type place struct {
	list *list.List
	at   *list.Element
}

func (p place) leave() {
	if p.list != nil {
		p.list.Remove(p.at)
	}
}

// NewConns bounds connections to max.
func NewConns(max int) *Conns {
	return &Conns{max: max, open: map[net.Conn]place{}, mute: list.New(), idle: list.New(), busy: list.New()}
}

// Changed is for http.Server.ConnState.
func (c *Conns) Changed(conn net.Conn, state http.ConnState) {
	var surplus net.Conn
	c.mu.Lock()
	c.open[conn].leave()
	switch state {
	case http.StateNew:
		c.open[conn] = place{c.mute, c.mute.PushBack(conn)}
		if len(c.open) > c.max {
			surplus = c.surplus()
		}
	case http.StateIdle:
		c.open[conn] = place{c.idle, c.idle.PushBack(conn)}
	case http.StateActive:
		c.open[conn] = place{c.busy, c.busy.PushBack(conn)}
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
	return context.WithValue(ctx, inRequest{}, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if p := c.open[conn]; p.list == c.busy {
			p.leave()
			c.open[conn] = place{}
		}
	})
}

// Known says that a request's user is known: its connection stays open until the request is answered.
func Known(ctx context.Context) {
	if known, ok := ctx.Value(inRequest{}).(func()); ok {
		known()
	}
}

// surplus picks the connection to close: never one with a request of a known user in progress, at worst the newest one.
// The caller holds mu.
func (c *Conns) surplus() net.Conn {
	from := c.mute
	if from.Len() == 1 { // the only silent one has just arrived
		if c.busy.Len() > c.idle.Len() {
			from = c.busy
		} else if c.idle.Len() > 0 {
			from = c.idle
		}
	}
	conn := from.Remove(from.Front()).(net.Conn)
	delete(c.open, conn)
	return conn
}

// Count returns how many connections are open, and how many of them have no request.
func (c *Conns) Count() (open, idle int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.open), c.mute.Len() + c.idle.Len()
}
