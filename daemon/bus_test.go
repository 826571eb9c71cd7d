package daemon

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/ccship/ccship/daemon/control"
)

// A listener that does not read is cut off, and holds up nobody; one that ends is forgotten.
func TestBus(t *testing.T) {
	b := newBus()
	ctx, cancel := context.WithCancel(t.Context())
	slow, err := b.Listen(t.Context(), control.Event{Type: "first"})
	if err != nil {
		t.Fatal(err)
	}
	quick, err := b.Listen(ctx, control.Event{Type: "first"})
	if err != nil {
		t.Fatal(err)
	}
	for i := range queueLength + 10 {
		b.publish(control.Event{Type: fmt.Sprint(i)})
		<-quick
	}
	n := 0
	for range slow { // ends, for it was cut
		n++
	}
	if n != queueLength {
		t.Errorf("the slow listener got %d events, want %d", n, queueLength)
	}
	if e := <-quick; e.Type != fmt.Sprint(queueLength+9) {
		t.Errorf("the quick listener's last event is %s", e.Type)
	}
	cancel()
	if _, ok := <-quick; ok || !b.idle() {
		t.Error("a listener that ended is still there")
	}
	for range mostListeners {
		if _, err := b.Listen(t.Context(), control.Event{}); err != nil {
			t.Fatal(err)
		}
	}
	_, err = b.Listen(t.Context(), control.Event{})
	if e, ok := errors.AsType[*control.Error](err); !ok || e.Code != control.CodeTooMany || e.Hint == "" {
		t.Errorf("one listener too many: %v", err)
	}
}
