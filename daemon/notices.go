package daemon

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/state"
)

// takeTime is how long a hook waits for the disk. It is to be back within 20 ms, whatever the disk does.
const takeTime = 8 * time.Millisecond

// herald hands over what a session's Claude has not been told yet, each notice at most once, over a crash too: it is
// out of the state before it is handed over. On a disk that is too slow for a hook the next hook gets it.
type herald struct {
	db   *state.DB
	log  *slog.Logger
	bell chan struct{}

	mu    sync.Mutex
	asked map[string]chan struct{}   // sessions that somebody asked for; closed when it is known; guarded by mu
	ready map[string][]state.Pending // out of the state; guarded by mu
	lent  map[string]*loan           // by receipt; guarded by mu
	slow  bool                       // the last take failed; guarded by mu

	lendTime time.Duration
}

func newHerald(db *state.DB, log *slog.Logger) *herald {
	return &herald{
		db: db, log: log, bell: make(chan struct{}, 1),
		asked: map[string]chan struct{}{}, ready: map[string][]state.Pending{}, lent: map[string]*loan{}, lendTime: lendTime,
	}
}

// take hands over what there is for a session, oldest first.
func (n *herald) take(ctx context.Context, session string) []state.Pending {
	if list := n.grab(session); len(list) > 0 || !n.db.HasPending(session) {
		return list
	}
	late := time.NewTimer(takeTime)
	defer late.Stop()
	select {
	case <-n.ask(session):
	case <-late.C:
	case <-ctx.Done():
		return nil
	}
	if ctx.Err() != nil {
		return nil // the hook is gone: the next one gets them
	}
	return n.grab(session)
}

func (n *herald) grab(session string) []state.Pending {
	n.mu.Lock()
	defer n.mu.Unlock()
	list := n.ready[session]
	delete(n.ready, session)
	return list
}

// forget drops what is ready for a session, or lent; what is not is the state's.
func (n *herald) forget(session string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for receipt, x := range n.lent {
		if x.session == session {
			n.regain(receipt, x)
		}
	}
	delete(n.ready, session)
}

// ask has the notices of a session taken out of the state. The channel is closed when that was tried.
func (n *herald) ask(session string) <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	done := n.asked[session]
	if done == nil {
		done = make(chan struct{})
		n.asked[session] = done
		select {
		case n.bell <- struct{}{}:
		default:
		}
	}
	return done
}

// run takes notices out of the state until ctx is done, then puts back what nobody has fetched, or confirmed.
func (n *herald) run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return n.putBack()
		case <-n.bell:
			n.fetch()
		}
	}
}

// fetch takes out what was asked for. It is not broken off: what is out of the state must be in memory.
func (n *herald) fetch() {
	n.mu.Lock()
	asked := n.asked
	n.asked = map[string]chan struct{}{}
	n.mu.Unlock()
	sessions := make([]string, 0, len(asked))
	for session := range asked {
		sessions = append(sessions, session)
	}
	taken, err := n.db.TakePending(context.Background(), sessions...)
	n.mu.Lock()
	defer n.mu.Unlock()
	if err != nil && !n.slow {
		n.log.Warn("cannot hand over notices to sessions, trying again when they ask", "err", err)
	}
	n.slow = err != nil
	for session, list := range taken {
		n.ready[session] = append(n.ready[session], list...)
	}
	for _, done := range asked {
		close(done)
	}
}

func (n *herald) putBack() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	for receipt, x := range n.lent {
		n.regain(receipt, x)
	}
	var back state.Derivation
	for _, list := range n.ready {
		back.Pending = append(back.Pending, list...)
	}
	if len(back.Pending) == 0 {
		return nil
	}
	clear(n.ready)
	_, err := n.db.Derive(context.Background(), []state.Derivation{back})
	return err
}

// Pending hands over what the session's Claude has not been told yet, or takes the word that it has arrived.
func (d *Daemon) Pending(ctx context.Context, req control.PendingRequest) (control.Pending, error) {
	a := control.Pending{SchemaVersion: control.SchemaVersion}
	if req.Receipt != "" {
		n := d.herald.confirm(req.Receipt)
		if n == 0 {
			return a, control.NewError(control.CodeNotFound, "nothing waits for this receipt",
				"it came too late: the notices go to the next hook")
		}
		d.log.Debug("told a session", "session", req.Session, "notices", n, "hook", req.Event)
		return a, nil
	}
	list := d.herald.take(ctx, req.Session)
	a.Text, a.Notices = noticeText(d.conf.Load().Locale, list), len(list)
	if req.Confirm && len(list) > 0 {
		a.Receipt = d.herald.lend(req.Session, list)
	}
	return a, nil
}
