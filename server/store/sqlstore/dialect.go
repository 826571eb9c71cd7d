package sqlstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ccship/ccship/server"
)

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
