package limit

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/ccship/ccship/server/wire"
)

// Slots limits how many requests run at once, in total and for each user, so that a client that sends slowly or too
// much leaves space for the others. Safe for concurrent use.
type Slots struct {
	all     chan struct{}
	perUser int

	mu    sync.Mutex
	users map[int64]*userSlots // guarded by mu, as is their waiting
}

// userSlots are one user's.
type userSlots struct {
	held    chan struct{}
	waiting int // requests that have or want one
}

// NewSlots makes n slots, of which one user may hold half.
func NewSlots(n int) *Slots { return NewUserSlots(n, max(2, n/2)) }

// NewUserSlots makes n slots, of which one user may hold perUser.
func NewUserSlots(n, perUser int) *Slots {
	return &Slots{all: make(chan struct{}, n), perUser: perUser, users: map[int64]*userSlots{}}
}

// Acquire waits for a slot, at most for patience. An error is a *wire.RefusalError, or the context's.
func (s *Slots) Acquire(ctx context.Context, user int64, patience time.Duration) error {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	own := s.enter(user)
	err := acquireOne(ctx, own.held, timer.C, "too many requests at once of this user")
	if err == nil {
		if err = acquireOne(ctx, s.all, timer.C, "too many requests at once"); err != nil {
			<-own.held
		}
	}
	if err != nil {
		s.leave(user, own)
	}
	return err
}

func acquireOne(ctx context.Context, from chan struct{}, over <-chan time.Time, busy string) error {
	select {
	case from <- struct{}{}: // free: however long it took to come here
		return nil
	default:
	}
	select {
	case from <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-over:
		return wire.Refuse(http.StatusServiceUnavailable, "busy", busy)
	}
}

// Release gives back a slot of a user who has one.
func (s *Slots) Release(user int64) {
	s.mu.Lock()
	own := s.users[user]
	s.mu.Unlock()
	<-s.all
	<-own.held
	s.leave(user, own)
}

func (s *Slots) enter(user int64) *userSlots {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := s.users[user]
	if own == nil {
		own = &userSlots{held: make(chan struct{}, s.perUser)}
		s.users[user] = own
	}
	own.waiting++
	return own
}

func (s *Slots) leave(user int64, own *userSlots) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if own.waiting--; own.waiting == 0 {
		delete(s.users, user)
	}
}

// Busy returns how many slots are in use.
func (s *Slots) Busy() int { return len(s.all) }
