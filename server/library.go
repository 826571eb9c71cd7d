package server

import (
	"context"
	"io"
	"time"
)

// Library finds sessions and what is derived from their lines. Safe for concurrent use. What a scope does not allow
// is not there: ErrNotFound, never "forbidden".
type Library interface {
	// Find lists sessions with their facts. ErrBadPage for an After that no listing gave.
	Find(ctx context.Context, scope Scope, q SessionQuery) (Found, error)
	// Groups lists projects by machine, the one active last first.
	Groups(ctx context.Context, scope Scope) ([]Group, error)
	// View pins the state of one stream for reading. The caller closes it, soon: a store may have to keep old pages
	// for as long, and bounds how many are open.
	View(ctx context.Context, scope Scope, ref Ref) (Snapshot, error)
	// FactsOf answers what is derived of a stream; the zero Facts when nothing is yet.
	FactsOf(ctx context.Context, stream int64) (Facts, error)
	// Search finds lines. Nothing in a query is an operator but double quotes; an empty one finds nothing. Letters are
	// found in upper and lower case, any run of white space as any other. ErrBadPage for an After that no search gave.
	Search(ctx context.Context, scope Scope, q SearchQuery) (Hits, error)
	// Usage sums answers, each counted once. Rows come in the order of what By names, days first.
	Usage(ctx context.Context, scope Scope, q UsageQuery) ([]UsageRow, error)
	// Drops lists rewrites that took lines out of files, the newest first; of one session when session is not "".
	Drops(ctx context.Context, scope Scope, session string, limit int) ([]Drop, error)
	// Lags answers whether some stored lines are not derived yet, so that Drops with the same scope and session may
	// still change.
	Lags(ctx context.Context, scope Scope, session string) (bool, error)
	// Received answers when the bytes of a line arrived that is stored in that generation of that epoch (an Epoch.ID of
	// the stream); of lines stored before times were kept, when the generation began. ErrNotFound for a line that is
	// not stored.
	Received(ctx context.Context, stream, epoch, generation, line int64) (time.Time, error)
	// Forget removes every stream of a session and of its agents, with everything derived, and leaves a note that
	// keeps them from being stored again. ErrNotFound when there is none of the scope's own: what is only shared
	// with a user is not that user's to forget.
	Forget(ctx context.Context, scope Scope, session string, at time.Time) (Forgotten, error)
	// ListForgotten lists what was forgotten, the latest first: for a user its own.
	ListForgotten(ctx context.Context, scope Scope) ([]Forgotten, error)
	Papers
}

// Found is one page of sessions with their facts.
type Found struct {
	List []FoundSession
	Next string
}

// FoundSession is a session, what is derived of it, and what its answers used, by model. Agents' answers are not
// counted in their parent's.
type FoundSession struct {
	Session
	Facts  Facts
	Usage  []UsageRow // by model
	Agents int64      // transcripts of its agents
}

// Deriving hands out streams whose derived data lags behind. Safe for several processes at once.
type Deriving interface {
	// Lagging leases up to n streams for some seconds, those heard last first; another caller does not get them
	// meanwhile. Saving what is not Done extends a lease, Done ends it. A task begins again at the zero Place when
	// lines were stored behind what was derived, or in an older generation or epoch.
	Lagging(ctx context.Context, n int) ([]Task, error)
	// SaveDerived stores a derivation, as one: all of it or nothing. ErrStale when the stream was forgotten, or
	// derived or reset by someone else, or when lines were stored behind its end since the task was handed out.
	SaveDerived(ctx context.Context, d *Derivation) error
	// Renew lets everything be derived again that was derived in a Format lower than format, and nothing else; what
	// is derived stays until then.
	Renew(ctx context.Context, format int64) error
	// Lag answers how many streams are not wholly derived.
	Lag(ctx context.Context) (int64, error)
	// ResetDerived drops all that is derived of every stream, so that all of it is derived again. Tasks that are out
	// become stale.
	ResetDerived(ctx context.Context) error
}

// Watching tells what is stored, by whichever server process. A listener that is too slow misses changes, never
// blocks: what it gets says where to look, not what is there.
type Watching interface {
	Changes(ctx context.Context) (<-chan Change, error) // closed when ctx is done
}

// Accounts keeps users, keys, shares and logins. Names are unique; ErrExists for a second one, ErrNotFound for none.
type Accounts interface {
	AddUser(ctx context.Context, name string, role Role, at time.Time) (User, error)
	FindUser(ctx context.Context, name string) (User, error)
	Users(ctx context.Context) ([]User, error) // oldest first
	SetRole(ctx context.Context, user int64, role Role) error
	DisableUser(ctx context.Context, user int64, at time.Time) error // zero at: enable again

	AddKey(ctx context.Context, user int64, name string, hash [32]byte, at time.Time) error
	Keys(ctx context.Context, user int64) ([]Key, error) // user 0: everybody's; oldest first
	RevokeKey(ctx context.Context, name string, at time.Time) error
	// RotateKey gives a valid key's name another hash. The old one stays valid until grace, under another name.
	RotateKey(ctx context.Context, name string, hash [32]byte, at, grace time.Time) error

	AddShare(ctx context.Context, s Share) error // again changes Documents only; ErrNotFound without such users
	RemoveShare(ctx context.Context, s Share) error
	Shares(ctx context.Context) ([]Share, error)

	AddLogin(ctx context.Context, token [32]byte, l Login) error
	// FindLogin answers ErrNotFound for one that is unknown, over, of a disabled user or made with a revoked key.
	FindLogin(ctx context.Context, token [32]byte, now time.Time) (Login, error)
	RemoveLogin(ctx context.Context, token [32]byte) error
	// AddTicket keeps the hash of a one-time link; TakeTicket uses it up. ErrNotFound when it is unknown, over or used.
	AddTicket(ctx context.Context, ticket [32]byte, user int64, until time.Time) error
	TakeTicket(ctx context.Context, ticket [32]byte, now time.Time) (User, error)
}

// Backer is a store that can be copied while it is in use.
type Backer interface {
	// Backup writes a copy of one moment that Restore takes. progress gets bytes done and bytes in all.
	Backup(ctx context.Context, to io.Writer, progress func(done, total int64)) error
}

// Sizes is what a store can say of itself.
type Sizes struct {
	Bytes   int64 // on disk, or of the database
	Streams int64
}

// Measured is a store that knows its sizes. Optional.
type Measured interface {
	Sizes(ctx context.Context) (Sizes, error)
}
