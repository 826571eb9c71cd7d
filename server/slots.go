package server

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// slots bounds how many requests are worked on at once: in all, and for one key, so that one client that sends slowly
// or too much leaves room for the others. Safe for concurrent use.
type slots struct {
	all    chan struct{}
	perKey int

	mu   sync.Mutex
	keys map[int64]*keySlots // guarded by mu, as is their waiting
}

// keySlots are one key's.
type keySlots struct {
	held    chan struct{}
	waiting int // requests that have or want one
}

func newSlots(n int) *slots {
	return &slots{all: make(chan struct{}, n), perKey: max(2, n/2), keys: map[int64]*keySlots{}}
}

// take waits for a slot, at most for patience. An error is a refusal, or the context's.
func (s *slots) take(ctx context.Context, key int64, patience time.Duration) error {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	own := s.enter(key)
	err := takeOne(ctx, own.held, timer.C, "too many requests at once with this key")
	if err == nil {
		if err = takeOne(ctx, s.all, timer.C, "too many requests at once"); err != nil {
			<-own.held
		}
	}
	if err != nil {
		s.leave(key, own)
	}
	return err
}

func takeOne(ctx context.Context, from chan struct{}, over <-chan time.Time, busy string) error {
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
		return &refusal{http.StatusServiceUnavailable, "busy", busy}
	}
}

func (s *slots) give(key int64) {
	s.mu.Lock()
	own := s.keys[key]
	s.mu.Unlock()
	<-s.all
	<-own.held
	s.leave(key, own)
}

func (s *slots) enter(key int64) *keySlots {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := s.keys[key]
	if own == nil {
		own = &keySlots{held: make(chan struct{}, s.perKey)}
		s.keys[key] = own
	}
	own.waiting++
	return own
}

func (s *slots) leave(key int64, own *keySlots) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if own.waiting--; own.waiting == 0 {
		delete(s.keys, key)
	}
}

// busy is how many slots are taken.
func (s *slots) busy() int { return len(s.all) }
