// Package sqlstore is what the two databases of package store share: artifacts, ledgers, accounts and filters in SQL
// that both understand through a Dialect, what is prepared before it is written, and the queue of batches that share a
// transaction. It knows no driver.
package sqlstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/transcript"
)

// DB is a database. Each statement outside of Read and Write sees what is committed.
type DB interface {
	Dialect
	// Read runs fn on one state of the database.
	Read(ctx context.Context, fn func(Dialect) error) error
	// Write runs fn in a transaction. It may be retried, also to bring what is cold before: fn then starts afresh.
	Write(ctx context.Context, how How, fn func(Dialect) error) error
	// Snapshots are numbers of snapshots: of the one opened first of those that are open, and one that those have, or a
	// larger one, which are opened from now on.
	Snapshots(ctx context.Context) (oldest, next int64, err error)
	// Tell announces a durable change. It never blocks.
	Tell(change server.Change)
}

// How is how a database writes. Without any of these, a write is durable, and no session is forgotten meanwhile.
type How int

const (
	Once    How = 1 << iota // not retried when it may be done; server.ErrExists when a row with the name exists
	Lazy                    // need not survive a crash
	Erase                   // removed bytes are overwritten as far as the database can
	Patient                 // lets what comes in pass
)

// Writer is a database that writes in one way.
type Writer struct {
	DB
	How How
}

// Write runs fn in a transaction, as DB.Write does.
func (w Writer) Write(ctx context.Context, fn func(Dialect) error) error {
	return w.DB.Write(ctx, w.How, fn)
}

// Change runs a statement in a transaction of its own.
func (w Writer) Change(ctx context.Context, query string, args ...any) error {
	return w.Write(ctx, func(d Dialect) error {
		_, err := d.Exec(ctx, query, args...)
		return err
	})
}

// Edit runs a statement in a transaction of its own that must change a row: server.ErrNotFound when it changes none.
func (w Writer) Edit(ctx context.Context, query string, args ...any) error {
	return w.Write(ctx, func(d Dialect) error { return editOne(ctx, d, query, args...) })
}

// Locked is a dialect whose queries lock the rows that they read.
type Locked struct{ Dialect }

// Query implements Dialect.
func (l Locked) Query(ctx context.Context, query string, args []any, row func(Scanner) error) error {
	return l.Lock(ctx, query, args, row)
}

// Dialect runs SQL that both databases understand, on one connection or on a pool. Values are given as question marks;
// flags are 0 and 1.
type Dialect interface {
	// Exec runs a statement and returns how many rows it changed.
	Exec(ctx context.Context, query string, args ...any) (int64, error)
	// Query calls row with each row of an answer. Bytes that it scans are its own.
	Query(ctx context.Context, query string, args []any, row func(Scanner) error) error
	// Lock is Query of rows that no other transaction may change until this one ends. SkipLocked leaves out those that
	// another one has locked.
	Lock(ctx context.Context, query string, args []any, row func(Scanner) error) error
	SkipLocked(ctx context.Context, query string, args []any, row func(Scanner) error) error
	// Hold waits until no other transaction has the hold of an id, and has it until this one ends. TryHold reports
	// whether none had.
	Hold(ctx context.Context, what Held, id int64) error
	TryHold(ctx context.Context, what Held, id int64) (bool, error)
}

// Held is what one transaction does at a time. They are taken in this order.
type Held int32

const (
	HeldStream Held = 0x6363_0001 + iota // deriving a stream
	HeldOwner                            // counting an owner's answers
	HeldQuota                            // storing for a user with a limit
	HeldSums                             // summing up
	HeldRights                           // giving rights with a key, or revoking one
	HeldUser                             // adding what a user may have so many of
	HeldKept                             // adding, or looking for, a reason to keep sessions
)

// LockRetention makes a transaction that writes, or looks for, a reason to keep sessions wait for others of this kind:
// retention removes nothing between its look for such reasons and its end.
func LockRetention(ctx context.Context, d Dialect) error {
	return d.Hold(ctx, HeldKept, 0)
}

// Wrap returns an error that says what failed; nil without one.
func Wrap(err error, what string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf(what+": %w", append(args, err)...)
}

// Number returns the number that a query answers; 0 when there is no row.
func Number(ctx context.Context, l Dialect, query string, args ...any) (n int64, err error) {
	err = l.Query(ctx, query, args, func(row Scanner) error { return row.Scan(&n) })
	return n, err
}

// Numbers lists the numbers that a query answers.
func Numbers(ctx context.Context, l Dialect, query string, args ...any) ([]int64, error) {
	return List(ctx, l, query, args, func(row Scanner) (n int64, err error) { return n, row.Scan(&n) })
}

