package sqlstore

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/ccship/ccship/server"
)

// Dialect runs SQL that both databases understand, on one connection or on a pool. Values are given as question marks;
// flags are 0 and 1.
type Dialect interface {
	// Exec runs a statement and returns how many rows it changed.
	Exec(ctx context.Context, query string, args ...any) (int64, error)
	// Query calls row with each row of an answer. Bytes that it scans are its own.
	Query(ctx context.Context, query string, args []any, row func(Scanner) error) error
	// Lock is appended to a SELECT of rows that no other transaction may change until this one ends.
	Lock() string
	// Machine is the condition that streams are of a machine, and its value.
	Machine(name string) (condition string, value any)
	// Named is the condition that streams s have a session's name, and its value.
	Named(session string) (condition string, value any)
	// Forgotten reports whether a stream must not be stored.
	Forgotten(ctx context.Context, owner int64, h *server.Head) (bool, error)
	// LockUser keeps other transactions from counting what a user has stored until this one ends.
	LockUser(ctx context.Context, user int64) error
	// Enter finds or makes a stream, in a transaction, and keeps others from writing its artifacts until that ends.
	// server.ErrForgotten for a stream that must not be stored. A new stream does not lag: it has no lines.
	Enter(ctx context.Context, owner int64, h *server.Head, now int64) (stream int64, project string, err error)
}

// Keeping is called in a transaction before it writes, or looks for, a reason to keep sessions: retention removes
// nothing between its look for such reasons and its end.
func Keeping(ctx context.Context, d Dialect) error {
	return d.Query(ctx, `SELECT 1 FROM leases WHERE name = 'retention'`+d.Lock(), nil, func(Scanner) error { return nil })
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

// EnterStream fills in unknown facts of a stream. It changes nothing else that a batch of lines changes.
const EnterStream = `
ON CONFLICT (%s) DO UPDATE SET
  project_hash = CASE s.project_hash WHEN '' THEN excluded.project_hash ELSE s.project_hash END,
  host = CASE excluded.host WHEN '' THEN s.host ELSE excluded.host END,
  project = CASE s.project WHEN '' THEN excluded.project ELSE s.project END,
  cwd = CASE s.cwd WHEN '' THEN excluded.cwd ELSE s.cwd END,
  path = CASE s.path WHEN '' THEN excluded.path ELSE s.path END,
  parent = CASE s.parent WHEN '' THEN excluded.parent ELSE s.parent END
RETURNING id, project_hash`

// Scanner is a row of an answer.
type Scanner interface{ Scan(...any) error }

// In PostgreSQL every row of a stream carries the stream's owner, so that tables can be spread by it. SQLite's do not.
// Where both databases share a statement, what is about that column stands in braces: PostgreSQL's dialect leaves out
// the braces, SQLite's also what is in them, with the values of its question marks.

// WithoutOwners is a statement, and its values, without what is in braces.
func WithoutOwners(query string, args []any) (string, []any) {
	at := strings.IndexByte(query, '{')
	if at < 0 {
		return query, args
	}
	var out strings.Builder
	var kept []any
	for at >= 0 {
		n := strings.Count(query[:at], "?")
		out.WriteString(query[:at])
		inside, rest, _ := strings.Cut(query[at+1:], "}")
		kept, args = append(kept, args[:n]...), args[n+strings.Count(inside, "?"):]
		query = rest
		at = strings.IndexByte(query, '{')
	}
	out.WriteString(query)
	return out.String(), append(kept, args...)
}
