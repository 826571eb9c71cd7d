package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Accounts keeps users, keys, shares and logins. Names are unique: ErrExists for a second one, ErrNotFound for none.
// Safe for concurrent use.
type Accounts interface {
	Users
	Keys
	Shares
	Logins
}

// Users keeps users.
type Users interface {
	AddUser(ctx context.Context, name string, role Role, by By) (User, error)
	FindUser(ctx context.Context, name string) (User, error)
	Users(ctx context.Context) ([]User, error) // oldest first
	// FirstUsers are the oldest users, at most so many.
	FirstUsers(ctx context.Context, most int) ([]User, error)
	// UserNames are the names of those users, by ID; one that there is not has none.
	UserNames(ctx context.Context, ids []int64) (map[int64]string, error)
	SetRole(ctx context.Context, user int64, role Role, by By) error
	DisableUser(ctx context.Context, user int64, disabled bool, by By) error
}

// By is with which key something is done, 0 for none, and when. ErrNotFound when the key is revoked meanwhile, or its
// user may not do that any more.
type By struct {
	Key int64
	At  time.Time
}

// Keys keeps the hashes of API keys.
type Keys interface {
	// AddKey keeps a key of a user that exists, made with k.By. ErrHasMany when it would be one more than k.Most.
	AddKey(ctx context.Context, k Key) error
	Keys(ctx context.Context, user int64) ([]Key, error) // user 0: of all users; oldest first
	// RevokeKey revokes a key with all that came from it: what it was rotated to and from, keys that were made with one
	// of these, keys of users who were, and so on. It returns what it ended.
	RevokeKey(ctx context.Context, name string, at time.Time) (Ended, error)
	// RotateKey gives the name of a valid key to k's hash, by k.By. The old hash stays valid until grace, under another
	// name. ErrHasMany when its user would have more valid ones than k.Most.
	RotateKey(ctx context.Context, k Key, grace time.Time) error
}

// Keyring finds keys by their hash.
type Keyring interface {
	// FindKey returns ErrNotFound for an unknown hash. It finds revoked keys.
	FindKey(ctx context.Context, hash [32]byte) (Key, error)
	TouchKey(ctx context.Context, id int64, at time.Time) error
}

// Shares keeps who may see whose projects.
type Shares interface {
	// AddShare adds a share; of one that exists it changes only Documents. ErrNotFound when a user does not exist,
	// ErrHasMany when its owner would have more than s.Most.
	AddShare(ctx context.Context, s Share) error
	RemoveShare(ctx context.Context, s Share) error
	Shares(ctx context.Context) ([]Share, error)
}

// Logins keeps the hashes of login tokens and of one-time links.
type Logins interface {
	AddLogin(ctx context.Context, token [32]byte, l Login) error
	// FindLogin returns ErrNotFound for a login that is unknown or over, whose user is disabled or whose key is revoked.
	FindLogin(ctx context.Context, token [32]byte, now time.Time) (Login, error)
	RemoveLogin(ctx context.Context, token [32]byte) error
	// AddTicket keeps a one-time link to the login l.
	AddTicket(ctx context.Context, ticket [32]byte, l Login) error
	// TakeTicket uses up a one-time link. ErrNotFound when it is unknown, over or used.
	TakeTicket(ctx context.Context, ticket [32]byte, now time.Time) (Login, error)
}

// Role is what a user may do.
type Role string

const (
	Owner  Role = "owner"  // sees everything, manages users and keys
	Member Role = "member" // sends sessions; sees its own and those of projects shared with it
	Viewer Role = "viewer" // sends nothing; sees what is shared with it
)

// Above reports whether r may do more than other.
func (r Role) Above(other Role) bool {
	order := []Role{Viewer, Member, Owner}
	return slices.Index(order, r) > slices.Index(order, other)
}

// User sends sessions or reads them.
type User struct {
	ID       int64
	Name     string
	Role     Role
	Created  time.Time
	Disabled time.Time // zero: may act; keys and logins of a disabled user are refused
	Quota    Quota     // the user's own; 0: the server's, NoQuota: none
}

// Key is an API key as it is stored: without the key.
type Key struct {
	ID      int64
	User    User
	Name    string
	Hash    [32]byte // sha256 of the key
	Created time.Time
	Used    time.Time // zero: never; kept to the minute
	Revoked time.Time // zero: never; refused from then on. It lies ahead for a rotated key
	By      int64     // the key that it was made with; 0: none
	Chain   int64     // the first key that it was rotated from; 0: itself
	Most    int64     // valid keys that its user may have with it, when it is added; 0: any number
}

// Share lets a user see another user's sessions of one project.
type Share struct {
	Owner       int64     `json:"-"` // whose sessions
	With        int64     `json:"-"` // who may see them
	ProjectHash string    `json:"project_hash"`
	Project     string    `json:"project"`   // its name, for people
	Documents   bool      `json:"documents"` // linked documents too: they are files
	Created     time.Time `json:"created"`
	By          int64     `json:"-"` // the key that it was made with, when it is added; 0: none
	Most        int64     `json:"-"` // shares that Owner may have with it, when it is added; 0: any number
}

