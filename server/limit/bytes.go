package limit

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/ccship/ccship/server"
)

const (
	// hugeBytes is how many bytes of huge lines all answers may hold at once; hugeOfOne, those to one user and to the
	// readers of that user's links. Some copies of each are in memory.
	hugeBytes = 192 << 20
	hugeOfOne = 48 << 20
)

// Bytes bounds how many bytes are held at once, in total and for each user. Callers get them in turn; one that waits
// for bytes of its own user holds up no other user. Safe for concurrent use.
type Bytes struct {
	perUser int64

	mu      sync.Mutex
	free    int64           // guarded by mu, as are the others
	users   map[int64]int64 // held
	waiting []*want
}

// want is a request for bytes.
type want struct {
	user, n int64
	granted chan struct{}
}

// NewBytes makes n bytes, of which one user may hold perUser.
func NewBytes(n, perUser int64) *Bytes {
	return &Bytes{perUser: perUser, free: n, users: map[int64]int64{}}
}

// Acquire waits for bytes until ctx ends: its error then. Who wants more than a user may hold gets all of these. The
// caller calls release once.
func (b *Bytes) Acquire(ctx context.Context, user, n int64) (release func(), err error) {
	w := &want{user, min(n, b.perUser), make(chan struct{})}
	b.mu.Lock()
	b.waiting = append(b.waiting, w)
	b.grant()
	b.mu.Unlock()
	select {
	case <-w.granted:
		return func() { b.give(w) }, nil
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := slices.Index(b.waiting, w); i >= 0 {
		b.waiting = slices.Delete(b.waiting, i, i+1)
		b.grant() // others waited for this one's turn
		return nil, ctx.Err()
	}
	return func() { b.give(w) }, nil
}

func (b *Bytes) give(w *want) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.free += w.n
	if b.users[w.user] -= w.n; b.users[w.user] == 0 {
		delete(b.users, w.user)
	}
	b.grant()
}

// grant gives bytes to those whose turn it is. The caller holds mu.
func (b *Bytes) grant() {
	full := false
	b.waiting = slices.DeleteFunc(b.waiting, func(w *want) bool {
		if full || b.users[w.user]+w.n > b.perUser {
			return false
		}
		if full = w.n > b.free; full {
			return false
		}
		b.free -= w.n
		b.users[w.user] += w.n
		close(w.granted)
		return true
	})
}

// ReserveLong implements server.Reserver. It waits for Patience at most.
func (s *fairStore) ReserveLong(ctx context.Context, user, n int64) (release func(), err error) {
	patience := cmp.Or(s.Patience, defaultPatience)
	ctx, cancel := context.WithTimeoutCause(ctx, patience,
		fmt.Errorf("wait %s for space for a line of %d bytes: %w", patience, n, server.ErrBusy))
	defer cancel()
	release, err = s.huge.Acquire(ctx, user, n)
	if err != nil {
		err = context.Cause(ctx)
	}
	return release, err
}
