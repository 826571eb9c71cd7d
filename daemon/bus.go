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
	busQueue   = 256 // events that may wait for one listener; then it is cut off
	mostListen = 64  // listeners at once
)

// bus hands events to whoever listens, and waits for nobody.
type bus struct {
	mu        sync.Mutex
	listeners map[chan control.Event]struct{} // guarded by mu
	bell      chan struct{}                   // someone listens who did not before
}

func newBus() *bus {
	return &bus{listeners: map[chan control.Event]struct{}{}, bell: make(chan struct{}, 1)}
}

// quiet says that nobody listens.
func (b *bus) quiet() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.listeners) == 0
}

// listen answers a channel that gets first and then every event, until ctx is done. The channel is closed then, or
// when its reader is so slow that one would be lost.
func (b *bus) listen(ctx context.Context, first control.Event) (<-chan control.Event, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.listeners) >= mostListen {
		return nil, control.NewError(control.CodeTooMany, "too many listen to events already", "end some of them").AsRetryable()
	}
	c := make(chan control.Event, busQueue)
	c <- stamped(first)
	b.listeners[c] = struct{}{}
	context.AfterFunc(ctx, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.cut(c)
	})
	select {
	case b.bell <- struct{}{}:
	default:
	}
	return c, nil
}

// cut ends a listener. The caller holds mu.
func (b *bus) cut(c chan control.Event) {
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
			b.cut(c)
		}
	}
}

// Committed publishes an event for a new transcript or a rewind, once the chunk is durable.
func (b *bus) Committed(c *tail.Chunk, d *route.Decision) {
	kind := control.EventTranscript
	if !d.New {
		kind = control.EventRewind
	}
	if !d.New && (c.From == c.Prev || d.DestinationChanged) || b.quiet() {
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
