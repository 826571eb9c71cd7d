package tail

import (
	"context"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

// discard is a sink that takes everything and keeps nothing but cursors.
type discard struct {
	mu    sync.Mutex
	bytes int64
	calls int64
	each  func(calls int64)
	bell  chan struct{}
}

func (d *discard) Deliver(_ context.Context, chunks []Chunk) ([]Result, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.calls++; d.each != nil {
		d.each(d.calls)
	}
	for i := range chunks {
		d.bytes += int64(len(chunks[i].Lines))
	}
	select {
	case d.bell <- struct{}{}:
	default:
	}
	return make([]Result, len(chunks)), nil
}

func (d *discard) HasSpace(bool) bool                                 { return true }
func (d *discard) Load(context.Context) ([]Tracked, error)            { return nil, nil }
func (d *discard) Reload(context.Context, FileID) (Tracked, error)    { return Tracked{}, os.ErrNotExist }
func (d *discard) Marks(context.Context, FileID) ([]Mark, error)      { return nil, nil }
func (d *discard) Update(context.Context, []Tracked) error            { return nil }
func (d *discard) Forget(context.Context, []FileID) ([]FileID, error) { return nil, nil }

// runDiscard reads until so many bytes have come.
func runDiscard(t *testing.T, cfg Config, sink *discard, want int64) {
	tl := New(cfg, sink, sink)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- tl.Run(ctx) }()
	limit := time.After(2 * time.Minute)
	for {
		sink.mu.Lock()
		got := sink.bytes
		sink.mu.Unlock()
		if got >= want {
			break
		}
		select {
		case <-sink.bell:
		case <-limit:
			t.Fatalf("%d of %d bytes", got, want)
		}
	}
	cancel()
	kit.Must(t, <-done)
}
