package server

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

// tape is a Watcher that reports the changes a test puts on it.
type tape chan Change

func (t tape) Changes(ctx context.Context) (<-chan Change, error) {
	out := make(chan Change)
	go func() {
		defer close(out)
		for {
			select {
			case c := <-t:
				select {
				case out <- c:
				case <-ctx.Done():
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return out, nil
}

func runHub(t *testing.T) (*Hub, tape) {
	t.Helper()
	source := make(tape)
	hub := NewHub(source)
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { kit.Should(t, hub.Run(ctx)) })
	t.Cleanup(func() { stop(); wg.Wait() })
	return hub, source
}

func TestHubFilters(t *testing.T) {
	hub, source := runHub(t)
	odd := hub.Listen(t.Context(), func(c Change) bool { return c.Stream%2 == 1 })
	all := hub.Listen(t.Context(), nil)
	for i := range int64(4) {
		source <- Change{Stream: i + 1, From: i, To: i + 1}
	}
	for i := range int64(4) {
		kit.Equal(t, fmt.Sprintf("change %d is of stream", i), (<-all).Stream, i+1)
	}
	for _, want := range []int64{1, 3} {
		kit.Equal(t, "stream", (<-odd).Stream, want)
	}
}

// TestHubSlowListener: a listener that takes nothing delays no other; what it gets at last covers all it missed.
func TestHubSlowListener(t *testing.T) {
	hub, source := runHub(t)
	slow := hub.Listen(t.Context(), nil)
	const n = 1000
	for i := range int64(n) {
		source <- Change{Stream: 1 + i%3, From: i, To: i + 1}
	}
	source <- Change{Stream: 9} // once it is taken all before it are published
	covered := map[int64]bool{}
	taken := 0
	for c := range slow {
		taken++
		if c.Stream == 9 {
			break
		}
		for i := c.From; i < c.To; i++ {
			covered[i] = true
		}
	}
	kit.Equal(t, "lines covered", len(covered), n)
	kit.Check(t, taken <= 100, "%d changes were kept", taken)
}

// TestHubLost: more streams than there is space for become "anything may have changed".
func TestHubLost(t *testing.T) {
	hub, source := runHub(t)
	slow := hub.Listen(t.Context(), nil)
	for i := range int64(1000) {
		source <- Change{Stream: i + 1}
	}
	done := hub.Listen(t.Context(), func(c Change) bool { return c.Stream == 5000 })
	source <- Change{Stream: 5000}
	<-done
	seen := map[int64]bool{}
	for len(slow) > 0 {
		c := <-slow
		seen[c.Stream] = true
	}
	kit.Check(t, seen[0], "no zero change for dropped ones; %d streams were reported", len(seen))
}

func TestHubListenerLeaves(t *testing.T) {
	hub, source := runHub(t)
	ctx, leave := context.WithCancel(t.Context())
	gone := hub.Listen(ctx, nil)
	stays := hub.Listen(t.Context(), nil)
	leave()
	for range gone { // until it is closed
	}
	source <- Change{Stream: 1}
	kit.Equal(t, "stream", (<-stays).Stream, 1)
}

// TestHubEnds: when the hub ends, every channel is closed.
func TestHubEnds(t *testing.T) {
	hub := NewHub(make(tape))
	before := hub.Listen(t.Context(), nil)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	kit.Must(t, hub.Run(ctx))
	for range before {
	}
	for range hub.Listen(t.Context(), nil) {
	}
}
