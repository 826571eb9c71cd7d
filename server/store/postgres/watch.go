package postgres

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ccship/ccship/server"

	"github.com/ccship/ccship/server/store/sqlstore"
)

const (
	// pgChannel is the channel on which servers announce stored changes to each other.
	pgChannel = "ccship_stored"
	// payload is what PostgreSQL takes at most in one notice.
	payload = 7999
	// noticesRoom bounds how many changes wait to be announced to other servers; more are dropped.
	noticesRoom = 1024
	// gather is how long changes are collected after the first, to be announced together.
	gather = 10 * time.Millisecond
	// relisten is how long a broken connection for listening rests.
	relisten = time.Second
)

// notices announces changes of this server to others, and those of others to its listeners. Storing waits for none of
// it: a transaction that notifies holds a lock that all such transactions of the cluster share until it is durable,
// so notices go in transactions of their own, many in one, which wait for no disk.
type notices struct {
	changes sqlstore.Changes
	self    string // distinguishes own notices from others'
	wake    chan struct{}
	start   sync.Once
	stop    context.CancelFunc // set by start
	running sync.WaitGroup

	mu      sync.Mutex
	pending []server.Change // guarded by mu
}

// notice is what goes over the channel.
type notice struct {
	From   string
	Change server.Change
}

func newNotices() *notices {
	return &notices{self: rand.Text(), wake: make(chan struct{}, 1), stop: func() {}}
}

// tell passes a change on to listeners here, and later to other servers. It never blocks.
func (n *notices) tell(change server.Change) {
	n.changes.Tell(change)
	n.mu.Lock()
	if len(n.pending) < noticesRoom {
		n.pending = append(n.pending, change)
	}
	n.mu.Unlock()
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// take answers the changes to announce to others, as payloads. It leaves out those that are too long: all are hints.
func (n *notices) take() (payloads []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, change := range n.pending {
		if b, err := json.Marshal(notice{n.self, change}); err == nil && len(b) <= payload {
			payloads = append(payloads, sqlstore.CleanText(string(b)))
		}
	}
	n.pending = n.pending[:0]
	return payloads
}

// Changes implements server.Watcher: what any server on this database stores.
func (s *Store) Changes(ctx context.Context) (<-chan server.Change, error) {
	s.begin()
	return s.notices.changes.Listen(ctx), nil
}

// begin starts telling, listening, and what is left to index, which end with Close. A store that only manages keys does
// neither.
func (s *Store) begin() {
	s.notices.start.Do(func() {
		ctx, cancel := context.WithCancel(context.Background())
		s.notices.stop = cancel
		s.notices.running.Go(func() { s.notify(ctx) })
		s.notices.running.Go(func() { s.listen(ctx) })
	})
}

// notify announces changes to others until ctx is done. It drops what it cannot send.
func (s *Store) notify(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.notices.wake:
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(gather):
		}
		if payloads := s.notices.take(); len(payloads) > 0 {
			_, _ = s.pool.Exec(ctx, `
SELECT set_config('synchronous_commit', 'off', true), count(pg_notify($1, p)) FROM unnest($2::text[]) p`,
				pgChannel, payloads)
		}
	}
}

// listen receives others' changes until ctx is done, on a connection of its own.
func (s *Store) listen(ctx context.Context) {
	for ctx.Err() == nil {
		_ = s.hear(ctx) // a connection that broke is made again
		select {
		case <-ctx.Done():
		case <-time.After(relisten):
		}
	}
}

func (s *Store) hear(ctx context.Context) error {
	config := s.direct.Copy()
	config.BuildContextWatcherHandler = closing // there is no query to cancel
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }() // what it reports, reading reports too
	if _, err := conn.Exec(ctx, `LISTEN `+pgChannel); err != nil {
		return err
	}
	for {
		heard, err := conn.WaitForNotification(ctx)
		if err != nil {
			return err
		}
		var n notice
		if json.Unmarshal([]byte(heard.Payload), &n) == nil && n.From != s.notices.self {
			s.notices.changes.Tell(n.Change)
		}
	}
}
