package auth

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/ccship/ccship/server"
)

// ErrLastOwner means that a change would leave the server without an owner.
var ErrLastOwner = errors.New("this is the last owner; make another user one first")

// SetRole changes what a user may do, with a key or 0. ErrLastOwner when no owner would be left to manage the server.
func SetRole(ctx context.Context, st server.Users, user server.User, role server.Role, key int64) error {
	if role != server.Owner {
		if err := notLast(ctx, st, user); err != nil {
			return err
		}
	}
	if err := st.SetRole(ctx, user.ID, role, server.By{Key: key, At: time.Now()}); err != nil {
		return fmt.Errorf("change role of %q: %w", user.Name, err)
	}
	return nil
}

// Disable refuses a user's keys and logins from now on, or accepts them again. Errors as of SetRole.
func Disable(ctx context.Context, st server.Users, user server.User, disabled bool, key int64) error {
	if disabled {
		if err := notLast(ctx, st, user); err != nil {
			return err
		}
	}
	if err := st.DisableUser(ctx, user.ID, disabled, server.By{Key: key, At: time.Now()}); err != nil {
		return fmt.Errorf("disable %q: %w", user.Name, err)
	}
	return nil
}

func notLast(ctx context.Context, st server.Users, user server.User) error {
	if user.Role != server.Owner {
		return nil
	}
	list, err := st.Users(ctx)
	if err != nil {
		return fmt.Errorf("list users: %w", err)
	}
	for _, u := range list {
		if u.ID != user.ID && u.Role == server.Owner && u.Disabled.IsZero() {
			return nil
		}
	}
	return ErrLastOwner
}

// Someone returns the named user; the caller for "". Only an owner may act for others, who do not exist for anyone
// else.
func Someone(ctx context.Context, st server.Users, caller server.User, name string) (server.User, error) {
	if name == "" || name == caller.Name {
		return caller, nil
	}
	if caller.Role != server.Owner {
		return server.User{}, fmt.Errorf("user %q: %w", name, server.ErrNotFound)
	}
	return st.FindUser(ctx, name)
}

// maxAccountName bounds names of users and keys, in bytes.
const maxAccountName = 100

// Me stands for the caller's own name where a request names a user. No account has it.
const Me = "@me"

// CheckAccountName returns what is wrong with a name for a user or a key.
func CheckAccountName(name string) error {
	switch {
	case name == "":
		return errors.New("the name is empty")
	case len(name) > maxAccountName:
		return fmt.Errorf("the name is longer than %d bytes", maxAccountName)
	case !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl):
		return errors.New("the name has control characters or is not UTF-8")
	case strings.TrimSpace(name) != name:
		return errors.New("the name begins or ends with a space")
	case name == Me:
		return errors.New("the name " + Me + " means the caller")
	}
	return nil
}

// MaxGrace is the longest time that a rotated key may keep working: what a thief may choose, too.
const MaxGrace = 72 * time.Hour

// ParseGrace reads how long a rotated key keeps working: a Go duration, "" for not at all.
func ParseGrace(s string) (time.Duration, error) {
	if s == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 || d > MaxGrace {
		return 0, fmt.Errorf("grace %q is not a duration from 0s to %v, such as 24h", s, MaxGrace)
	}
	return d, nil
}

// TicketURL returns the address that a one-time link leads to, below base.
func TicketURL(base, ticket string) string {
	return strings.TrimRight(base, "/") + "/login?ticket=" + url.QueryEscape(ticket)
}

// ParseTTL reads how long a one-time link works: a Go duration, "" for DefaultTicket.
func ParseTTL(s string) (time.Duration, error) {
	if s == "" {
		return DefaultTicket, nil
	}
	d, err := time.ParseDuration(s)
	if err != nil || d <= 0 || d > MaxTicket {
		return 0, fmt.Errorf("%q is not a duration up to %v, such as 10m", s, MaxTicket)
	}
	return d, nil
}

const (
	// maxKeys and maxLinks are how many valid keys and links to sessions a user may have made. While keys are rotated,
	// each of them may have one that it replaces. maxShares is how many shares of a user's projects there may be.
	maxKeys   = 100
	maxLinks  = 200
	maxShares = 1000
)

// AddKey makes a key of a user, which that user or an owner asks for, and returns it: the store keeps only its hash.
// server.ErrHasMany when the user has a hundred.
func (a *Access) AddKey(ctx context.Context, k server.Key) (secret string, err error) {
	secret, k.Hash = NewKey()
	k.Most = maxKeys
	return secret, a.store.AddKey(ctx, k)
}

// OwnKeys lists the keys that a user may change: the own ones, or for an owner all.
func (a *Access) OwnKeys(ctx context.Context, user server.User) ([]server.Key, error) {
	if user.Role == server.Owner {
		return a.store.Keys(ctx, 0)
	}
	return a.store.Keys(ctx, user.ID)
}

// OwnKey returns the key of a name among those that a user may change. server.ErrNotFound when there is none.
func (a *Access) OwnKey(ctx context.Context, user server.User, name string) (server.Key, error) {
	list, err := a.OwnKeys(ctx, user)
	if err != nil {
		return server.Key{}, err
	}
	for _, k := range list {
		if k.Name == name {
			return k, nil
		}
	}
	return server.Key{}, fmt.Errorf("key %q: %w", name, server.ErrNotFound)
}

// AddShare adds a share; see server.Shares. server.ErrHasMany when there are a thousand of its owner's projects.
func (a *Access) AddShare(ctx context.Context, s server.Share) error {
	s.Most = maxShares
	return a.store.AddShare(ctx, s)
}

// RotateKey gives the name of a key to another one, which it returns; see server.Keys. by is the key that asks.
// server.ErrHasMany when too many old ones still work.
func (a *Access) RotateKey(ctx context.Context, name string, by server.By, grace time.Duration) (secret string,
	err error) {
	secret, hash := NewKey()
	k := server.Key{Name: name, Hash: hash, Created: by.At, By: by.Key, Most: 2 * maxKeys}
	return secret, a.store.RotateKey(ctx, k, by.At.Add(grace))
}
