package auth

import (
	"context"
	"time"

	"github.com/ccship/ccship/server"
)

const (
	// maxKeys and maxLinks are how many valid keys and links to sessions a user may have made. While keys are rotated,
	// each of them may have one that it replaces. maxShares is how many shares of a user's projects there may be.
	maxKeys   = 100
	maxLinks  = 200
	maxShares = 1000
)

// AddKey keeps a key of a user, made by that user or an owner. server.ErrHasMany when the user has a hundred.
func (a *Access) AddKey(ctx context.Context, k server.Key) error {
	k.Most = maxKeys
	return a.store.AddKey(ctx, k)
}

// AddShare adds a share; see server.Shares. server.ErrHasMany when there are a thousand of its owner's projects.
func (a *Access) AddShare(ctx context.Context, s server.Share) error {
	s.Most = maxShares
	return a.store.AddShare(ctx, s)
}

// RotateKey gives the name of a key to another one; see server.Keys. server.ErrHasMany when too many old ones still
// work.
func (a *Access) RotateKey(ctx context.Context, k server.Key, grace time.Time) error {
	k.Most = 2 * maxKeys
	return a.store.RotateKey(ctx, k, grace)
}
