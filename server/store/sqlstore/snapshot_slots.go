package sqlstore

import (
	"context"
	"sync"
)

// SnapshotSlots bound how many snapshots are open: in all, and for one user half as many, so that one who reads slowly
// leaves space for the others. Safe for concurrent use.
type SnapshotSlots struct {
	all chan struct{}

	mu    sync.Mutex
	users map[int64]chan struct{} // guarded by mu
}

// NewSnapshotSlots returns n slots, all of them free.
func NewSnapshotSlots(n int) *SnapshotSlots {
	return &SnapshotSlots{all: make(chan struct{}, n), users: map[int64]chan struct{}{}}
}

// Take waits for a slot; the caller calls free once when it is done with it. User 0 is the server itself, which
// only the bound for all holds back.
func (s *SnapshotSlots) Take(ctx context.Context, user int64) (free func(), err error) {
	var held []chan struct{}
	free = func() {
		for _, slots := range held {
			<-slots
		}
	}
	for _, slots := range []chan struct{}{s.own(user), s.all} {
		if slots == nil {
			continue
		}
		select {
		case slots <- struct{}{}:
			held = append(held, slots)
		case <-ctx.Done():
			free()
			return nil, ctx.Err()
		}
	}
	return free, nil
}

// own returns a user's slots; nil for the server.
func (s *SnapshotSlots) own(user int64) chan struct{} {
	if user == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users[user] == nil {
		s.users[user] = make(chan struct{}, max(1, cap(s.all)/2))
	}
	return s.users[user]
}
