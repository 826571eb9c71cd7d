package lines

import (
	"context"
	"sync"
	"time"
)

// lookupPace is how far apart statements of Lookups begin in a crowd.
const lookupPace = 10 * time.Millisecond

// Lookups lets lookups that come in a crowd share a statement. Each sees the database as it is after the lookup began.
// The zero value is ready once Ask is set. Safe for concurrent use.
type Lookups[K comparable, V any] struct {
	// Ask looks up keys, of which none is there twice. What it does not find is missing in its answer.
	Ask func(ctx context.Context, keys []K) (map[K]V, error)

	mu    sync.Mutex
	crowd meter              // guarded by mu, as all below
	began time.Time          // when the last statement began
	next  *queueLookup[K, V] // waits to begin, and others may join; nil: none does
}

// queueLookup is one statement.
type queueLookup[K comparable, V any] struct {
	keys  map[K]bool
	calls int
	done  chan struct{} // closed when it has an answer
	found map[K]V
	err   error
}

// Find looks up a key. It waits for others only in a crowd. ok is false if there is none.
func (l *Lookups[K, V]) Find(ctx context.Context, key K) (v V, ok bool, err error) {
	l.mu.Lock()
	now := time.Now()
	l.crowd.count(now)
	x := l.next
	switch wait := lookupPace - now.Sub(l.began); {
	case x != nil:
		x.keys[key] = true
		x.calls++
	case wait > 0 && l.crowd.waits(now):
		x = &queueLookup[K, V]{keys: map[K]bool{key: true}, calls: 1, done: make(chan struct{})}
		l.next = x
		// A caller that goes away takes nobody's answer with it.
		time.AfterFunc(wait, func() { l.begin(context.WithoutCancel(ctx), x) })
	default:
		l.began = now
		l.mu.Unlock()
		found, err := l.Ask(ctx, []K{key})
		v, ok = found[key]
		return v, ok, err
	}
	l.mu.Unlock()
	select {
	case <-x.done:
		v, ok = x.found[key]
		return v, ok, x.err
	case <-ctx.Done():
		return v, false, ctx.Err()
	}
}

// begin asks for all keys of a lookup that waited.
func (l *Lookups[K, V]) begin(ctx context.Context, x *queueLookup[K, V]) {
	l.mu.Lock()
	l.next, l.began = nil, time.Now()
	l.crowd.together(x.calls, l.began)
	l.mu.Unlock()
	keys := make([]K, 0, len(x.keys))
	for key := range x.keys {
		keys = append(keys, key)
	}
	x.found, x.err = l.Ask(ctx, keys)
	close(x.done)
}
