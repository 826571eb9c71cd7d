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
	huge      *Slots // bytes
}

const (
	// hugeBytes is how many bytes of huge lines all answers may hold at once; hugeOfOne, those to one user and to the
	// readers of that user's links. Some copies of each are in memory.
	hugeBytes = 192 << 20
	hugeOfOne = 48 << 20
)

// NewFair bounds the questions to st. Half of the processors answer them at most, two at least, and for one user half
// of those: the others are for lines that come in.
func NewFair(st server.Store) *fairStore {
	return &fairStore{Store: st, slots: NewSlots(atOnce(), PerUser()),
		snapshots: NewSlots(1<<10, snapshotsOfOne), huge: NewSlots(hugeBytes, hugeOfOne)}
}

// snapshotsOfOne is how many snapshots one user, or the links that a user made, may have open: a store has few, and who
// reads a download slowly keeps one.
const snapshotsOfOne = 3

// View implements server.Library. It waits for one of the user's slots, at most for Patience: server.ErrBusy then.
func (s *fairStore) View(ctx context.Context, scope server.Scope, ref server.Ref) (server.Snapshot, error) {
	if scope.User == 0 { // the server's own work
		return s.Store.View(ctx, scope, ref)
	}
	release, err := s.snapshots.Acquire(ctx, scope.User, 1, cmp.Or(s.Patience, defaultPatience))
	if err != nil {
		return nil, cmp.Or(ctx.Err(), fmt.Errorf("open a session, of which this user has %d open: %w", snapshotsOfOne,
			server.ErrBusy))
	}
	snap, err := s.Store.View(ctx, scope, ref)
	if err != nil {
		release()
		return nil, err
	}
	return &placed{snap, sync.OnceFunc(release)}, nil
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

// ReserveLong implements server.Reserver. It waits for Patience at most.
func (s *fairStore) ReserveLong(ctx context.Context, user, n int64) (release func(), err error) {
	patience := cmp.Or(s.Patience, defaultPatience)
	if release, err = s.huge.Acquire(ctx, user, n, patience); err != nil {
		return nil, cmp.Or(ctx.Err(),
			fmt.Errorf("wait %s for space for a line of %d bytes: %w", patience, n, server.ErrBusy))
	}
	return release, nil
}

func atOnce() int64 { return int64(max(2, runtime.GOMAXPROCS(0)/2)) }

// PerUser returns how many questions of one user run at once.
func PerUser() int64 { return max(1, atOnce()/2) }

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
	patience := cmp.Or(s.Patience, defaultPatience)
	caller := ctx
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	release, busy := s.slots.Acquire(ctx, scope.User, 1, patience)
	if busy == nil {
		defer release()
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
