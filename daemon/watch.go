package daemon

import (
	"context"
	"reflect"
	"time"

	"github.com/ccship/ccship/daemon/control"
)

// interval is the time between two comparisons of the status.
const interval = 500 * time.Millisecond

// source provides the status and advice; *daemon.Daemon is one.
type source interface {
	Status(ctx context.Context) control.Status
}

// Subscribe returns a channel of events, the status first; see Listen.
func (b *bus) Subscribe(ctx context.Context, source source) (<-chan control.Event, error) {
	now := brief(source.Status(ctx))
	return b.Listen(ctx, control.Event{Type: control.EventStatus, Status: &now})
}

// Watch publishes changes of the status while a caller listens, until ctx is done.
func (b *bus) Watch(ctx context.Context, source source) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-b.woken:
		}
		tick.Reset(interval)
		last := source.Status(ctx)
		for !b.idle() {
			select {
			case <-ctx.Done():
				return nil
			case <-tick.C:
			}
			now := source.Status(ctx)
			b.publishChanges(&last, &now)
			last = now
		}
	}
}

func (b *bus) publishChanges(last, now *control.Status) {
	if s := brief(*now); !reflect.DeepEqual(s, brief(*last)) {
		b.publish(control.Event{Type: control.EventStatus, Status: &s})
	}
	if now.Sent.Entries != last.Sent.Entries {
		b.publish(control.Event{Type: control.EventAcknowledged, Acknowledged: &control.Progress{
			Entries: now.Sent.Entries - last.Sent.Entries, Bytes: now.Sent.Bytes - last.Sent.Bytes, Waiting: now.Outbox.Entries,
		}})
	}
	for _, n := range without(last.Advice, now.Advice) {
		b.publish(control.Event{Type: control.EventAdvice, Advice: &control.AdviceEvent{Advice: n, Gone: true}})
	}
	for _, n := range without(now.Advice, last.Advice) {
		b.publish(control.Event{Type: control.EventAdvice, Advice: &control.AdviceEvent{Advice: n}})
	}
}

// without returns what is in a and not in b.
func without(a, b []control.Advice) (only []control.Advice) {
	has := make(map[control.Advice]bool, len(b))
	for _, n := range b {
		has[n] = true
	}
	for _, n := range a {
		if !has[n] {
			only = append(only, n)
		}
	}
	return only
}

// brief returns a status in short.
func brief(s control.Status) control.StatusEvent {
	short := control.StatusEvent{State: s.State, Pause: s.Pause, Servers: []control.ServerState{}}
	for _, srv := range s.Servers {
		short.Servers = append(short.Servers, control.ServerState{URL: srv.URL, State: srv.State, Kind: srv.Kind})
	}
	return short
}
