package daemon

import (
	"context"
	"reflect"
	"time"

	"github.com/ccship/ccship/daemon/control"
)

// eventRate is how often it is looked whether status, acknowledgements and notices have changed, while someone listens.
const eventRate = 500 * time.Millisecond

// Events answers what happens from now on, the status first.
func (d *Daemon) Events(ctx context.Context) (<-chan control.Event, error) {
	now := brief(d.Status(ctx))
	return d.events.listen(ctx, control.Event{Type: control.EventStatus, Status: &now})
}

// watchStatus publishes what changed in the status, while someone listens.
func (d *Daemon) watchStatus(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-d.events.bell:
		}
		last := d.Status(ctx)
		for !d.events.quiet() && pause(ctx, eventRate) == nil {
			now := d.Status(ctx)
			d.publishChanges(&last, &now)
			last = now
		}
	}
}

func (d *Daemon) publishChanges(last, now *control.Status) {
	if b := brief(*now); !reflect.DeepEqual(b, brief(*last)) {
		d.events.publish(control.Event{Type: control.EventStatus, Status: &b})
	}
	if now.Sent.Entries != last.Sent.Entries {
		d.events.publish(control.Event{Type: control.EventAcknowledged, Acknowledged: &control.Progress{
			Entries: now.Sent.Entries - last.Sent.Entries, Bytes: now.Sent.Bytes - last.Sent.Bytes, Waiting: now.Outbox.Entries,
		}})
	}
	for _, n := range without(last.Advice, now.Advice) {
		d.events.publish(control.Event{Type: control.EventAdvice, Advice: &control.AdviceEvent{Advice: n, Gone: true}})
	}
	for _, n := range without(now.Advice, last.Advice) {
		d.events.publish(control.Event{Type: control.EventAdvice, Advice: &control.AdviceEvent{Advice: n}})
	}
}

// without is what is in a and not in b.
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

// brief is a status in short.
func brief(s control.Status) control.StatusEvent {
	b := control.StatusEvent{State: s.State, Pause: s.Pause, Servers: []control.ServerState{}}
	for _, srv := range s.Servers {
		b.Servers = append(b.Servers, control.ServerState{URL: srv.URL, State: srv.State, Kind: srv.Kind})
	}
	return b
}
