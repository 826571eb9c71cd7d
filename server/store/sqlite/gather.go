package sqlite

import (
	"context"
	"sync"
	"time"
)

// gatherMost is how long lines of an import wait for others.
const gatherMost = 25 * time.Millisecond

// gathering lets lines of imports that are being packed at the same time share a transaction: each changes the same
// pages of indexes and counters, and a transaction writes each page once. Nothing waits for lines that have not come,
// and what nobody packs waits for nothing. The zero value is ready.
type gathering struct {
	mu      sync.Mutex
	packing int           // guarded by mu
	packed  chan struct{} // closed when nothing is being packed any more; guarded by mu
}

// begin says that lines are being packed.
func (g *gathering) begin() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.packing == 0 {
		g.packed = make(chan struct{})
	}
	g.packing++
}

// end says that they are.
func (g *gathering) end() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.packing--; g.packing == 0 {
		close(g.packed)
	}
}

// wait returns when nothing is being packed any more, or after gatherMost.
func (g *gathering) wait(ctx context.Context) {
	g.mu.Lock()
	n, packed := g.packing, g.packed
	g.mu.Unlock()
	if n == 0 {
		return
	}
	late := time.NewTimer(gatherMost)
	defer late.Stop()
	select {
	case <-packed:
	case <-late.C:
	case <-ctx.Done():
	}
}
