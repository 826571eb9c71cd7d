package sqlstore

import (
	"context"
	"sync"
)

// Places bounds how many snapshots are open: in all, and for one user half as many, so that one who reads slowly
// leaves space for the others. Safe for concurrent use.
type Places struct {
	all     chan struct{}
	perUser int

	mu    sync.Mutex
	users map[int64]*userPlaces // guarded by mu, as is their wanting
}

// userPlaces are one user's.
type userPlaces struct {
	held    chan struct{}
	wanting int // that have a slot or wait for one
}

// NewPlaces returns n slots, all of them free.
func NewPlaces(n int) *Places {
	return &Places{all: make(chan struct{}, n), perUser: max(1, n/2), users: map[int64]*userPlaces{}}
}

// Take waits for a slot; the caller calls free once when it is done with it. User 0 is the server itself, which
// only the bound for all holds back.
func (p *Places) Take(ctx context.Context, user int64) (free func(), err error) {
	leave := func() {}
	if user != 0 {
		if leave, err = p.takeOwn(ctx, user); err != nil {
			return nil, err
		}
	}
	select {
	case p.all <- struct{}{}:
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	}
	return func() { <-p.all; leave() }, nil
}

// takeOwn waits for one of a user's slots.
func (p *Places) takeOwn(ctx context.Context, user int64) (leave func(), err error) {
	own := p.enter(user)
	select {
	case own.held <- struct{}{}:
		return func() { <-own.held; p.leave(user, own) }, nil
	case <-ctx.Done():
		p.leave(user, own)
		return nil, ctx.Err()
	}
}

func (p *Places) enter(user int64) *userPlaces {
	p.mu.Lock()
	defer p.mu.Unlock()
	own := p.users[user]
	if own == nil {
		own = &userPlaces{held: make(chan struct{}, p.perUser)}
		p.users[user] = own
	}
	own.wanting++
	return own
}

func (p *Places) leave(user int64, own *userPlaces) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if own.wanting--; own.wanting == 0 {
		delete(p.users, user)
	}
}
