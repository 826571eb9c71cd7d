package auth

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/server"
)

// keyIDs finds keys by their public names. Safe for concurrent use.
type keyIDs struct {
	mu     sync.Mutex
	hashes map[string][32]byte // by protocol.KeyID; guarded by mu
	read   time.Time           // when the store was asked for hashes; guarded by mu
}

// hash returns the hash of the key with an id; ok is false if there is none. It reads the keys for an id that it does
// not know, because another process may have made the key just now. Callers that wait share one reading.
func (k *keyIDs) hash(ctx context.Context, store Store, id string) (hash [32]byte, ok bool, err error) {
	asked := time.Now()
	k.mu.Lock()
	defer k.mu.Unlock()
	if hash, ok = k.hashes[id]; ok || k.read.After(asked) {
		return hash, ok, nil
	}
	began := time.Now()
	list, err := store.Keys(ctx, 0)
	if err != nil {
		return hash, false, fmt.Errorf("list keys: %w", err)
	}
	k.hashes, k.read = make(map[string][32]byte, len(list)), began
	for _, key := range list {
		k.hashes[protocol.KeyID(key.Hash)] = key.Hash
	}
	hash, ok = k.hashes[id]
	return hash, ok, nil
}

// Proven returns the key that a client names by its id, if the client proves that it knows the key. Errors as of Key.
func (a *Access) Proven(ctx context.Context, remote, id, nonce, proof string) (server.Key, error) {
	if !protocol.ValidNonce(nonce) || len(id) > maxToken || len(proof) > maxToken {
		return server.Key{}, ErrUnauthorized
	}
	wrong := HashKey(id)
	if err := a.guesses.allowed(remote, wrong, time.Now()); err != nil {
		return server.Key{}, err
	}
	hash, ok, err := a.ids.hash(ctx, a.store, id)
	if err != nil {
		return server.Key{}, err
	}
	var key server.Key
	err = ErrUnauthorized
	if ok && protocol.EqualProofs(proof, protocol.ClientProof(hash, nonce)) {
		key, err = a.keys.check(ctx, hash)
	}
	if err == nil && !key.User.Disabled.IsZero() {
		err = ErrUnauthorized
	}
	a.note(remote, wrong, err)
	if err != nil {
		return server.Key{}, err
	}
	return key, nil
}
