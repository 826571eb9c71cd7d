package server

import (
	"context"
	"fmt"
	"sync"
)

const (
	// hubRoom is how many changes wait for a listener.
	hubRoom = 64
	// maxListeners bounds clients of /api/events and pages that follow, maxListenersEach those of one user.
	maxListeners     = 512
	maxListenersEach = 64
)

// Hub subscribes once to a store and passes its changes to any number of listeners. Safe for concurrent use.
type Hub struct {
	source Watcher

	mu        sync.Mutex
	listeners map[*listener]struct{} // guarded by mu, as is over
	over      bool                   // Run has ended: no more changes
	admitted  int                    // guarded by mu, as is users
	users     map[int64]int          // of the admitted, those of each user that has any
}

type listener struct {
	filter func(Change) bool
	out    chan Change // sent to and closed with Hub.mu held
}

// NewHub makes a hub that passes on the changes of source while Run runs.
func NewHub(source Watcher) *Hub {
	return &Hub{source: source, listeners: map[*listener]struct{}{}, users: map[int64]int{}}
}

// Run passes changes on until ctx is done, which is no error. Then it closes every listener's channel, so that requests
// which listen can end. Call it once.
func (h *Hub) Run(ctx context.Context) error {
	defer h.close()
	changes, err := h.source.Changes(ctx)
	if err != nil {
		return fmt.Errorf("watch the store: %w", err)
	}
	for c := range changes {
		h.publish(c)
	}
	return nil
}

func (h *Hub) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.over = true
	for l := range h.listeners {
		close(l.out)
	}
	clear(h.listeners)
}

// Admit counts a listener of a user. Call leave once to end it. ErrTooManyListeners when there are too many.
func (h *Hub) Admit(user int64) (leave func(), err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.admitted >= maxListeners || h.users[user] >= maxListenersEach {
		return nil, ErrTooManyListeners
	}
	h.admitted++
	h.users[user]++
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.admitted--
		if h.users[user]--; h.users[user] == 0 {
			delete(h.users, user)
		}
	}, nil
}

// Listeners returns how many are admitted.
func (h *Hub) Listeners() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.admitted
}

// Listen returns changes that filter lets through (nil: all) until ctx is done, which closes the channel. A slow
// listener delays no other: its pending changes of one generation of a stream are merged, and when even those are too
// many, a single zero Change replaces them: anything may have changed.
func (h *Hub) Listen(ctx context.Context, filter func(Change) bool) <-chan Change {
	l := &listener{filter: filter, out: make(chan Change, hubRoom)}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over {
		close(l.out)
		return l.out
	}
	h.listeners[l] = struct{}{}
	context.AfterFunc(ctx, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if _, there := h.listeners[l]; there {
			delete(h.listeners, l)
			close(l.out)
		}
	})
	return l.out
}

func (h *Hub) publish(c Change) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for l := range h.listeners {
		if c.Stream != 0 && l.filter != nil && !l.filter(c) {
			continue
		}
		select {
		case l.out <- c:
		default:
			l.coalesce(c)
		}
	}
}

// coalesce takes back the changes that the listener has not received, merges them, and offers them again.
func (l *listener) coalesce(last Change) {
	type place struct {
		about              string
		stream, generation int64
	}
	at := map[place]int{}
	var waiting []Change
	for more := true; more; {
		var c Change
		select {
		case c = <-l.out:
		default:
			c, more = last, false
		}
		p := place{c.About, c.Stream, c.Generation}
		i, known := at[p]
		if !known {
			at[p] = len(waiting)
			waiting = append(waiting, c)
			continue
		}
		c.From, c.To = min(c.From, waiting[i].From), max(c.To, waiting[i].To)
		waiting[i] = c
	}
	if _, merged := at[place{}]; merged || len(waiting) > hubRoom {
		waiting = []Change{{At: last.At}}
	}
	for _, c := range waiting {
		l.out <- c // there is space: only the holder of mu sends
	}
}
