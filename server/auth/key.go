package auth

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

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

// keys checks API keys. Safe for concurrent use.
type keys struct {
	ring server.Keyring
	log  *slog.Logger

	mu      sync.Mutex
	touched map[int64]time.Time // guarded by mu; one entry a key
}

// newKeys checks keys against ring.
func newKeys(ring server.Keyring, log *slog.Logger) *keys {
	return &keys{ring: ring, log: log, touched: map[int64]time.Time{}}
}

// check returns the key with this hash, or ErrUnauthorized; any other error is the store's. The store looks keys up by
// hash, so its duration reveals nothing about the key.
func (k *keys) check(ctx context.Context, hash [32]byte) (server.Key, error) {
	key, err := k.ring.FindKey(ctx, hash)
	if errors.Is(err, server.ErrNotFound) {
		return server.Key{}, ErrUnauthorized
	}
	if err != nil {
		return server.Key{}, fmt.Errorf("check key: %w", err)
	}
	revoked := !key.Revoked.IsZero() && !time.Now().Before(key.Revoked)
	if revoked || subtle.ConstantTimeCompare(key.Hash[:], hash[:]) != 1 {
		return server.Key{}, ErrUnauthorized
	}
	k.touch(ctx, key)
	return key, nil
}

// touch records the use of a key, at most once in touchEvery. A failure does not refuse the key.
func (k *keys) touch(ctx context.Context, key server.Key) {
	now := time.Now()
	k.mu.Lock()
	stale := now.Sub(k.touched[key.ID]) >= touchEvery
	if stale {
		k.touched[key.ID] = now
	}
	k.mu.Unlock()
	if !stale || now.Sub(key.Used) < touchEvery {
		return
	}
	if err := k.ring.TouchKey(ctx, key.ID, now); err != nil {
		k.log.Warn("note use of key", "key", key.Name, "error", err)
	}
}
