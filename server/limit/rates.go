package limit

import (
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/ccship/ccship/server/wire"
)

// Rates bounds how many requests one user makes a minute. Safe for concurrent use; nil bounds nothing.
type Rates struct {
	perMinute int

	mu    sync.Mutex
	users map[int64]*rate // guarded by mu, as is what it holds
	swept time.Time
}

// rate is what one user may still ask for.
type rate struct {
	left float64
	at   time.Time
}

// NewRates bounds requests to so many a minute, which may come at once; 0: no bound.
func NewRates(perMinute int) *Rates {
	if perMinute <= 0 {
		return nil
	}
	return &Rates{perMinute: perMinute, users: map[int64]*rate{}}
}

// Take counts a request. Its error is a *wire.RefusalError with 429: the client is to try again later.
func (r *Rates) Take(user int64, now time.Time) error {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sweep(now)
	u := r.users[user]
	if u == nil {
		u = &rate{left: float64(r.perMinute), at: now}
		r.users[user] = u
	}
	if d := now.Sub(u.at); d > 0 {
		u.left, u.at = min(float64(r.perMinute), u.left+d.Minutes()*float64(r.perMinute)), now
	}
	if u.left < 1 {
		return wire.Refuse(http.StatusTooManyRequests, "quota",
			fmt.Sprintf("this user made more than %d requests in a minute, the server's limit; try again later", r.perMinute))
	}
	u.left--
	return nil
}

// sweep forgets users who may ask for as much as a new one.
func (r *Rates) sweep(now time.Time) {
	if now.Sub(r.swept) < time.Minute {
		return
	}
	r.swept = now
	for user, u := range r.users {
		if now.Sub(u.at) >= time.Minute {
			delete(r.users, user)
		}
	}
}
