// Package fair keeps searches from holding up what daemons send and what others ask: it bounds how many run at once, in
// all and for one user, and how long each may take. It does not know how a store searches.
package fair

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/limit"
)

// DefaultPatience is how long a search may wait and run.
const DefaultPatience = 20 * time.Second

// Store is a store whose searches are bounded. Set Patience before its first use. Safe for concurrent use.
type Store struct {
	server.Store
	Patience time.Duration // 0: DefaultPatience

	slots *limit.Slots
}

// New bounds the searches of st. Half of the processors search at most, two at least, and for one user half of those:
// the others are for lines that come in.
func New(st server.Store) *Store {
	return &Store{Store: st, slots: limit.NewUserSlots(atOnce(), PerUser())}
}

func atOnce() int { return max(2, runtime.GOMAXPROCS(0)/2) }

// PerUser is how many searches of one user run at once.
func PerUser() int { return max(1, atOnce()/2) }

// Search implements server.Searcher. server.ErrBusy when Patience is over, whether the search waited or ran until then.
// It ends with ctx.
func (s *Store) Search(ctx context.Context, scope server.Scope, q server.SearchQuery) (server.Hits, error) {
	patience := s.Patience
	if patience <= 0 {
		patience = DefaultPatience
	}
	caller := ctx
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := s.slots.Acquire(ctx, scope.User, patience)
	if err == nil {
		defer s.slots.Release(scope.User)
		var hits server.Hits
		if hits, err = s.Store.Search(ctx, scope, q); err == nil {
			return hits, nil
		}
	}
	switch {
	case caller.Err() != nil:
		return server.Hits{}, caller.Err()
	case ctx.Err() != nil:
		return server.Hits{}, fmt.Errorf("search for %s: %w", patience, server.ErrBusy)
	}
	return server.Hits{}, err
}

// Sizes implements server.Sizer when the store does.
func (s *Store) Sizes(ctx context.Context) (server.Sizes, error) {
	sizer, ok := s.Store.(server.Sizer)
	if !ok {
		return server.Sizes{}, errors.ErrUnsupported
	}
	return sizer.Sizes(ctx)
}
