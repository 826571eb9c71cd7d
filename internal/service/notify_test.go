package service

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/e2e/kit"
)

func TestNewNotifier(t *testing.T) {
	pid := strconv.Itoa(os.Getpid())
	for _, c := range []struct {
		env  map[string]string
		want *Notifier
	}{
		{nil, &Notifier{}},
		{map[string]string{"WATCHDOG_USEC": "1000000"}, &Notifier{}},
		{map[string]string{"NOTIFY_SOCKET": "/n"}, &Notifier{socket: "/n"}},
		{map[string]string{"NOTIFY_SOCKET": "/n", "WATCHDOG_USEC": "1500000"}, &Notifier{socket: "/n", watchdog: 1500 * time.Millisecond}},
		{map[string]string{"NOTIFY_SOCKET": "/n", "WATCHDOG_USEC": "1500000", "WATCHDOG_PID": pid}, &Notifier{socket: "/n", watchdog: 1500 * time.Millisecond}},
		{map[string]string{"NOTIFY_SOCKET": "/n", "WATCHDOG_USEC": "1500000", "WATCHDOG_PID": "1"}, &Notifier{socket: "/n"}},
		{map[string]string{"NOTIFY_SOCKET": "/n", "WATCHDOG_USEC": "soon"}, &Notifier{socket: "/n"}},
	} {
		got := NewNotifier(func(name string) string { return c.env[name] }, nil)
		kit.Check(t, got.socket == c.want.socket && got.watchdog == c.want.watchdog, "%v: %+v", c.env, got)
	}
}

// fakeParts are parts that a test can hang.
type fakeParts struct {
	status error
	still  func() time.Duration
	hang   chan struct{}
}

func (f *fakeParts) Status(context.Context) (control.Status, error) {
	return control.Status{State: "watching"}, f.status
}
func (f *fakeParts) SinceHeartbeat() time.Duration { return f.still() }
func (f *fakeParts) Alive(context.Context) error   { <-f.hang; return nil }

func newFakeParts() *fakeParts {
	f := &fakeParts{still: func() time.Duration { return time.Second }, hang: make(chan struct{})}
	close(f.hang)
	return f
}

func (f *fakeParts) watchdog(limit time.Duration) *watchdog {
	return &watchdog{Parts: Parts{Control: f, Tailer: f, State: f}, limit: limit, busy: make(chan struct{}, 1)}
}

// There is no message while one of the parts hangs, and there are messages again once it does not.
func TestWatchdog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 10 * time.Second
		s, err := newFakeParts().watchdog(limit).check(t.Context())
		kit.Check(t, err == nil && s.State == "watching", "%+v %v", s, err)
		f := newFakeParts()
		f.still = func() time.Duration { return 21 * time.Second }
		_, err = f.watchdog(limit).check(t.Context())
		kit.Check(t, err != nil && strings.Contains(err.Error(), "tailer"), "a still tailer: %v", err)
		f = newFakeParts()
		f.status = errors.New("no")
		_, err = f.watchdog(limit).check(t.Context())
		kit.Check(t, err != nil && strings.Contains(err.Error(), "control socket"), "a socket without answer: %v", err)
		f = newFakeParts()
		f.hang = make(chan struct{})
		w := f.watchdog(limit)
		for _, want := range []string{"deadline", "still hangs"} { // the second finds the first still waiting
			_, err := w.check(t.Context())
			kit.Check(t, err != nil && strings.Contains(err.Error(), want), "a state that hangs: %v, want %s", err, want)
		}
		close(f.hang)
		synctest.Wait()
		kit.Err(t, "a state that goes on", nil)(w.check(t.Context()))
	})
}

// While a part hangs the manager gets no message; when it goes on, messages come again.
func TestNoMessageWhileHanging(t *testing.T) {
	name := filepath.Join(t.TempDir(), "n")
	messages := kit.ListenManager(t, name)
	var checks atomic.Int64
	var hangs atomic.Bool
	hangs.Store(true)
	f := newFakeParts()
	f.still = func() time.Duration {
		checks.Add(1)
		if hangs.Load() {
			return time.Hour
		}
		return 0
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	n := &Notifier{socket: name, log: slog.New(slog.DiscardHandler)}
	go func() {
		n.run(ctx, f.watchdog(20*time.Millisecond))
		close(ended)
	}()
	messages.Next(t, "READY=1")
	for checks.Load() < 5 {
		runtime.Gosched()
	}
	select {
	case m := <-messages:
		t.Errorf("told %q while the tailer hangs", m)
	default:
	}
	hangs.Store(false)
	messages.Next(t, "WATCHDOG=1")
	cancel()
	<-ended
	messages.Next(t, "STOPPING=1")
}
