package control

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

// inboxDaemon answers hooks only.
type inboxDaemon struct {
	Daemon
	ended chan string
}

func (d *inboxDaemon) Pending(ctx context.Context, req PendingRequest) (Pending, error) {
	AfterHangup(ctx, func() { d.ended <- req.Event })
	return Pending{Text: req.Event}, nil
}

// The requests of a hook come over one connection, and the daemon sees that it ends; those of others end one by one.
func TestAfterHangup(t *testing.T) {
	path := socketPath(t)
	ln, err := Listen(path)
	kit.Must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	d := &inboxDaemon{ended: make(chan string, 9)}
	served := make(chan error, 1)
	go func() { served <- NewServer(d, slog.New(slog.DiscardHandler)).Serve(ctx, ln) }()
	defer func() { cancel(); <-served }()
	ended := func(want string) {
		t.Helper()
		select {
		case got := <-d.ended:
			if got != want {
				t.Errorf("%q has ended, want %q", got, want)
			}
		case <-time.After(time.Minute):
			t.Fatalf("nothing has ended, want %q", want)
		}
	}
	ask := func(c *Client, event string) {
		t.Helper()
		if a, err := c.Pending(t.Context(), PendingRequest{Event: event}); err != nil || a.Text != event {
			t.Fatal(a, err)
		}
	}
	hook, other := DialHook(path), Dial(path)
	ask(hook, "first")
	ask(hook, "second")
	ask(other, "other")
	ended("other")
	hook.transport.CloseIdleConnections()
	ended("first")
	ended("second")
	AfterHangup(t.Context(), func() { t.Error("there is no connection") })
	c := &connection{}
	c.end()
	AfterHangup(context.WithValue(t.Context(), connectionKey{}, c), func() { d.ended <- "late" })
	ended("late")
}