// Login is a browser that has shown a key or a one-time link.
type Login struct {
	User  User
	Key   int64 // the key that it, or its one-time link, was made with; 0: none
	Until time.Time
}

// Scope is whose sessions a caller may see. The zero Scope sees nothing.
type Scope struct {
	All  bool  // of all users
	User int64 // this user's own, and those of projects shared with this user
	Only int64 // when it is not 0: nothing but this stream and those of its agents
}

// ScopeOf is what a user may see.
func ScopeOf(u User) Scope { return Scope{All: u.Role == Owner, User: u.ID} }

// ParseRole reads a role's name.
func ParseRole(s string) (Role, error) {
	switch r := Role(s); r {
	case Owner, Member, Viewer:
		return r, nil
	}
	return "", fmt.Errorf("unknown role %q: want owner, member or viewer", s)
}

// Ended lists what revoking a key ended besides the key: what was made with it, or with what was made with it, and
// worked.
type Ended struct {
	Keys    []string // names, sorted
	Logins  int64
	Tickets int64    // one-time links
	Links   int64    // to sessions
	Users   []string // that it made: names of those who are disabled now, sorted. What they sent is kept
	Reset   []User   // whom it gave another role or enabled: as they were before
	Shares  []EndedShare
}

// EndedShare is a share of a project that is no more.
type EndedShare struct {
	Owner   string `json:"owner"` // whose
	With    string `json:"with"`
	Project string `json:"project"`
}

// String says what ended in words, without a final dot; "nothing else" for nothing.
func (e Ended) String() string {
	var out []string
	names := func(what string, list []string) {
		if len(list) > 0 {
			out = append(out, fmt.Sprintf("%s %s", what, quoted(list)))
		}
	}
	count := func(n int64, one string) {
		if n == 1 {
			out = append(out, "1 "+one)
		} else if n > 1 {
			out = append(out, fmt.Sprintf("%d %ss", n, one))
		}
	}
	names("keys", e.Keys)
	count(e.Logins, "login")
	count(e.Tickets, "one-time link")
	count(e.Links, "link")
	for _, s := range e.Shares {
		out = append(out, fmt.Sprintf("the share of %q of %q with %q", s.Project, s.Owner, s.With))
	}
	for _, u := range e.Reset {
		now := string(u.Role)
		if !u.Disabled.IsZero() {
			now = "disabled"
		}
		out = append(out, fmt.Sprintf("rights of %q: %s again", u.Name, now))
	}
	names("users, now disabled:", e.Users)
	if len(out) == 0 {
		return "nothing else"
	}
	return strings.Join(out, "; ")
}

func quoted(list []string) string {
	var b strings.Builder
	for i, s := range list {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%q", s)
	}
	return b.String()
}

// Quota is how much one user may store. 0: no limit.
type Quota struct {
	Bytes    int64 // of lines, replaced lines, checkpoints and files, and RowBytes for each row besides lines
	Sessions int64 // not counting transcripts of agents
}

// RowBytes is what a transcript counts for besides its lines, also an agent's: its row, names and indexes. Each of its
// checkpoints, documents, versions and files counts as much, and each epoch and generation after the first.
const RowBytes = 1 << 10

// NoQuota is a limit of a user that lifts the server's.
const NoQuota = -1

// For returns the limits of a user: the user's own, and the server's q where the user has none. NoQuota lifts a limit.
func (q Quota) For(u User) Quota {
	return Quota{max(0, pick(u.Quota.Bytes, q.Bytes)), max(0, pick(u.Quota.Sessions, q.Sessions))}
}

func pick(own, otherwise int64) int64 {
	if own != 0 {
		return own
	}
	return otherwise
}

// Stored is how much of a user is stored, counted as a Quota limits it. Files count in full from when their upload
// starts.
type Stored struct {
	Bytes    int64 `json:"bytes"`
	Sessions int64 `json:"sessions"`
}

// Quotas keeps limits, and knows what they limit. Safe for concurrent use.
type Quotas interface {
	// SetQuota sets a user's own limits: 0 is the server's, NoQuota lifts it. ErrNotFound for an unknown user.
	SetQuota(ctx context.Context, user int64, q Quota) error
	// Stored returns what is stored of a user.
	Stored(ctx context.Context, user int64) (Stored, error)
}

// ErrOverQuota is what every QuotaError is.
var ErrOverQuota = errors.New("over quota")

// QuotaError refuses a write that would exceed a limit of its user. Nothing of it is stored; what was stored before
// stays. The write succeeds once something is forgotten or the limit is raised.
type QuotaError struct {
	Sessions bool  // the limit is one of sessions, else of bytes
	Limit    int64 // sessions or bytes
	Stored   int64
	Size     int64 // bytes of the write
}

func (e *QuotaError) Error() string {
	const todo = "forget sessions that are no longer needed, or ask the server's owner for more"
	if e.Sessions {
		return fmt.Sprintf("this user may have %d sessions here, and has %d: %s", e.Limit, e.Stored, todo)
	}
	return fmt.Sprintf("this user may store %d bytes here, has %d, and sends %d more: %s", e.Limit, e.Stored, e.Size, todo)
}

func (e *QuotaError) Unwrap() error { return ErrOverQuota }
