package sqlstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/ccship/ccship/server"
)

// SetQuota implements server.Quotas.
func (k *Keeper) SetQuota(ctx context.Context, user int64, limit server.Quota) error {
	err := k.db.Edit(ctx, `UPDATE users SET quota_bytes = ?, quota_sessions = ? WHERE id = ?`,
		limit.Bytes, limit.Sessions, user)
	return Wrap(err, "set quota")
}

// Stored implements server.Quotas.
func (k *Keeper) Stored(ctx context.Context, user int64) (server.Stored, error) {
	s, err := storedOf(ctx, k.db, user)
	return s, Wrap(err, "count what is stored")
}

// storedOf sums what a user's streams and files take. A forgotten stream has no row, so it counts no more.
func storedOf(ctx context.Context, l Dialect, user int64) (s server.Stored, err error) {
	var streams, generations, epochs, rows int64
	err = l.Query(ctx, `SELECT CAST(coalesce(sum(stored), 0) AS bigint), count(*),
  CAST(coalesce(sum(CASE WHEN parent = '' THEN 1 ELSE 0 END), 0) AS bigint),
  (SELECT count(*) FROM generations g WHERE g.owner = ?), (SELECT count(*) FROM artifact_epochs a WHERE a.owner = ?),
  (SELECT count(*) FROM checkpoints c WHERE c.owner = ?) + (SELECT count(*) FROM documents d WHERE d.owner = ?) +
  (SELECT count(*) FROM document_versions v WHERE v.owner = ?) + (SELECT count(*) FROM blob_refs r WHERE r.owner = ?)
FROM streams WHERE owner = ?`, []any{user, user, user, user, user, user, user}, func(row Scanner) error {
		return row.Scan(&s.Bytes, &streams, &s.Sessions, &generations, &epochs, &rows)
	})
	if err != nil {
		return s, err
	}
	s.Bytes += server.RowBytes * (streams + max(0, generations-streams) + max(0, epochs-streams) + rows)
	files, err := Number(ctx, l, `SELECT CAST(coalesce(sum(size), 0) AS bigint) FROM blobs
  WHERE owner = ? AND retired = 0`, user)
	s.Bytes += files
	return s, err
}

// Write is what a request would store.
type Write struct {
	Owner int64
	Quota server.Quota
	Head  *server.Head
	Bytes int64
}

// BatchWrite is what a batch of lines would store. Lines that are stored already count, too.
func BatchWrite(b *server.Batch) Write {
	w := Write{Owner: b.Owner, Quota: b.Quota, Head: &b.Head}
	for _, l := range b.Lines {
		w.Bytes += int64(len(l.Raw)) + 1
	}
	return w
}

// Admission compares the writes of one transaction with the limits of their users. Writes that it admits count for
// those that follow.
type Admission struct {
	dialect Dialect
	users   map[int64]*server.Stored
	begun   map[string]bool // streams that do not exist yet and were admitted
}

// NewAdmission begins to admit the writes of a transaction.
func NewAdmission(l Dialect) *Admission {
	return &Admission{l, map[int64]*server.Stored{}, map[string]bool{}}
}

// Admit returns a *server.QuotaError for a write that would exceed a limit of its user. It admits writes of forgotten
// sessions: nothing of them will be stored.
func (a *Admission) Admit(ctx context.Context, w Write) error {
	if w.Quota == (server.Quota{}) {
		return nil
	}
	has, err := a.stored(ctx, w.Owner)
	if err != nil {
		return err
	}
	begins, err := a.begins(ctx, w)
	if err != nil {
		return err
	}
	session := begins && w.Head.Parent == ""
	if begins {
		w.Bytes += server.RowBytes
	}
	var no *server.QuotaError
	switch {
	case session && w.Quota.Sessions > 0 && has.Sessions >= w.Quota.Sessions:
		no = &server.QuotaError{Sessions: true, Limit: w.Quota.Sessions, Stored: has.Sessions}
	case w.Quota.Bytes > 0 && has.Bytes+w.Bytes > w.Quota.Bytes:
		no = &server.QuotaError{Limit: w.Quota.Bytes, Stored: has.Bytes, Size: w.Bytes}
	}
	if no != nil {
		err := NotForgotten(ctx, a.dialect, w.Owner, w.Head)
		if errors.Is(err, server.ErrForgotten) {
			return nil
		}
		return cmp.Or[error](err, no)
	}
	has.Bytes += w.Bytes
	if session {
		has.Sessions++
	}
	if begins {
		a.begun[streamName(w)] = true
	}
	return nil
}

// stored is what a user has, with what was admitted. Other transactions of the user wait.
func (a *Admission) stored(ctx context.Context, user int64) (*server.Stored, error) {
	if s := a.users[user]; s != nil {
		return s, nil
	}
	if err := a.dialect.Hold(ctx, HeldQuota, user); err != nil {
		return nil, err
	}
	s, err := storedOf(ctx, a.dialect, user)
	if err != nil {
		return nil, fmt.Errorf("count what is stored: %w", err)
	}
	a.users[user] = &s
	return &s, nil
}

// begins reports whether a write would begin a transcript.
func (a *Admission) begins(ctx context.Context, w Write) (bool, error) {
	if a.begun[streamName(w)] {
		return false, nil
	}
	var f Filter
	f.Add(`s.owner = ?`, w.Owner)
	f.Add(named, Key(w.Head.SessionID))
	f.Add(`s.machine_key = ?`, Key(w.Head.Machine))
	n, err := Number(ctx, a.dialect, `SELECT 1 FROM streams s `+f.Where(), f.Args...)
	return n == 0, Wrap(err, "look for transcript")
}

func streamName(w Write) string {
	return fmt.Sprintf("%d %q %q", w.Owner, w.Head.SessionID, w.Head.Machine)
}
