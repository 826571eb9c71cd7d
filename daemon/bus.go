package daemon

import (
	"context"
	"sync"
	"time"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/route"
	"github.com/ccship/ccship/tail"
)

const (
	queueLength   = 256 // events that may wait for one listener; then it is removed
	mostListeners = 64
)

// bus passes events to its listeners and never blocks. Safe for concurrent use.
type bus struct {
	mu        sync.Mutex
	listeners map[chan control.Event]struct{} // guarded by mu
	woken     chan struct{}                   // gets a value when a listener is added
}

// newBus makes a bus without listeners.
func newBus() *bus {
	return &bus{listeners: map[chan control.Event]struct{}{}, woken: make(chan struct{}, 1)}
}

// idle reports whether there are no listeners.
func (b *bus) idle() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.listeners) == 0
}

// Listen returns a channel that gets first and then every event, until ctx is done. The channel is then closed; it is
// also closed when its reader is so slow that an event would be lost.
func (b *bus) Listen(ctx context.Context, first control.Event) (<-chan control.Event, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.listeners) >= mostListeners {
		return nil, control.NewError(control.CodeTooMany, "too many listen to events already",
			"end some of them").AsRetryable()
	}
	c := make(chan control.Event, queueLength)
	c <- stamped(first)
	b.listeners[c] = struct{}{}
	context.AfterFunc(ctx, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.remove(c)
	})
	select {
	case b.woken <- struct{}{}:
	default:
	}
	return c, nil
}

// remove ends a listener. The caller holds mu.
func (b *bus) remove(c chan control.Event) {
	if _, ok := b.listeners[c]; ok {
		delete(b.listeners, c)
		close(c)
	}
}

func (b *bus) publish(e control.Event) {
	e = stamped(e)
	b.mu.Lock()
	defer b.mu.Unlock()
	for c := range b.listeners {
		select {
		case c <- e:
		default:
			b.remove(c)
		}
	}
}

// Committed publishes an event for a new transcript or a rewind, once the chunk is durable.
func (b *bus) Committed(c *tail.Chunk, d *route.Decision) {
	kind := control.EventTranscript
	if !d.New {
		kind = control.EventRewind
	}
	if !d.New && (c.From == c.Prev || d.DestinationChanged) || b.idle() {
		return
	}
	b.publish(control.Event{Type: kind, Transcript: &control.TranscriptEvent{
		Session: d.Facts.Stream.SessionID, Parent: d.Facts.Stream.Parent, Path: c.File.Path, Cwd: d.Facts.Stream.Cwd,
		Project: d.Facts.Stream.Project, Generation: c.To.Generation, Line: c.From.Line,
	}})
}

func stamped(e control.Event) control.Event {
	e.SchemaVersion = control.SchemaVersion
	if e.At.IsZero() {
		e.At = time.Now().UTC()
	}
	return e
}
