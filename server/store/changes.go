package store

import (
	"context"
	"sync"

	"github.com/ccship/ccship/server"
)

// changesRoom is how many changes wait for a listener; more are dropped for it.
const changesRoom = 256

// changes announces stored changes to listeners in this process. The zero value is ready; safe for concurrent use.
type changes struct {
	mu        sync.Mutex
	listeners map[chan server.Change]struct{} // sent to and closed with mu held
}

// listen returns a channel that gets changes until ctx is done, which closes it.
func (c *changes) listen(ctx context.Context) <-chan server.Change {
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

// tell never blocks.
func (c *changes) tell(change server.Change) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for ch := range c.listeners {
		select {
		case ch <- change:
		default:
		}
	}
}

// Changes implements server.Watcher for what this process stores.
func (s *SQLite) Changes(ctx context.Context) (<-chan server.Change, error) {
	return s.changes.listen(ctx), nil
}
