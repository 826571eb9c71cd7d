package auth

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ccship/ccship/server"
)

// AmbiguousProjectError means that several projects have a name.
type AmbiguousProjectError struct {
	Name   string
	Hashes []string
}

// Error lists the hashes of the projects.
func (a *AmbiguousProjectError) Error() string {
	return fmt.Sprintf("%q is the name of several projects: %s; say which by its hash",
		a.Name, strings.Join(a.Hashes, ", "))
}

// Projects lists projects.
type Projects interface {
	Groups(ctx context.Context, scope server.Scope, q server.GroupQuery) (server.Groups, error)
}

// FindShare builds the share of the project among owner's whose hash or name it is. A project without a
// name is called by its hash. It accepts a hash of which owner has no session, with Project left empty: a share may
// outlive its sessions.
func FindShare(ctx context.Context, projects Projects, owner, with server.User,
	project string) (server.Share, error) {
	x := server.Share{Owner: owner.ID, With: with.ID, ProjectHash: project}
	groups, err := projects.Groups(ctx, server.Scope{User: owner.ID}, server.GroupQuery{})
	if err != nil {
		return x, fmt.Errorf("list projects: %w", err)
	}
	byName := map[string]string{}
	for _, g := range groups.List {
		if g.Owner != owner.ID {
			continue
		}
		if g.ProjectHash == project {
			x.Project = cmp.Or(g.Project, project)
			return x, nil
		}
		if g.Project == project {
			byName[g.ProjectHash] = g.Project
		}
	}
	if len(byName) > 1 {
		a := &AmbiguousProjectError{Name: project}
		for hash := range byName {
			a.Hashes = append(a.Hashes, hash)
		}
		return x, a
	}
	for hash, name := range byName {
		x.ProjectHash, x.Project = hash, name
	}
	return x, nil
}

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

// ownerLook is how old a look at an owner's role may be: owners see every change, maybe thousands a second.
const ownerLook = time.Second

// Sight decides which changes a listener may see while it listens. Follow is for one goroutine, Sees for any.
type Sight struct {
	access  *Access
	who     func(context.Context) (server.User, error)
	user    server.User
	checked time.Time
	sees    atomic.Pointer[func(server.Change) bool]
}

// Sight returns what the user that who finds may see. who is asked again at each check; its error ends the listening.
func (a *Access) Sight(ctx context.Context, who func(context.Context) (server.User, error)) (*Sight, error) {
	s := &Sight{access: a, who: who}
	return s, s.check(ctx)
}

// Sees reports whether a change was visible at the last check.
func (s *Sight) Sees(c server.Change) bool { return (*s.sees.Load())(c) }

// check finds out anew who listens, and what is shared with that user.
func (s *Sight) check(ctx context.Context) error {
	user, err := s.who(ctx)
	if err != nil {
		return err
	}
	sees, err := s.access.visible(ctx, user)
	if err != nil {
		return err
	}
	s.user, s.checked = user, time.Now()
	s.sees.Store(&sees)
	return nil
}

// may reports whether the listener may see a change now. It checks again before it shows another user's change: what
// was shared may no longer be. The zero Change says nothing.
func (s *Sight) may(ctx context.Context, c server.Change) (bool, error) {
	if c.Stream == 0 {
		return true, nil
	}
	if !s.Sees(c) || c.Owner == s.user.ID || s.user.Role == server.Owner && time.Since(s.checked) < ownerLook {
		return s.Sees(c), nil
	}
	err := s.check(ctx)
	return err == nil && s.Sees(c), err
}

// Follow calls change for each change that the listener may see, and beat at intervals, at which it checks again. It
// returns once the channel is closed, the listener may no longer listen, or a call fails.
func (s *Sight) Follow(ctx context.Context, changes <-chan server.Change, every time.Duration,
	change func(server.Change) error, beat func() error) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		var err error
		select {
		case c, more := <-changes:
			if !more {
				return
			}
			var may bool
			if may, err = s.may(ctx, c); may {
				err = change(c)
			}
		case <-tick.C:
			if err = s.check(ctx); err == nil {
				err = beat()
			}
		}
		if err != nil {
			return
		}
	}
}

// unsure is how long an answer goes on while nobody can say who its reader is: a database may be away for a moment, and
// a download does not begin again by itself.
const unsure = time.Minute

// Answer is an answer that ends once its reader may no longer have it: one that is long, or read slowly, may outlive
// the key or login that asked for it. Who says who the reader is now: ErrUnauthorized for nobody, or
// ErrTooMany, as a key that was right has no guesses to wait for. For one goroutine.
type Answer struct {
	http.ResponseWriter
	User  server.User
	Who   func() (server.User, error)
	Every time.Duration // between two looks

	known, looked time.Time // when the reader was known, and last looked for
}

// Unwrap is for http.ResponseController.
func (a *Answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// Write writes the next piece, unless the reader's rights have gone.
func (a *Answer) Write(b []byte) (int, error) {
	now := time.Now()
	if a.looked.IsZero() {
		a.known, a.looked = now, now
	}
	if now.Sub(a.looked) >= a.Every {
		user, err := a.Who()
		if err == nil && a.User.Role.Above(user.Role) {
			err = ErrUnauthorized
		}
		if err == nil {
			a.known = now
		} else if errors.Is(err, ErrUnauthorized) || errors.Is(err, ErrTooMany) || now.Sub(a.known) >= unsure {
			return 0, fmt.Errorf("look whether the reader may go on: %w", err)
		}
		a.looked = time.Now()
	}
	return a.ResponseWriter.Write(b)
}

// visible returns a filter of the changes that a user may see now.
func (a *Access) visible(ctx context.Context, user server.User) (func(server.Change) bool, error) {
	if user.Role == server.Owner {
		return func(server.Change) bool { return true }, nil
	}
	list, err := a.store.Shares(ctx)
	if err != nil {
		return nil, fmt.Errorf("list shares: %w", err)
	}
	type project struct {
		owner int64
		hash  string
	}
	type with struct{ documents bool }
	shared := map[project]with{}
	for _, s := range list {
		if s.With == user.ID {
			shared[project{s.Owner, s.ProjectHash}] = with{s.Documents}
		}
	}
	return func(c server.Change) bool {
		if c.Owner == user.ID {
			return true
		}
		s, ok := shared[project{c.Owner, c.Project}]
		return ok && (s.documents || c.About != server.AboutDocuments)
	}, nil
}
