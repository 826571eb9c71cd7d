package auth

import (
	"context"
	"time"

	"github.com/ccship/ccship/server"
)

const (
	// maxKeys and maxLinks are how many valid keys and links to sessions a user may have made. While keys are rotated,
	// each of them may have one that it replaces.
	maxKeys  = 100
	maxLinks = 200
)

// AddKey keeps a key of a user, made by that user or an owner. server.ErrHasMany when the user has a hundred.
func (a *Access) AddKey(ctx context.Context, k server.Key) error {
	k.Most = maxKeys
	return a.store.AddKey(ctx, k)
}

// RotateKey gives the name of a key to another one; see server.Keys. server.ErrHasMany when too many old ones still
// work.
func (a *Access) RotateKey(ctx context.Context, k server.Key, grace time.Time) error {
	k.Most = 2 * maxKeys
	return a.store.RotateKey(ctx, k, grace)
}
