package auth

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/ccship/ccship/server"
)

// ownerLook is how old a look at an owner's role may be: owners see every change, maybe thousands a second.
const ownerLook = time.Second

// Sight decides which changes a listener may see while it listens. Follow is for one goroutine, Sees for any.
type Sight struct {
	access  *Access
	who     func(context.Context) (server.User, error)
	user    server.User
	checked time.Time
	sees    atomic.Pointer[func(server.Change) bool]
}

// Sight returns what the user that who finds may see. who is asked again at each check; its error ends the listening.
func (a *Access) Sight(ctx context.Context, who func(context.Context) (server.User, error)) (*Sight, error) {
	s := &Sight{access: a, who: who}
	return s, s.check(ctx)
}

// Sees reports whether a change was visible at the last check.
func (s *Sight) Sees(c server.Change) bool { return (*s.sees.Load())(c) }

// check finds out anew who listens, and what is shared with that user.
func (s *Sight) check(ctx context.Context) error {
	user, err := s.who(ctx)
	if err != nil {
		return err
	}
	sees, err := s.access.visible(ctx, user)
	if err != nil {
		return err
	}
	s.user, s.checked = user, time.Now()
	s.sees.Store(&sees)
	return nil
}

// may reports whether the listener may see a change now. It checks again before it shows another user's change: what
// was shared may no longer be. The zero Change says nothing.
func (s *Sight) may(ctx context.Context, c server.Change) (bool, error) {
	if c.Stream == 0 {
		return true, nil
	}
	if !s.Sees(c) || c.Owner == s.user.ID || s.user.Role == server.Owner && time.Since(s.checked) < ownerLook {
		return s.Sees(c), nil
	}
	err := s.check(ctx)
	return err == nil && s.Sees(c), err
}

// Follow calls change for each change that the listener may see, and beat at intervals, at which it checks again. It
// returns once the channel is closed, the listener may no longer listen, or a call fails.
func (s *Sight) Follow(ctx context.Context, changes <-chan server.Change, every time.Duration,
	change func(server.Change) error, beat func() error) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		var err error
		select {
		case c, more := <-changes:
			if !more {
				return
			}
			var may bool
			if may, err = s.may(ctx, c); may {
				err = change(c)
			}
		case <-tick.C:
			if err = s.check(ctx); err == nil {
				err = beat()
			}
		}
		if err != nil {
			return
		}
	}
}

// visible returns a filter of the changes that a user may see now.
func (a *Access) visible(ctx context.Context, user server.User) (func(server.Change) bool, error) {
	if user.Role == server.Owner {
		return func(server.Change) bool { return true }, nil
	}
	list, err := a.store.Shares(ctx)
	if err != nil {
		return nil, fmt.Errorf("list shares: %w", err)
	}
	type project struct {
		owner int64
		hash  string
	}
	type with struct{ documents bool }
	shared := map[project]with{}
	for _, s := range list {
		if s.With == user.ID {
			shared[project{s.Owner, s.ProjectHash}] = with{s.Documents}
		}
	}
	return func(c server.Change) bool {
		if c.Owner == user.ID {
			return true
		}
		s, ok := shared[project{c.Owner, c.Project}]
		return ok && (s.documents || c.About != server.AboutDocuments)
	}, nil
}
