package auth

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ccship/ccship/server"
)

const (
	// maxKeys and maxLinks are how many valid keys and links to sessions a user may have made.
	maxKeys  = 100
	maxLinks = 200
)

// ErrHasMany means that a user has as many keys or links as one may have.
var ErrHasMany = errors.New("as many as one user may have; end some that are not needed first")

// AddKey keeps a key of a user, made by that user or an owner. ErrHasMany when the user has a hundred.
func (a *Access) AddKey(ctx context.Context, k server.Key) error {
	list, err := a.store.Keys(ctx, k.User.ID)
	if err != nil {
		return fmt.Errorf("list keys: %w", err)
	}
	n := 0
	for _, old := range list {
		if old.Revoked.IsZero() || old.Revoked.After(time.Now()) {
			n++
		}
	}
	if n >= maxKeys {
		return fmt.Errorf("%d keys: %w", n, ErrHasMany)
	}
	return a.store.AddKey(ctx, k)
}

// mayLink returns ErrHasMany for a user who has made so many links that work.
func (a *Access) mayLink(ctx context.Context, user server.User) error {
	list, err := a.store.ShareLinks(ctx, server.ShareLinkQuery{User: user.ID}, time.Now())
	if err != nil {
		return fmt.Errorf("list links: %w", err)
	}
	n := 0
	for i := range list {
		if list[i].By.ID == user.ID {
			n++
		}
	}
	if n >= maxLinks {
		return fmt.Errorf("%d links to sessions: %w", n, ErrHasMany)
	}
	return nil
}
