package auth

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"time"
)

const (
	// A remote address may fail this often at once, and then once per guessEvery.
	guessBurst = 10
	guessEvery = 6 * time.Second
	// maxRemotes and maxProven bound what is remembered.
	maxRemotes = 10_000
	maxProven  = 10_000
)

// ErrTooMany matches every TooManyError.
var ErrTooMany = errors.New("too many wrong keys")

// TooManyError refuses to check a key or ticket now. It matches ErrTooMany.
type TooManyError struct {
	RetryAfter time.Duration // when to try again, above 0
}

// Error says when to try again.
func (t *TooManyError) Error() string {
	return fmt.Sprintf("%v; try again in %d seconds", ErrTooMany, t.Seconds())
}

// Is matches ErrTooMany.
func (t *TooManyError) Is(target error) bool { return target == ErrTooMany }

// Seconds is RetryAfter in whole seconds, at least 1.
func (t *TooManyError) Seconds() int { return max(1, int(math.Ceil(t.RetryAfter.Seconds()))) }

// bucket counts failures, and forgets one per interval.
type bucket struct {
	failures float64
	at       time.Time
}

// leak brings the bucket up to date.
func (b *bucket) leak(every time.Duration, now time.Time) {
	if d := now.Sub(b.at); d > 0 {
		b.failures = max(0, b.failures-float64(d)/float64(every))
		b.at = now
	}
}

// wait returns how long a full bucket stays full.
func (b *bucket) wait(burst float64, every time.Duration) time.Duration {
	return time.Duration((b.failures - burst + 1) * float64(every))
}

// guesses counts wrong secrets by remote address. There is no count for all: a caller with many addresses could have
// everybody else refused by it, and guesses no key of 256 bits either. A secret that was valid before is always
// checked, so that wrong guesses cannot lock out active users, even from the same address.
type guesses struct {
	mu      sync.Mutex
	remotes map[string]*bucket    // guarded by mu, as is all below
	proven  map[[32]byte]struct{} // hashes of secrets that were right
	swept   time.Time             // when remotes without failures were last looked for
}

func newGuesses() guesses {
	return guesses{remotes: map[string]*bucket{}, proven: map[[32]byte]struct{}{}}
}

// allowed returns nil if a secret may be checked now, otherwise a *TooManyError.
func (g *guesses) allowed(remote string, hash [32]byte, now time.Time) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, ok := g.proven[hash]; ok {
		return nil
	}
	if b := g.remotes[remote]; b != nil {
		if b.leak(guessEvery, now); b.failures > guessBurst-1 {
			return &TooManyError{b.wait(guessBurst, guessEvery)}
		}
	}
	return nil
}

// succeeded remembers a valid secret. At the limit it forgets others, which then only count as unknown.
func (g *guesses) succeeded(hash [32]byte) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.proven) >= maxProven {
		clear(g.proven)
	}
	g.proven[hash] = struct{}{}
}

// failed counts a failure; it returns true for the one that fills the remote's bucket.
func (g *guesses) failed(remote string, hash [32]byte, now time.Time) (full bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.proven, hash)
	b := g.remotes[remote]
	if b == nil {
		g.makeRoom(now)
		b = &bucket{at: now}
		g.remotes[remote] = b
	}
	b.leak(guessEvery, now)
	b.failures++
	return b.failures > guessBurst-1 && b.failures <= guessBurst
}

// makeRoom keeps the number of remotes bounded: those without failures go, looked for once in guessEvery, else any
// one.
func (g *guesses) makeRoom(now time.Time) {
	if len(g.remotes) < maxRemotes {
		return
	}
	if now.Sub(g.swept) >= guessEvery {
		g.swept = now
		for name, b := range g.remotes {
			if b.leak(guessEvery, now); b.failures == 0 {
				delete(g.remotes, name)
			}
		}
	}
	for name := range g.remotes {
		if len(g.remotes) < maxRemotes {
			return
		}
		delete(g.remotes, name)
	}
}
