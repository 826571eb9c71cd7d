package control

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// streaming is a Daemon whose events a test sends.
type streaming struct {
	Daemon
	events func(ctx context.Context) (<-chan Event, error)
}

func (s *streaming) Events(ctx context.Context) (<-chan Event, error) { return s.events(ctx) }

func TestEventsCross(t *testing.T) {
	gone := make(chan struct{})
	c := Dial(serve(t, &streaming{events: func(ctx context.Context) (<-chan Event, error) {
		events := make(chan Event)
		go func() {
			defer close(gone)
			for i := int64(0); ; i++ {
				select {
				case events <- Event{SchemaVersion: 1, Type: EventAcknowledged, Acknowledged: &Progress{Entries: i}}:
				case <-ctx.Done():
					return
				}
			}
		}()
		return events, nil
	}}))
	enough := errors.New("enough")
	n := int64(0)
	err := c.Events(t.Context(), func(e Event) error {
		if e.Type != EventAcknowledged || e.Acknowledged.Entries != n {
			t.Errorf("event %d: %+v", n, e)
		}
		if n++; n == 1000 {
			return enough
		}
		return nil
	})
	if !errors.Is(err, enough) {
		t.Errorf("Events: %v", err)
	}
	<-gone // the daemon learns that nobody listens any more
}

// A stream that the daemon ends is over for the client too; an error before it keeps its code.
func TestEventsEnd(t *testing.T) {
	busy := &Error{Code: CodeTooMany, Message: "too many", Hint: "end some"}
	tries := 0
	c := Dial(serve(t, &streaming{events: func(context.Context) (<-chan Event, error) {
		if tries++; tries > 1 {
			return nil, busy
		}
		events := make(chan Event, 1)
		events <- Event{Type: EventStatus}
		close(events)
		return events, nil
	}}))
	seen := 0
	if err := c.Events(t.Context(), func(Event) error { seen++; return nil }); err != nil || seen != 1 {
		t.Errorf("Events: %v after %d", err, seen)
	}
	err := c.Events(t.Context(), nil)
	if got, ok := errors.AsType[*Error](err); !ok || *got != *busy {
		t.Errorf("Events: %v, want %v", err, busy)
	}
}

// A stream in which nothing happens lives on; a reader that takes nothing is cut off.
func TestEventsBeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		d := &streaming{events: func(ctx context.Context) (<-chan Event, error) {
			events := make(chan Event)
			go func() {
				<-time.After(time.Hour)
				events <- Event{Type: EventStatus}
				<-ctx.Done()
				close(events)
			}()
			return events, nil
		}}
		go func() {
			ended <- newPipeEndpoint(d).Serve(ctx, &pipeListener{conn: there, closed: make(chan struct{})})
		}()
		begun := time.Now()
		enough := errors.New("enough")
		if err := pipeClient(here).Events(t.Context(), func(Event) error { return enough }); !errors.Is(err, enough) || time.Since(begun) != time.Hour {
			t.Errorf("%v after %v, want an event after an hour", err, time.Since(begun))
		}
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		ctx, cancel := context.WithCancel(t.Context())
		ended, cut := make(chan error, 1), make(chan time.Duration, 1)
		begun := time.Now()
		d := &streaming{events: func(ctx context.Context) (<-chan Event, error) {
			events := make(chan Event)
			context.AfterFunc(ctx, func() { cut <- time.Since(begun) })
			go func() {
				select {
				case events <- Event{Type: EventStatus, Advice: &AdviceEvent{Advice: Advice{Text: strings.Repeat("x", 1<<20)}}}:
				case <-ctx.Done():
				}
			}()
			return events, nil
		}}
		go func() {
			ended <- newPipeEndpoint(d).Serve(ctx, &pipeListener{conn: there, closed: make(chan struct{})})
		}()
		if _, err := fmt.Fprint(here, "GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if after := <-cut; after != eventWait {
			t.Errorf("the reader was cut off after %v, want %v", after, eventWait)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Serve: %v", err)
		}
		here.Close()
	})
}
