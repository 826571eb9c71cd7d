package inbox

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/ccship/ccship/state/projection"
)

// takeTime is how long a hook waits for the disk. The hook must return within 20 ms, whatever the disk does.
const takeTime = 8 * time.Millisecond

// notices hands over notices, each at most once, even across a crash: a notice leaves the state before a hook gets it.
// If the disk is too slow for a hook, the next hook gets the notice.
type notices struct {
	projections *projection.DB
	log         *slog.Logger
	bell        bell

	leaseTime time.Duration // how long a hook has to confirm

	mu        sync.Mutex
	requested map[string]chan struct{}       // by session; closed once the state was read; guarded by mu
	ready     map[string][]projection.Notice // by session, no longer in the state; guarded by mu
	leases    map[string]*lease              // by receipt; guarded by mu
	failing   bool                           // the last fetch failed; guarded by mu
}

func newNotices(projections *projection.DB, log *slog.Logger) *notices {
	return &notices{
		projections: projections, log: log, bell: newBell(), leaseTime: leaseTime, requested: map[string]chan struct{}{},
		ready: map[string][]projection.Notice{}, leases: map[string]*lease{},
	}
}

// take returns the notices for a session, oldest first. The caller has to deliver them.
func (n *notices) take(ctx context.Context, session string) []projection.Notice {
	if list := n.takeReady(session); len(list) > 0 || !n.projections.Notices.Has(session) {
		return list
	}
	late := time.NewTimer(takeTime)
	defer late.Stop()
	select {
	case <-n.request(session):
	case <-late.C:
	case <-ctx.Done():
		return nil
	}
	if ctx.Err() != nil {
		return nil // the hook is gone: the next one gets them
	}
	return n.takeReady(session)
}

func (n *notices) takeReady(session string) []projection.Notice {
	n.mu.Lock()
	defer n.mu.Unlock()
	list := n.ready[session]
	delete(n.ready, session)
	return list
}

// forget drops a session's notices that are ready or leased. The others are in the state.
func (n *notices) forget(session string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for receipt, l := range n.leases {
		if l.session == session {
			n.end(receipt, l)
		}
	}
	delete(n.ready, session)
}

// request makes run take a session's notices out of the state. The channel is closed once run has tried.
func (n *notices) request(session string) <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	done := n.requested[session]
	if done == nil {
		done = make(chan struct{})
		n.requested[session] = done
		n.bell.ring()
	}
	return done
}

// run takes notices out of the state until ctx is done. Then it puts back what no hook has fetched or confirmed.
func (n *notices) run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return n.putBack()
		case <-n.bell:
			n.fetch()
		}
	}
}

// fetch takes the requested notices out of the state. It cannot be cancelled, because notices that have left the state
// must be in memory.
func (n *notices) fetch() {
	n.mu.Lock()
	requested := n.requested
	n.requested = map[string]chan struct{}{}
	n.mu.Unlock()
	sessions := make([]string, 0, len(requested))
	for session := range requested {
		sessions = append(sessions, session)
	}
	taken, err := n.projections.Notices.Take(context.Background(), sessions...)
	n.mu.Lock()
	defer n.mu.Unlock()
	if err != nil && !n.failing {
		n.log.Warn("cannot take notices out of the state; retrying when a hook asks", "err", err)
	}
	n.failing = err != nil
	for session, list := range taken {
		n.ready[session] = append(n.ready[session], list...)
	}
	for _, done := range requested {
		close(done)
	}
}

// putBack ends all leases and returns what is in memory to the state.
func (n *notices) putBack() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	for receipt, l := range n.leases {
		n.end(receipt, l)
	}
	var back projection.Derivation
	for _, list := range n.ready {
		back.Notices = append(back.Notices, list...)
	}
	if len(back.Notices) == 0 {
		return nil
	}
	clear(n.ready)
	_, err := n.projections.Commit(context.Background(), []projection.Derivation{back})
	return err
}
