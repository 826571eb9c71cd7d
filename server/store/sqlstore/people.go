package sqlstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/ccship/ccship/server"
)

// SelectUser begins a query of users u, for the columns of a UserRow.
const SelectUser = `SELECT u.id, u.name, u.role, u.created, u.disabled, u.quota_bytes, u.quota_sessions `

// UserRow scans the columns of SelectUser.
type UserRow struct {
	u                 server.User
	created, disabled int64
}

// Columns are where to scan the row to.
func (r *UserRow) Columns() []any {
	return []any{&r.u.ID, &r.u.Name, &r.u.Role, &r.created, &r.disabled, &r.u.Quota.Bytes, &r.u.Quota.Sessions}
}

// User is the user of a row that was scanned.
func (r *UserRow) User() server.User {
	r.u.Created, r.u.Disabled = Moment(r.created), Moment(r.disabled)
	return r.u
}

func scanUser(row Scanner) (server.User, error) {
	var r UserRow
	err := row.Scan(r.Columns()...)
	return r.User(), err
}

// People are users, keys, shares and logins, the same in both databases. Set once, when a store opens.
type People struct{ db Writer }

// NewPeople returns the accounts of a store.
func NewPeople(db DB) People { return People{Writer{db, Once}} }

// FindUser implements server.Accounts.
func (p *People) FindUser(ctx context.Context, name string) (server.User, error) {
	u, err := first(ctx, p.db, SelectUser+`FROM users u WHERE u.name = ?`, []any{CleanText(name)}, scanUser)
	return u, Wrap(err, "find user %q", name)
}

// Users implements server.Accounts.
func (p *People) Users(ctx context.Context) ([]server.User, error) {
	return p.FirstUsers(ctx, math.MaxInt32)
}

// FirstUsers implements server.Accounts.
func (p *People) FirstUsers(ctx context.Context, most int) ([]server.User, error) {
	out, err := List(ctx, p.db, SelectUser+`FROM users u ORDER BY u.id LIMIT ?`, []any{most}, scanUser)
	return out, Wrap(err, "list users")
}

// namesAtOnce is how many users one query names.
const namesAtOnce = 256

