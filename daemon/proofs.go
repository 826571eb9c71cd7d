package daemon

import (
	"context"
	"sync"
	"time"
)

const (
	proofHolds = time.Minute      // another process may listen at the address by then
	askAgain   = 10 * time.Second // after a server proved nothing: it may be starting. Doubles each time
	askLast    = 10 * time.Minute // the longest pause: asking may take a while, and lines wait for the answer
)

// prover returns nil if the server at an address proves that it runs on this machine, for this user. It does not wait
// long.
type prover func(ctx context.Context, server string) error

// proofs remembers which servers proved that they run on this machine. It is safe for concurrent use.
type proofs struct {
	prove prover

	mu    sync.Mutex // held while a server is asked, so that others wait for the answer
	known map[string]proven
}

// proven is a server's answer.
type proven struct {
	here  bool
	at    time.Time
	holds time.Duration // until it is asked again
}

// has reports whether the server at an address runs on this machine. It asks again when the last answer is too old.
func (p *proofs) has(server string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := p.known[server]
	if age := time.Since(last.at); age >= 0 && age < last.holds {
		return last.here
	}
	now := proven{here: p.prove(context.Background(), server) == nil, at: time.Now()}
	switch {
	case now.here:
		now.holds = proofHolds
	case last.here:
		now.holds = askAgain
	default:
		now.holds = min(max(2*last.holds, askAgain), askLast)
	}
	p.known[server] = now
	return now.here
}
