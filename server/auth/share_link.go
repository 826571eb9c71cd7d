package auth

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ccship/ccship/server"
)

const (
	// DefaultShare and MaxShare bound how long a link to a session works.
	DefaultShare = 7 * day
	MaxShare     = 365 * day

	day = 24 * time.Hour

	// sharePath is what stands before the secret in the address of a shared session.
	sharePath = "/s/"
)

// ShareURL returns the address of a shared session, below base.
func ShareURL(base, secret string) string { return strings.TrimRight(base, "/") + sharePath + secret }

// LoggedPath returns the path of a request without the secret of a link to a session.
func LoggedPath(path string) string {
	before, rest, found := strings.Cut(path, sharePath)
	if !found {
		return path
	}
	_, below, _ := strings.Cut(rest, "/")
	return before + sharePath + "…/" + below
}

// MayShare reports whether a user may show a session to others: its own, or as an owner any.
func MayShare(u server.User, x server.Address) bool {
	return u.Role == server.Owner || x.Owner == u.ID && u.Role == server.Member
}

// ParseShareTime reads how long a link to a session works: days as "7d", or a Go duration; "" for DefaultShare.
func ParseShareTime(s string) (time.Duration, error) {
	if s == "" {
		return DefaultShare, nil
	}
	var d time.Duration
	var err error
	if days, is := strings.CutSuffix(s, "d"); is {
		var n int64
		n, err = strconv.ParseInt(days, 10, 32)
		d = time.Duration(min(n, 1000)) * day
	} else {
		d, err = time.ParseDuration(s)
	}
	if err != nil || d < time.Minute || d > MaxShare {
		return 0, fmt.Errorf("%q is not a time from 1m to 365d, such as 7d or 12h", s)
	}
	return d, nil
}

// NewShareLink makes a link with which anybody reads a session and its agents' transcripts. Its secret has 130 random
// bits; the store keeps a hash. x says which stream, by whom, and with which key: once that is revoked, the link ends.
func (a *Access) NewShareLink(ctx context.Context, x server.ShareLink,
	ttl time.Duration) (secret string, _ server.ShareLink, err error) {
	secret = rand.Text()
	x.Most = maxLinks
	x.Hash, x.Created = sha256.Sum256([]byte(secret)), time.Now().UTC()
	x.Until = x.Created.Add(min(ttl, MaxShare))
	if x.ID, err = a.store.AddShareLink(ctx, x); err != nil {
		return "", x, fmt.Errorf("keep link to session: %w", err)
	}
	return secret, x, nil
}

// CheckShareLink returns the link that has a secret. server.ErrNotFound: none that works has it; TooManyError as for
// Key.
func (a *Access) CheckShareLink(ctx context.Context, remote, secret string) (server.ShareLink, error) {
	if secret == "" || len(secret) > maxToken {
		return server.ShareLink{}, server.ErrNotFound
	}
	// Wrong links are counted apart: any page that this reader's browser shows may ask for them, and must not keep the
	// reader from logging in.
	remote = "link " + remote
	hash := sha256.Sum256([]byte(secret))
	if err := a.guesses.allowed(remote, hash, time.Now()); err != nil {
		return server.ShareLink{}, err
	}
	l, err := a.store.FindShareLink(ctx, hash, time.Now())
	if err == nil && subtle.ConstantTimeCompare(l.Hash[:], hash[:]) != 1 {
		err = server.ErrNotFound
	}
	if errors.Is(err, server.ErrNotFound) {
		a.note(remote, hash, ErrUnauthorized)
		return server.ShareLink{}, server.ErrNotFound
	}
	if err != nil {
		return server.ShareLink{}, fmt.Errorf("check link to session: %w", err)
	}
	a.note(remote, hash, nil)
	return l, nil
}