// LongestLease is longer than any lease: one that ends later was taken by a clock that was ahead, and holds nobody.
const LongestLease = time.Hour

// Lease takes or renews a lease, of a holder that then has it for a while. false: another one has it.
func Lease(ctx context.Context, d Dialect, name, holder string, length time.Duration) (bool, error) {
	now := time.Now()
	n, err := d.Exec(ctx, `INSERT INTO leases (name, holder, until) VALUES (?, ?, ?)
ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until = excluded.until
WHERE leases.until < ? OR leases.until > ? OR leases.holder = excluded.holder`, name, holder, Micros(now.Add(length)),
		Micros(now), Micros(now.Add(LongestLease)))
	return n == 1, Wrap(err, "take the lease of %s", name)
}

// List runs a query on either database and scans each of its rows.
func List[T any](ctx context.Context, l Dialect, query string, args []any, scan func(Scanner) (T, error)) (out []T,
	err error) {
	err = l.Query(ctx, query, args, func(row Scanner) error {
		x, err := scan(row)
		out = append(out, x)
		return err
	})
	return out, err
}

// first is the first row of a query; server.ErrNotFound without any.
func first[T any](ctx context.Context, l Dialect, query string, args []any, scan func(Scanner) (T, error)) (x T,
	err error) {
	out, err := List(ctx, l, query, args, scan)
	if err != nil || len(out) == 0 {
		return x, cmp.Or(err, server.ErrNotFound)
	}
	return out[0], nil
}

// ErrSwept says that an object of cold storage is gone which had what was read: that is elsewhere now, or is no more.
var ErrSwept = errors.New("what was read changed meanwhile; try again")

// Flag is a bool in the stored form.
func Flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// enter finds or makes a stream, in a transaction, and keeps others from writing its artifacts until that ends.
// server.ErrForgotten for a stream that must not be stored. A new stream does not lag: it has no lines. It fills in
// unknown facts of a stream, and changes nothing else that a batch of lines changes.
func enter(ctx context.Context, d Dialect, owner int64, h *server.Head, now int64) (stream int64, project string,
	err error) {
	if err := NotForgotten(ctx, d, owner, h); err != nil {
		return 0, "", err
	}
	c := Clean(*h)
	err = d.Query(ctx, `
INSERT INTO streams AS s (owner, session_key, machine_key, session_id, machine, project_hash, host, project, cwd,
  path, parent, first_received, last_received, version, derived)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1, 1)
ON CONFLICT (owner, session_key, machine_key) DO UPDATE SET
  project_hash = CASE s.project_hash WHEN '' THEN excluded.project_hash ELSE s.project_hash END,
  host = CASE excluded.host WHEN '' THEN s.host ELSE excluded.host END,
  project = CASE s.project WHEN '' THEN excluded.project ELSE s.project END,
  cwd = CASE s.cwd WHEN '' THEN excluded.cwd ELSE s.cwd END,
  path = CASE s.path WHEN '' THEN excluded.path ELSE s.path END,
  parent = CASE s.parent WHEN '' THEN excluded.parent ELSE s.parent END
RETURNING id, project_hash`, []any{owner, Key(h.SessionID), Key(h.Machine), c.SessionID, c.Machine, c.ProjectHash,
		c.Host, c.Project, c.Cwd, c.Path, c.Parent, now, now},
		func(row Scanner) error { return row.Scan(&stream, &project) })
	return stream, project, Wrap(err, "write stream")
}

// NotForgotten answers server.ErrForgotten for a stream that must not be stored: it, what it is a copy of, or the
// session whose agent it is was forgotten.
func NotForgotten(ctx context.Context, d Dialect, owner int64, h *server.Head) error {
	keys := TombstoneKeys(h)
	gone, err := Number(ctx, d, `
SELECT 1 FROM forgotten WHERE owner = ? AND session_key IN (`+Marks(len(keys))+`) LIMIT 1`,
		append([]any{owner}, Values(keys)...)...)
	if err != nil {
		return fmt.Errorf("look for forgotten session: %w", err)
	}
	if gone > 0 {
		return fmt.Errorf("session %q: %w", h.SessionID, server.ErrForgotten)
	}
	return nil
}

// Scanner is a row of an answer.
type Scanner interface{ Scan(...any) error }

// OwnedStream is a stream and its owner.
type OwnedStream struct{ Stream, Owner int64 }

