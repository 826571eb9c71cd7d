// Package auth identifies callers: by API key, by login or by one-time link. It limits guesses and makes keys and
// links. It knows requests only by their headers and address, and keeps nothing itself: everything is in the store, so
// that it survives a restart and holds for every server on one database.
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
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/server"
)

const (
	// LoginFor is how long a login of a browser lasts.
	LoginFor = 30 * 24 * time.Hour
	// DefaultTicket and MaxTicket bound how long a one-time link works.
	DefaultTicket = 10 * time.Minute
	MaxTicket     = 7 * 24 * time.Hour
	// maxToken limits how much of a presented token, ticket or key is hashed, in bytes.
	maxToken = 512
)

// Store keeps what Access checks and changes.
type Store interface {
	server.Keyring
	server.Logins
	Keys(ctx context.Context, user int64) ([]server.Key, error)
	AddKey(ctx context.Context, k server.Key) error
	RotateKey(ctx context.Context, k server.Key, grace time.Time) error
	AddShareLink(ctx context.Context, l server.ShareLink) (int64, error)
	FindShareLink(ctx context.Context, hash [32]byte, now time.Time) (server.ShareLink, error)
	Shares(ctx context.Context) ([]server.Share, error)
	AddShare(ctx context.Context, s server.Share) error
}

// Access identifies callers by key, login or one-time link, and slows down guessing. Everything lasting is in the
// store, so that it survives a restart and holds on every server of one database. Safe for concurrent use.
type Access struct {
	// Proxies are the addresses whose X-Forwarded-For and X-Forwarded-Proto are trusted. Set before use.
	Proxies []netip.Prefix
	// Run is part of every login: a login is invalid under another Run. "": logins last until they expire. Set before use.
	Run string

	store   Store
	ids     keyIDs
	guesses guesses
	log     *slog.Logger

	mu      sync.Mutex
	touched map[int64]time.Time // when keys were used, as the store knows; guarded by mu
}

// New returns an Access that checks credentials against store.
func New(store Store, log *slog.Logger) *Access {
	return &Access{store: store, guesses: newGuesses(), log: log, touched: map[int64]time.Time{}}
}

// Key returns the presented key, with its user. ErrUnauthorized when it is missing, unknown, revoked or its user
// disabled; TooManyError when remote (see Remote) has presented too many wrong keys.
func (a *Access) Key(ctx context.Context, remote, presented string) (server.Key, error) {
	if presented == "" || len(presented) > maxToken {
		return server.Key{}, ErrUnauthorized // no guess: nothing is looked up
	}
	hash := HashKey(presented)
	if err := a.guesses.allowed(remote, hash, time.Now()); err != nil {
		return server.Key{}, err
	}
	key, err := a.check(ctx, hash)
	a.note(remote, hash, err)
	return key, err
}

// note records the outcome of checking a secret. Failures of the store do not count as guesses.
func (a *Access) note(remote string, hash [32]byte, err error) {
	switch {
	case err == nil:
		a.guesses.succeeded(hash)
	case errors.Is(err, ErrUnauthorized):
		if a.guesses.failed(remote, hash, time.Now()) {
			a.log.Warn("too many wrong keys", "remote", remote)
		}
	}
}

// Login logs a browser in with a key. The token is for its cookie; the store keeps only its hash. Errors as of Key.
func (a *Access) Login(ctx context.Context, remote, presented string) (token string, l server.Login, err error) {
	key, err := a.Key(ctx, remote, presented)
	if err != nil {
		return "", server.Login{}, err
	}
	return a.add(ctx, server.Login{User: key.User, Key: key.ID})
}

// LoginWithTicket logs a browser in with a one-time link's ticket, which is used up. Errors as of Key.
func (a *Access) LoginWithTicket(ctx context.Context, remote, ticket string) (token string, l server.Login, err error) {
	if ticket == "" || len(ticket) > maxToken {
		return "", server.Login{}, ErrUnauthorized
	}
	hash := sha256.Sum256([]byte(ticket))
	if err := a.guesses.allowed(remote, hash, time.Now()); err != nil {
		return "", server.Login{}, err
	}
	l, err = a.store.TakeTicket(ctx, hash, time.Now())
	if errors.Is(err, server.ErrNotFound) || err == nil && !l.User.Disabled.IsZero() {
		err = ErrUnauthorized
	}
	if errors.Is(err, ErrUnauthorized) {
		a.note(remote, hash, err)
		return "", server.Login{}, err
	}
	if err != nil {
		return "", server.Login{}, fmt.Errorf("use one-time link: %w", err)
	}
	return a.add(ctx, l)
}

// loginHash returns what the store keeps of a login's token.
func (a *Access) loginHash(token string) [32]byte { return sha256.Sum256([]byte(a.Run + token)) }

