package kv

import (
	"context"
	"errors"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

// later begins an update that waits for others, and returns when it is queued.
func later(ctx context.Context, t *testing.T, s store, now <-chan struct{}, key string) (result <-chan error) {
	t.Helper()
	before, done := s.group.queued(), make(chan error, 1)
	go func() {
		done <- s.UpdateLater(ctx, 1, now, func(tx *Tx) error {
			tx.Changes(s.owner).(*changes).put[key] = 1
			return tx.Put("put row", tx.Bucket(rows), []byte(key), value(key, 1))
		})
	}()
	waitFor(t, "it to queue", func() bool { return s.group.queued() == before+1 })
	return done
}

// TestLater: what may wait shares the next transaction of any caller, and has one of its own when it must not wait
// any longer.
func TestLater(t *testing.T) {
	s := open(t, Options{})
	never, first := make(chan struct{}), lastTx(t, s)
	one, two := later(t.Context(), t, s, never, "1"), later(t.Context(), t, s, never, "2")
	put(t, s, 1, "3")
	if err := errors.Join(<-one, <-two); err != nil || lastTx(t, s) != first+1 || len(s.held()) != 3 {
		t.Errorf("%v; %d rows in %d transactions", err, len(s.held()), lastTx(t, s)-first)
	}
	now := make(chan struct{})
	one, two = later(t.Context(), t, s, now, "4"), later(t.Context(), t, s, never, "5")
	close(now)
	if err := errors.Join(<-one, <-two); err != nil || lastTx(t, s) != first+2 || len(s.held()) != 5 {
		t.Errorf("hastened: %v; %d rows in %d transactions", err, len(s.held()), lastTx(t, s)-first)
	}
	checkMemory(t, s)
}

// TestLaterBehindOthers: a caller that waits for others does not lead those that came while another led, and is not
// left behind when it must not wait any longer.
func TestLaterBehindOthers(t *testing.T) {
	for _, hastened := range []bool{false, true} {
		g := newGate()
		s := open(t, Options{Fault: g.fault})
		first := make(chan error, 1)
		go func() { first <- s.putRows(t.Context(), 1, "1") }()
		<-g.reached
		now := make(chan struct{})
		waits := later(t.Context(), t, s, now, "2")
		if hastened {
			close(now)
			waitFor(t, "it to hasten", func() bool {
				s.group.mu.Lock()
				defer s.group.mu.Unlock()
				return !s.group.waiting[0].later
			})
		}
		close(g.open)
		kit.Must(t, <-first)
		if !hastened {
			waitFor(t, "nobody to lead", func() bool {
				s.group.mu.Lock()
				defer s.group.mu.Unlock()
				return !s.group.busy
			})
			kit.Equal(t, "rows: it led", len(s.held()), 1)
			close(now)
		}
		if err := <-waits; err != nil || len(s.held()) != 2 {
			t.Errorf("hastened %t: %v, %d rows", hastened, err, len(s.held()))
		}
	}
}

// TestLaterGivesUp: while it waits for others it can be ended, and has done nothing then.
func TestLaterGivesUp(t *testing.T) {
	s := open(t, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	waits := later(ctx, t, s, make(chan struct{}), "1")
	cancel()
	if err := <-waits; !errors.Is(err, context.Canceled) || len(s.held()) != 0 {
		t.Errorf("%v, %d rows", err, len(s.held()))
	}
	waits = later(t.Context(), t, s, make(chan struct{}), "2")
	s.fail(ErrFailed)
	err := <-waits
	kit.Check(t, errors.Is(err, ErrFailed), "%v", err)
}
