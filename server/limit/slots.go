package limit

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/ccship/ccship/server/wire"
)

// Slots limits what is in use at once, in total and for each user, so that a client that is slow or asks too much
// leaves space for the others: one slot is a request, a snapshot or a byte. Callers get them in turn; one that waits
// for slots of its own user holds up no other user. Safe for concurrent use.
type Slots struct {
	total, perUser int64

	mu      sync.Mutex
	held    int64           // guarded by mu, as are the others
	users   map[int64]int64 // held
	waiting []*want
}

// want is a request for slots.
type want struct {
	user, n int64
	granted chan struct{}
}

// mostWaiting is how many callers of one user wait. Each holds a connection, and others need some.
const mostWaiting = 256

// NewSlots makes n slots, of which one user may hold perUser; 0: half of them, two at least.
func NewSlots(n, perUser int64) *Slots {
	if perUser == 0 {
		perUser = max(2, n/2)
	}
	return &Slots{total: n, perUser: perUser, users: map[int64]int64{}}
}

// Acquire waits for n slots, at most for patience, and not at all where mostWaiting of this user wait already. Who
// wants more than a user may hold gets all of these. The caller calls release once. An error is a *wire.RefusalError,
// or the context's.
func (s *Slots) Acquire(ctx context.Context, user, n int64, patience time.Duration) (release func(), err error) {
	w := &want{user, min(n, s.perUser), make(chan struct{})}
	s.mu.Lock()
	s.waiting = append(s.waiting, w)
	s.grant()
	if s.waitingOf(user) > mostWaiting {
		patience = 0
	}
	s.mu.Unlock()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-w.granted:
	case <-ctx.Done():
		err = ctx.Err()
	case <-timer.C:
		err = wire.Refuse(http.StatusServiceUnavailable, "busy", "too many requests at once")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.waiting, w); i >= 0 {
		s.waiting = slices.Delete(s.waiting, i, i+1)
		s.grant() // others waited for this one's turn
		return nil, err
	}
	return func() { s.release(w) }, nil // granted, however late it is
}

// waitingOf counts a user's callers that wait. The caller holds mu.
func (s *Slots) waitingOf(user int64) (n int) {
	for _, w := range s.waiting {
		if w.user == user {
			n++
		}
	}
	return n
}

func (s *Slots) release(w *want) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held -= w.n
	if s.users[w.user] -= w.n; s.users[w.user] == 0 {
		delete(s.users, w.user)
	}
	s.grant()
}

// grant gives slots to those whose turn it is. The caller holds mu.
func (s *Slots) grant() {
	full := false
	s.waiting = slices.DeleteFunc(s.waiting, func(w *want) bool {
		if full || s.users[w.user]+w.n > s.perUser {
			return false
		}
		if full = s.held+w.n > s.total; full {
			return false
		}
		s.held += w.n
		s.users[w.user] += w.n
		close(w.granted)
		return true
	})
}

// Busy returns how many slots are in use.
func (s *Slots) Busy() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held
}
