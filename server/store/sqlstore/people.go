package sqlstore

import (
	"context"
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
