package postgres

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store/lines"

	"github.com/ccship/ccship/server/store/sqlstore"
)

const (
	// replicaLook is the time between two looks at how far the replica is.
	replicaLook = 250 * time.Millisecond
	// replicaStale is the age of a replica's answers at most.
	replicaStale = 5 * time.Second
)

// Replicated is a Store whose searches, sums and lists are answered by a replica, a standby that is read. Everybody
// sees there what they stored themselves: until the replica has it, the primary answers them. Others may see it up to
// replicaStale later. When the replica is behind, gone or wrong, the primary answers.
type Replicated struct {
	*Store
	replica *Store
	stop    context.CancelFunc
	running sync.WaitGroup
	fresh   atomic.Int64 // the replica has all that was stored by then, in nanoseconds since began; 0: not known
	began   time.Time
	answers atomic.Int64 // that came from the replica

	mu      sync.Mutex
	wrote   map[int64]time.Duration // since began, when a user last stored something; guarded by mu
	changed time.Duration           // when something changed that concerns several users
}

// WithReplica has the replica at url answer what it may. The store, which it closes with its own, is the primary.
func WithReplica(ctx context.Context, s *Store, url string) (*Replicated, error) {
	w, err := wayOf(url)
	if err != nil {
		return nil, err
	}
	of := &Store{notices: newNotices(), patience: pgPatience, pooled: w.pooled}
	config, err := of.configure(w.url)
	if err != nil {
		return nil, err
	}
	if w.pooled {
		throughPooler(config)
	}
	config.ConnConfig.ValidateConnect = nil // a standby is welcome
	most := int(config.MaxConns)
	of.open, of.queue, of.direct = sqlstore.NewSnapshotSlots(max(1, most/2)), lines.NewQueue(1), config.ConnConfig
	if of.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return nil, explain(err, config.ConnConfig)
	}
	of.lines = s.lines
	of.find(database{dialect{of.pool}, of})
	following, stop := context.WithCancel(context.WithoutCancel(ctx))
	r := &Replicated{Store: s, replica: of, stop: stop, began: time.Now(), wrote: map[int64]time.Duration{}}
	changes := s.notices.changes.Listen(following)
	r.running.Go(func() { r.follow(following) })
	r.running.Go(func() {
		for c := range changes { // what other servers stored, too
			r.mark(c.Owner)
		}
	})
	return r, nil
}

// Close closes both.
func (r *Replicated) Close() error {
	r.stop()
	r.running.Wait()
	r.replica.Index.Close()
	r.replica.pool.Close()
	return r.Store.Close()
}

// mark notes that a user has stored something by now.
func (r *Replicated) mark(owner int64) {
	now := time.Since(r.began)
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.wrote) > 10_000 { // most of them were long ago
		for u, at := range r.wrote {
			if at < time.Duration(r.fresh.Load()) {
				delete(r.wrote, u)
			}
		}
	}
	r.wrote[owner] = now
}

// markAll notes that something changed that concerns several users.
func (r *Replicated) markAll() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changed = time.Since(r.began)
}

// follow finds out again and again up to when the replica has everything.
func (r *Replicated) follow(ctx context.Context) {
	for ctx.Err() == nil {
		at := time.Since(r.began)
		if err := r.caughtUp(ctx); err == nil {
			r.fresh.Store(int64(at))
		}
		select {
		case <-ctx.Done():
		case <-time.After(replicaLook):
		}
	}
}

// caughtUp waits until the replica has all that the primary has now.
func (r *Replicated) caughtUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, replicaStale)
	defer cancel()
	var at string
	if err := r.pool.QueryRow(ctx, `SELECT pg_current_wal_lsn()::text`).Scan(&at); err != nil {
		return err
	}
	for {
		var has bool
		err := r.replica.pool.QueryRow(ctx,
			`SELECT coalesce(pg_last_wal_replay_lsn() >= $1::text::pg_lsn, false)`, at).Scan(&has)
		if err != nil || has {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(replicaLook / 4):
		}
	}
}

