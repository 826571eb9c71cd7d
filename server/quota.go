package server

import (
	"context"
	"errors"
	"fmt"
)

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
type Stored struct{ Bytes, Sessions int64 }

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