func (a *Access) add(ctx context.Context, l server.Login) (string, server.Login, error) {
	token := rand.Text()
	l.Until = time.Now().Add(LoginFor)
	if err := a.store.AddLogin(ctx, a.loginHash(token), l); err != nil {
		return "", server.Login{}, fmt.Errorf("keep login: %w", err)
	}
	return token, l, nil
}

// Check returns the login of a token. ErrUnauthorized when it has expired or ended, or its user or key is no longer
// valid; any other error is the store's.
func (a *Access) Check(ctx context.Context, token string) (server.Login, error) {
	if token == "" || len(token) > maxToken {
		return server.Login{}, ErrUnauthorized
	}
	l, err := a.store.FindLogin(ctx, a.loginHash(token), time.Now())
	if errors.Is(err, server.ErrNotFound) || err == nil && !l.User.Disabled.IsZero() {
		return server.Login{}, ErrUnauthorized
	}
	if err != nil {
		return server.Login{}, fmt.Errorf("check login: %w", err)
	}
	return l, nil
}

// Logout ends a login. It is no error if the login has ended already.
func (a *Access) Logout(ctx context.Context, token string) error {
	if token == "" || len(token) > maxToken {
		return nil
	}
	err := a.store.RemoveLogin(ctx, a.loginHash(token))
	if err != nil && !errors.Is(err, server.ErrNotFound) {
		return fmt.Errorf("end login: %w", err)
	}
	return nil
}

// NewTicket makes the secret of a one-time link that logs user in until ttl has passed. A ttl of 0 is DefaultTicket;
// no ticket works for longer than MaxTicket. key is the key that asks for the link, 0 for none: once it is revoked, the
// link and the logins made with it end too.
func (a *Access) NewTicket(ctx context.Context, user server.User, key int64, ttl time.Duration) (string, error) {
	if !user.Disabled.IsZero() {
		return "", ErrUnauthorized
	}
	if ttl <= 0 {
		ttl = DefaultTicket
	}
	ticket := rand.Text()
	l := server.Login{User: user, Key: key, Until: time.Now().Add(min(ttl, MaxTicket))}
	if err := a.store.AddTicket(ctx, sha256.Sum256([]byte(ticket)), l); err != nil {
		return "", fmt.Errorf("keep one-time link: %w", err)
	}
	return ticket, nil
}

// Remote returns the source of a request, for counting guesses: the address of the connection, or, if that is one of
// Proxies, the last address in X-Forwarded-For that is not one of them. An IPv6 network of 64 bits counts as one
// source.
func (a *Access) Remote(r *http.Request) string {
	return remoteName(clientAddr(r, a.Proxies))
}

// Secure reports whether the browser's connection is encrypted: here, or according to one of Proxies.
func (a *Access) Secure(r *http.Request) bool {
	if r.TLS != nil {
		return true
	}
	return trusted(peerAddr(r), a.Proxies) && r.Header.Get("X-Forwarded-Proto") == "https"
}

// ParseProxies reads addresses and networks (10.0.0.0/8), separated by commas.
func ParseProxies(list string) ([]netip.Prefix, error) {
	var out []netip.Prefix
	for part := range strings.SplitSeq(list, ",") {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		if p, err := netip.ParsePrefix(part); err == nil {
			out = append(out, p.Masked())
			continue
		}
		addr, err := netip.ParseAddr(part)
		if err != nil {
			return nil, fmt.Errorf("%q is neither an address nor a network such as 10.0.0.0/8", part)
		}
		addr = addr.Unmap()
		out = append(out, netip.PrefixFrom(addr, addr.BitLen()))
	}
	return out, nil
}

// peerAddr returns the other end of the connection; the zero Addr when that is no IP address.
func peerAddr(r *http.Request) netip.Addr {
	ap, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return ap.Addr().Unmap().WithZone("")
}

func trusted(addr netip.Addr, proxies []netip.Prefix) bool {
	return slices.ContainsFunc(proxies, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// clientAddr walks X-Forwarded-For from its end, where each trusted proxy has added what it saw. It never reaches what
// an untrusted client wrote at the beginning.
func clientAddr(r *http.Request, proxies []netip.Prefix) netip.Addr {
	addr := peerAddr(r)
	chain := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(chain) - 1; i >= 0 && trusted(addr, proxies); i-- {
		next := forwardedAddr(strings.TrimSpace(chain[i]))
		if !next.IsValid() {
			break
		}
		addr = next.Unmap().WithZone("")
	}
	return addr
}

// forwardedAddr reads an address of X-Forwarded-For. Some proxies write its port too, or brackets around it. The zero
// Addr when it is none.
func forwardedAddr(text string) netip.Addr {
	if ap, err := netip.ParseAddrPort(text); err == nil {
		return ap.Addr()
	}
	addr, _ := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(text, "["), "]"))
	return addr
}

// remoteName returns one name for all addresses between which a client can easily switch.
func remoteName(addr netip.Addr) string {
	if addr.Is6() {
		if p, err := addr.Prefix(64); err == nil {
			return p.String()
		}
	}
	return addr.String()
}

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