// serves says whether the replica may answer a user.
func (r *Replicated) serves(user int64) bool {
	fresh := time.Duration(r.fresh.Load())
	if fresh == 0 || user == 0 || time.Since(r.began)-fresh > replicaStale {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	at, has := r.wrote[user]
	return r.changed < fresh && (!has || at < fresh)
}

// readFrom asks the replica if it may answer, else the primary, and the primary too when the replica fails.
func readFrom[T any](ctx context.Context, r *Replicated, user int64, ask func(*Store) (T, error)) (T, error) {
	if r.serves(user) {
		answer, err := ask(r.replica)
		if err == nil || ctx.Err() != nil {
			r.answers.Add(1)
			return answer, err
		}
		if !errors.Is(err, server.ErrBadPage) {
			r.fresh.Store(0)
		}
	}
	return ask(r.Store)
}

// Find implements server.Library.
func (r *Replicated) Find(ctx context.Context, scope server.Scope, q server.SessionQuery) (server.Found, error) {
	return readFrom(ctx, r, scope.User, func(s *Store) (server.Found, error) { return s.Find(ctx, scope, q) })
}

// Groups implements server.Library.
func (r *Replicated) Groups(ctx context.Context, scope server.Scope, q server.GroupQuery) (server.Groups, error) {
	return readFrom(ctx, r, scope.User, func(s *Store) (server.Groups, error) { return s.Groups(ctx, scope, q) })
}

// Search implements server.Library.
func (r *Replicated) Search(ctx context.Context, scope server.Scope, q server.SearchQuery) (server.Hits, error) {
	return readFrom(ctx, r, scope.User, func(s *Store) (server.Hits, error) { return s.Search(ctx, scope, q) })
}

// Rank implements server.Library.
func (r *Replicated) Rank(ctx context.Context, scope server.Scope, a server.RankQuery) (server.Ranked, error) {
	return readFrom(ctx, r, scope.User, func(s *Store) (server.Ranked, error) { return s.Rank(ctx, scope, a) })
}

// Usage implements server.Library.
func (r *Replicated) Usage(ctx context.Context, scope server.Scope, q server.UsageQuery) ([]server.UsageRow, error) {
	return readFrom(ctx, r, scope.User, func(s *Store) ([]server.UsageRow, error) { return s.Usage(ctx, scope, q) })
}

// Drops implements server.Library.
func (r *Replicated) Drops(ctx context.Context, scope server.Scope, q server.DropQuery) ([]server.Drop, error) {
	return readFrom(ctx, r, scope.User, func(s *Store) ([]server.Drop, error) { return s.Drops(ctx, scope, q) })
}

// Put implements server.Ingester.
func (r *Replicated) Put(ctx context.Context, b *server.Batch) error {
	defer r.mark(b.Owner)
	return r.Store.Put(ctx, b)
}

// SaveDerived implements server.DerivationStore.
func (r *Replicated) SaveDerived(ctx context.Context, all ...*server.Derivation) error {
	defer func() {
		for _, d := range all {
			r.mark(d.Task.Owner)
		}
	}()
	return r.Store.SaveDerived(ctx, all...)
}

// Forget implements server.Library. Nobody is shown what this server forgot.
func (r *Replicated) Forget(ctx context.Context, scope server.Scope, session string, owner int64,
	at time.Time) (server.Forgotten, error) {
	defer r.markAll()
	return r.Store.Forget(ctx, scope, session, owner, at)
}

// Mask implements server.Masker. Nobody is shown what was masked.
func (r *Replicated) Mask(ctx context.Context, m *server.Masking) (protocol.Masked, error) {
	defer r.markAll()
	return r.Store.Mask(ctx, m)
}

// SetMark implements server.Marks.
func (r *Replicated) SetMark(ctx context.Context, reader int64, m server.Mark) error {
	defer r.mark(reader)
	return r.Store.SetMark(ctx, reader, m)
}

// AddShare implements server.Shares.
func (r *Replicated) AddShare(ctx context.Context, h server.Share) error {
	defer r.markAll()
	return r.Store.AddShare(ctx, h)
}

// RevokeKey implements server.Keys. It ends shares.
func (r *Replicated) RevokeKey(ctx context.Context, name string, at time.Time) (server.Ended, error) {
	defer r.markAll()
	return r.Store.RevokeKey(ctx, name, at)
}

// RemoveShare implements server.Shares.
func (r *Replicated) RemoveShare(ctx context.Context, h server.Share) error {
	defer r.markAll()
	return r.Store.RemoveShare(ctx, h)
}
