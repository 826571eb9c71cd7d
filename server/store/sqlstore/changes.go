package sqlstore

import (
	"context"
	"sync"

	"github.com/ccship/ccship/server"
)

// changesRoom is how many changes wait for a listener; more are dropped for it.
const changesRoom = 256

// Changes announces stored changes to listeners in this process. The zero value is ready; safe for concurrent use.
type Changes struct {
	mu        sync.Mutex
	listeners map[chan server.Change]struct{} // sent to and closed with mu held
}

// Listen returns a channel that gets changes until ctx is done, which closes it.
func (c *Changes) Listen(ctx context.Context) <-chan server.Change {
	ch := make(chan server.Change, changesRoom)
	c.mu.Lock()
	if c.listeners == nil {
		c.listeners = map[chan server.Change]struct{}{}
	}
	c.listeners[ch] = struct{}{}
	c.mu.Unlock()
	context.AfterFunc(ctx, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.listeners, ch)
		close(ch)
	})
	return ch
}

// Tell never blocks.
func (c *Changes) Tell(change server.Change) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for ch := range c.listeners {
		select {
		case ch <- change:
		default:
		}
	}
}