// OneOwner is an *server.AmbiguousError when streams of one session and its agents belong to several users.
func OneOwner(ctx context.Context, l Dialect, session string, streams []OwnedStream) error {
	no := &server.AmbiguousError{Session: session}
	for _, x := range streams {
		if slices.ContainsFunc(no.Choices, func(a server.Address) bool { return a.Owner == x.Owner }) {
			continue
		}
		a, err := Resolve(ctx, l, server.Scope{All: true}, server.Ref{Stream: x.Stream}, (*Filter).Scope)
		if err != nil {
			return err
		}
		if no.Choices = append(no.Choices, a); len(no.Choices) == server.MaxChoices {
			break
		}
	}
	if len(no.Choices) > 1 {
		return no
	}
	return nil
}

// Forgettables are the streams of a session and of its agents: those that its note will keep away.
func Forgettables(ctx context.Context, d Dialect, scope server.Scope, session string,
	owner int64) (out []OwnedStream, err error) {
	if session == "" {
		return nil, nil
	}
	session = CleanText(session)
	agent, copied, long := session+"/", session+"~", utf8.RuneCountInString(session)+1
	var f Filter
	f.Add(`(s.session_key = ? OR s.parent = ? OR substr(s.session_id, 1, ?) IN (?, ?)
  OR substr(s.parent, 1, ?) IN (?, ?))`,
		Key(session), session, long, agent, copied, long, agent, copied)
	f.Own(scope)
	f.Streams(nil, owner)
	err = d.Query(ctx, `SELECT s.id, s.owner, s.session_id, s.parent FROM streams s `+f.Where()+` ORDER BY s.id`, f.Args,
		func(row Scanner) error {
			var x OwnedStream
			var name, parent string
			err := row.Scan(&x.Stream, &x.Owner, &name, &parent)
			if slices.Contains(transcript.ForgetNames(name), session) ||
				slices.Contains(transcript.ForgetNames(parent), session) {
				out = append(out, x)
			}
			return err
		})
	return out, Wrap(err, "find streams")
}

// parseAfter reads a page's After: "<id>", or "<last active>-<id>" of a recent listing. Without one, the page starts at
// the beginning.
func parseAfter(p server.Page) (last, id int64, err error) {
	last = int64(1) << 62
	if p.After == "" {
		return last, 0, nil
	}
	a, b, ok := strings.Cut(p.After, "-")
	if !ok {
		a, b = "0", p.After
	}
	last, errA := strconv.ParseInt(a, 10, 64)
	id, errB := strconv.ParseInt(b, 10, 64)
	if ok != p.Recent || errA != nil || errB != nil {
		return 0, 0, server.ErrBadPage
	}
	return last, id, nil
}

// PageAfter returns the After of the page that follows the one ending with last.
func PageAfter(p server.Page, last *server.Session) string {
	if p.Longest {
		return ""
	}
	if p.Recent {
		return fmt.Sprintf("%d-%d", last.Active.UnixMicro(), last.ID)
	}
	return strconv.FormatInt(last.ID, 10)
}

// Micros returns a time as it is stored: Unix microseconds, 0 for the zero time.
func Micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

// Moment returns a stored time. One that JSON has no form for, beyond the years 0 to 9999, is none.
func Moment(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	t := time.UnixMicro(us).UTC()
	if y := t.Year(); y < 0 || y > 9999 {
		return time.Time{}
	}
	return t
}

// SnapshotSlots bound how many snapshots are open: in all, and for one user half as many, so that one who reads slowly
// leaves space for the others. Safe for concurrent use.
type SnapshotSlots struct {
	all chan struct{}

	mu    sync.Mutex
	users map[int64]chan struct{} // guarded by mu
}

// NewSnapshotSlots returns n slots, all of them free.
func NewSnapshotSlots(n int) *SnapshotSlots {
	return &SnapshotSlots{all: make(chan struct{}, n), users: map[int64]chan struct{}{}}
}

// Take waits for a slot; the caller calls free once when it is done with it. User 0 is the server itself, which
// only the bound for all holds back.
func (s *SnapshotSlots) Take(ctx context.Context, user int64) (free func(), err error) {
	var held []chan struct{}
	free = func() {
		for _, slots := range held {
			<-slots
		}
	}
	for _, slots := range []chan struct{}{s.own(user), s.all} {
		if slots == nil {
			continue
		}
		select {
		case slots <- struct{}{}:
			held = append(held, slots)
		case <-ctx.Done():
			free()
			return nil, ctx.Err()
		}
	}
	return free, nil
}

// own returns a user's slots; nil for the server.
func (s *SnapshotSlots) own(user int64) chan struct{} {
	if user == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users[user] == nil {
		s.users[user] = make(chan struct{}, max(1, cap(s.all)/2))
	}
	return s.users[user]
}
