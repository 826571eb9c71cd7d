package auth

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/server"
)

// keyPrefix makes a leaked key easy to find by secret scanners.
const keyPrefix = "ccs_"

// touchEvery is how stale a key's last use may be in the store: a write per request would double the work of ingest.
const touchEvery = time.Minute

// ErrUnauthorized is for a key that is missing, unknown or revoked. It does not reveal which.
var ErrUnauthorized = errors.New("missing or wrong API key")

// NewKey makes a key of 256 random bits. Store only its hash.
func NewKey() (key string, hash [32]byte) {
	var b [32]byte
	rand.Read(b[:]) // never fails: the runtime aborts the program instead
	key = keyPrefix + hex.EncodeToString(b[:])
	return key, HashKey(key)
}

// HashKey returns what a store keeps of a key. A fast hash is enough for a long random secret.
func HashKey(key string) [32]byte { return sha256.Sum256([]byte(key)) }

// check returns the key with this hash, or ErrUnauthorized; any other error is the store's. The store looks keys up by
// hash, so its duration reveals nothing about the key.
func (a *Access) check(ctx context.Context, hash [32]byte) (server.Key, error) {
	key, err := a.store.FindKey(ctx, hash)
	if errors.Is(err, server.ErrNotFound) {
		return server.Key{}, ErrUnauthorized
	}
	if err != nil {
		return server.Key{}, fmt.Errorf("check key: %w", err)
	}
	revoked := !key.Revoked.IsZero() && !time.Now().Before(key.Revoked)
	if revoked || !key.User.Disabled.IsZero() || subtle.ConstantTimeCompare(key.Hash[:], hash[:]) != 1 {
		return server.Key{}, ErrUnauthorized
	}
	a.touch(ctx, key)
	return key, nil
}

// touch records the use of a key, at most once in touchEvery. A failure does not refuse the key.
func (a *Access) touch(ctx context.Context, key server.Key) {
	now := time.Now()
	a.mu.Lock()
	stale := now.Sub(a.touched[key.ID]) >= touchEvery
	if stale {
		a.touched[key.ID] = now
	}
	a.mu.Unlock()
	if !stale || now.Sub(key.Used) < touchEvery {
		return
	}
	if err := a.store.TouchKey(ctx, key.ID, now); err != nil {
		a.log.Warn("note use of key", "key", key.Name, "error", err)
	}
}

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
		key, err = a.check(ctx, hash)
	}
	a.note(remote, wrong, err)
	return key, err
}