// UserNames implements server.Accounts.
func (p *People) UserNames(ctx context.Context, ids []int64) (map[int64]string, error) {
	ids = slices.Clone(ids)
	slices.Sort(ids)
	ids = slices.Compact(ids)
	out := make(map[int64]string, len(ids))
	for part := range slices.Chunk(ids, namesAtOnce) {
		args := few(part)
		err := p.db.Query(ctx, `SELECT id, name FROM users WHERE id IN (`+
			Marks(len(args))+`)`, args, func(row Scanner) error {
			var id int64
			var name string
			err := row.Scan(&id, &name)
			out[id] = name
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("name users: %w", err)
		}
	}
	return out, nil
}

// few repeats the last of some values until there are 1, 4, 16 and so on, so that few statements are compiled for lists
// of all lengths.
func few[T any](list []T) []any {
	out := make([]any, fewer(len(list)))
	for i := range out {
		out[i] = list[min(i, len(list)-1)]
	}
	return out
}

// fewer is the least of 1, 4, 16 and so on that is not below n.
func fewer(n int) int {
	out := 1
	for out < n {
		out *= 4
	}
	return out
}

const selectShares = `
SELECT owner, with_user, project_hash, project, documents = 1, created FROM shares
ORDER BY created, owner, with_user, project_hash`

func scanShare(row Scanner) (h server.Share, err error) {
	var created int64
	err = row.Scan(&h.Owner, &h.With, &h.ProjectHash, &h.Project, &h.Documents, &created)
	h.Created = Moment(created)
	return h, err
}

// Shares implements server.Accounts.
func (p *People) Shares(ctx context.Context) ([]server.Share, error) {
	out, err := List(ctx, p.db, selectShares, nil, scanShare)
	return out, Wrap(err, "list shares")
}

// SelectKey begins a query of keys k with their users u, for ScanKey.
const SelectKey = SelectUser + `, k.id, k.name, k.hash, k.created, k.used, k.revoked, k.made_by, k.chain
FROM keys k JOIN users u ON u.id = k."user" `

// ScanKey scans a row of SelectKey.
func ScanKey(row Scanner) (server.Key, error) {
	var k server.Key
	var user UserRow
	var hash []byte
	var created, used, revoked int64
	err := row.Scan(append(user.Columns(), &k.ID, &k.Name, &hash, &created, &used, &revoked, &k.By, &k.Chain)...)
	copy(k.Hash[:], hash)
	k.User, k.Created, k.Used, k.Revoked = user.User(), Moment(created), Moment(used), Moment(revoked)
	return k, err
}

// overKeys is how many keys that are over a user keeps for each valid one that it may have.
const overKeys = 5

// checkKeys returns server.ErrHasMany when a user has as many valid keys as a new one says, and removes those that were
// over first, as long as nothing that they made is left. Others that add keys of the user wait until the transaction of
// d ends.
func checkKeys(ctx context.Context, d Dialect, user int64, k server.Key) error {
	if k.Most == 0 {
		return nil
	}
	if err := d.Hold(ctx, HeldUser, user); err != nil {
		return err
	}
	n, err := Number(ctx, d, `SELECT count(*) FROM keys WHERE "user" = ? AND (revoked = 0 OR revoked > ?)`, user,
		Micros(k.Created))
	if err == nil && n >= k.Most {
		err = fmt.Errorf("%d keys: %w", n, server.ErrHasMany)
	}
	if err != nil {
		return err
	}
	const over = `"user" = ? AND revoked <> 0 AND revoked <= ?`
	at := Micros(k.Created)
	_, err = d.Exec(ctx, `DELETE FROM keys WHERE `+over+` AND id < (SELECT max(id) FROM keys)
  AND id NOT IN (SELECT id FROM keys WHERE `+over+` ORDER BY revoked DESC, id DESC LIMIT ?)
  AND NOT EXISTS (SELECT 1 FROM keys m WHERE m.made_by = keys.id)
  AND NOT EXISTS (SELECT 1 FROM grants g WHERE g.key = keys.id)
  AND NOT EXISTS (SELECT 1 FROM shares h WHERE h.made_by = keys.id)`, user, at, user, at, overKeys*k.Most)
	return err
}

// FindKey implements server.Keyring.
func (p *People) FindKey(ctx context.Context, hash [32]byte) (server.Key, error) {
	k, err := first(ctx, p.db, SelectKey+`WHERE k.hash = ?`, []any{hash[:]}, ScanKey)
	return k, Wrap(err, "find key")
}

// Keys implements server.Accounts.
func (p *People) Keys(ctx context.Context, user int64) ([]server.Key, error) {
	var f Filter
	if user != 0 {
		f.Add(`u.id = ?`, user)
	}
	out, err := List(ctx, p.db, SelectKey+f.Where()+` ORDER BY k.id`, f.Args, ScanKey)
	return out, Wrap(err, "list keys")
}

// FindLogin implements server.Accounts.
func (p *People) FindLogin(ctx context.Context, token [32]byte, now time.Time) (server.Login, error) {
	l, err := first(ctx, p.db, SelectUser+`, l.key, l.until
FROM logins l JOIN users u ON u.id = l."user"
WHERE l.token = ? AND l.until > ? AND u.disabled = 0
  AND (l.key = 0 OR EXISTS (SELECT 1 FROM keys k WHERE k.id = l.key AND (k.revoked = 0 OR k.revoked > ?)))`,
		[]any{token[:], Micros(now), Micros(now)}, scanLogin)
	return l, Wrap(err, "find login")
}

func scanLogin(row Scanner) (l server.Login, err error) {
	var user UserRow
	var until int64
	err = row.Scan(append(user.Columns(), &l.Key, &until)...)
	l.User, l.Until = user.User(), Moment(until)
	return l, err
}

// SavedViews implements server.SavedViews.
func (k *Keeper) SavedViews(ctx context.Context, owner int64) ([]server.SavedView, error) {
	const query = `SELECT name, page, query, updated FROM saved_views WHERE owner = ? ORDER BY name`
	scan := func(row Scanner) (v server.SavedView, err error) {
		var updated int64
		err = row.Scan(&v.Name, &v.Page, &v.Query, &updated)
		v.Updated = Moment(updated)
		return v, err
	}
	list, err := List(ctx, k.db, query, []any{owner}, scan)
	return list, Wrap(err, "list saved views")
}

// SaveView implements server.SavedViews.
func (k *Keeper) SaveView(ctx context.Context, owner int64, v server.SavedView) error {
	err := k.db.Write(ctx, func(l Dialect) error {
		err := editOne(ctx, l, `
INSERT INTO saved_views (owner, name, page, query, updated) SELECT u.id, ?, ?, ?, ? FROM users u WHERE u.id = ?
ON CONFLICT (owner, name) DO UPDATE SET page = excluded.page, query = excluded.query, updated = excluded.updated`,
			CleanText(v.Name), v.Page, CleanText(v.Query), Micros(v.Updated), owner)
		if err != nil {
			return err
		}
		have, err := Number(ctx, l, `SELECT count(*) FROM saved_views WHERE owner = ?`, owner)
		if err == nil && have > server.MaxSavedViews {
			err = server.ViewError(fmt.Sprintf("You have %d saved views already: remove one first.", server.MaxSavedViews))
		}
		return err
	})
	return Wrap(err, "save view")
}

// RemoveView implements server.SavedViews.
func (k *Keeper) RemoveView(ctx context.Context, owner int64, name string) error {
	err := k.db.Edit(ctx, `DELETE FROM saved_views WHERE owner = ? AND name = ?`, owner, CleanText(name))
	return Wrap(err, "remove view")
}

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
