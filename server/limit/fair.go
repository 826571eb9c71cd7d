package limit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/ccship/ccship/server"
)

// defaultPatience is how long a question may wait and run.
const defaultPatience = 20 * time.Second

// fairStore is a store whose searches, sums and lists are bounded. Set Patience before its first use. Safe for
// concurrent use.
type fairStore struct {
	server.Store
	Patience time.Duration // 0: defaultPatience

	slots     *Slots
	snapshots *Slots
	huge      *Bytes
}

// NewFair bounds the questions to st. Half of the processors answer them at most, two at least, and for one user half
// of those: the others are for lines that come in.
func NewFair(st server.Store) *fairStore {
	return &fairStore{Store: st, slots: NewUserSlots(atOnce(), PerUser()),
		snapshots: NewUserSlots(1<<10, snapshotsOfOne), huge: NewBytes(hugeBytes, hugeOfOne)}
}

// snapshotsOfOne is how many snapshots one user, or the links that a user made, may have open: a store has few, and who
// reads a download slowly keeps one.
const snapshotsOfOne = 3

// View implements server.Library. It waits for one of the user's slots, at most for Patience: server.ErrBusy then.
func (s *fairStore) View(ctx context.Context, scope server.Scope, ref server.Ref) (server.Snapshot, error) {
	if scope.User == 0 { // the server's own work
		return s.Store.View(ctx, scope, ref)
	}
	if err := s.snapshots.Acquire(ctx, scope.User, cmp.Or(s.Patience, defaultPatience)); err != nil {
		return nil, cmp.Or(ctx.Err(), fmt.Errorf("open a session, of which this user has %d open: %w", snapshotsOfOne,
			server.ErrBusy))
	}
	snap, err := s.Store.View(ctx, scope, ref)
	if err != nil {
		s.snapshots.Release(scope.User)
		return nil, err
	}
	return &placed{snap, sync.OnceFunc(func() { s.snapshots.Release(scope.User) })}, nil
}

// placed is a snapshot that gives back its slot when it is closed.
type placed struct {
	server.Snapshot
	release func()
}

func (p *placed) Close() error {
	defer p.release()
	return p.Snapshot.Close()
}

func atOnce() int { return max(2, runtime.GOMAXPROCS(0)/2) }

// PerUser returns how many questions of one user run at once.
func PerUser() int { return max(1, atOnce()/2) }

// Search implements server.Searcher.
func (s *fairStore) Search(ctx context.Context, scope server.Scope, q server.SearchQuery) (server.Hits, error) {
	return bounded(ctx, s, scope, "search", func(ctx context.Context) (server.Hits, error) {
		return s.Store.Search(ctx, scope, q)
	})
}

// Rank implements server.Searcher.
func (s *fairStore) Rank(ctx context.Context, scope server.Scope, a server.RankQuery) (server.Ranked, error) {
	return bounded(ctx, s, scope, "search", func(ctx context.Context) (server.Ranked, error) {
		return s.Store.Rank(ctx, scope, a)
	})
}

// EditsOf implements server.Provenance.
func (s *fairStore) EditsOf(ctx context.Context, scope server.Scope, q server.EditQuery) ([]server.WrittenEdit, error) {
	return bounded(ctx, s, scope, "find who wrote lines", func(ctx context.Context) ([]server.WrittenEdit, error) {
		return s.Store.EditsOf(ctx, scope, q)
	})
}

// Usage implements server.Searcher.
func (s *fairStore) Usage(ctx context.Context, scope server.Scope, q server.UsageQuery) ([]server.UsageRow, error) {
	return bounded(ctx, s, scope, "sum usage", func(ctx context.Context) ([]server.UsageRow, error) {
		return s.Store.Usage(ctx, scope, q)
	})
}

// Drops implements server.Searcher.
func (s *fairStore) Drops(ctx context.Context, scope server.Scope, q server.DropQuery) ([]server.Drop, error) {
	return bounded(ctx, s, scope, "list rewrites", func(ctx context.Context) ([]server.Drop, error) {
		return s.Store.Drops(ctx, scope, q)
	})
}

// Find implements server.SessionFinder.
func (s *fairStore) Find(ctx context.Context, scope server.Scope, q server.SessionQuery) (server.Found, error) {
	return bounded(ctx, s, scope, "list sessions", func(ctx context.Context) (server.Found, error) {
		return s.Store.Find(ctx, scope, q)
	})
}

// Groups implements server.SessionFinder.
func (s *fairStore) Groups(ctx context.Context, scope server.Scope, q server.GroupQuery) (server.Groups, error) {
	return bounded(ctx, s, scope, "list projects", func(ctx context.Context) (server.Groups, error) {
		return s.Store.Groups(ctx, scope, q)
	})
}

// Checkpoints implements server.Artifacts.
func (s *fairStore) Checkpoints(ctx context.Context, scope server.Scope,
	q server.CheckpointQuery) (server.CheckpointPage, error) {
	return bounded(ctx, s, scope, "list checkpoints", func(ctx context.Context) (server.CheckpointPage, error) {
		return s.Store.Checkpoints(ctx, scope, q)
	})
}

// bounded asks once there is a slot for the scope's user. server.ErrBusy when Patience is over, whether the question
// waited or ran until then. It ends with ctx. what names it in errors.
func bounded[T any](ctx context.Context, s *fairStore, scope server.Scope, what string,
	ask func(context.Context) (T, error)) (answer T, err error) {
	patience := s.Patience
	if patience <= 0 {
		patience = defaultPatience
	}
	caller := ctx
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	busy := s.slots.Acquire(ctx, scope.User, patience)
	if busy == nil {
		defer s.slots.Release(scope.User)
		if answer, err = ask(ctx); err == nil {
			return answer, nil
		}
	}
	var none T
	switch {
	case caller.Err() != nil:
		return none, caller.Err()
	case busy != nil, ctx.Err() != nil:
		return none, fmt.Errorf("%s for %s: %w", what, patience, server.ErrBusy)
	}
	return none, err
}

// Sizes implements server.Sizer when the store does.
func (s *fairStore) Sizes(ctx context.Context) (server.Sizes, error) {
	sizer, ok := s.Store.(server.Sizer)
	if !ok {
		return server.Sizes{}, errors.ErrUnsupported
	}
	return sizer.Sizes(ctx)
}
