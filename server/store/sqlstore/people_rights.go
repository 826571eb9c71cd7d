package sqlstore

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/ccship/ccship/server"
)

// with runs statements that give rights in a transaction of their own, beside none that ends or takes rights.
func (p *People) with(ctx context.Context, what string, fn func(Dialect) error) error {
	return p.once(ctx, what, func(d Dialect) error {
		if err := d.Hold(ctx, HeldRights, 0); err != nil {
			return err
		}
		return fn(d)
	})
}

// allowed returns server.ErrNotFound when the key that something is done with is revoked by then, or its user disabled,
// or not an owner any more: a request may be read for long after its key was checked. What is of one user, that user
// may do too, in a role that is not below least; of 0 is nobody's.
func allowed(ctx context.Context, d Dialect, by server.By, least server.Role, of int64) error {
	if by.Key == 0 {
		return nil
	}
	n, err := Number(ctx, d, `SELECT count(*) FROM keys k JOIN users u ON u.id = k."user"
WHERE k.id = ? AND (k.revoked = 0 OR k.revoked > ?) AND u.disabled = 0
  AND (u.role = ? OR u.id = ? AND u.role IN (?, ?))`,
		by.Key, Micros(by.At), string(server.Owner), of, string(server.Member), string(least))
	if err == nil && n == 0 {
		err = fmt.Errorf("its key is revoked, or its user may not do this any more: %w", server.ErrNotFound)
	}
	return err
}

func lockedUser(ctx context.Context, d Dialect, user int64) (server.User, error) {
	return first(ctx, Locked{d}, SelectUser+`FROM users u WHERE u.id = ?`, []any{user}, scanUser)
}

// grant notes that a key gives a user rights. was is the user before, without a role when it is new. What a key gave
// first counts.
func grant(ctx context.Context, d Dialect, by server.By, was server.User) error {
	if by.Key == 0 {
		return nil
	}
	_, err := d.Exec(ctx, `INSERT INTO grants (key, "user", role, disabled, given) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (key, "user") DO NOTHING`, by.Key, was.ID, string(was.Role), Micros(was.Disabled), Micros(by.At))
	return err
}

// RevokeKey implements server.Accounts. It revokes all that came from the key, too.
func (p *People) RevokeKey(ctx context.Context, name string, at time.Time) (e server.Ended, err error) {
	err = p.once(ctx, fmt.Sprintf("revoke key %q", name), func(d Dialect) error {
		if err := d.Hold(ctx, HeldRights, 0); err != nil {
			return err
		}
		e = server.Ended{}
		return (&revoking{ctx: ctx, d: d, name: CleanText(name), at: Micros(at), e: &e}).all()
	})
	if err != nil {
		return server.Ended{}, err
	}
	return e, nil
}

// revoking is a key that is being revoked.
type revoking struct {
	ctx  context.Context
	d    Dialect
	name string
	at   int64
	e    *server.Ended

	gone string // the ids of it and of all keys that came from it, as a list of SQL
	made string // the ids of users whom these made
}

func (r *revoking) all() (err error) {
	for _, step := range []func() error{r.find, r.reset, r.keys, r.users, r.shares, r.expiring, r.forgetGrants} {
		if err == nil {
			err = step()
		}
	}
	return err
}

// find finds what came from the key: what it was rotated to and from, keys that were made with one of these, keys of
// users who were, and so on. Each round is a statement of its own: PostgreSQL compiles a recursive one, for seconds.
func (r *revoking) find() error {
	ids, err := r.ids(`SELECT k.id FROM keys k JOIN keys named ON named.name = ?
WHERE coalesce(nullif(k.chain, 0), k.id) = coalesce(nullif(named.chain, 0), named.id)`, r.name)
	if err == nil && len(ids) == 0 {
		return server.ErrNotFound
	}
	for n := 0; err == nil && n < len(ids); {
		n, r.gone = len(ids), inList(ids)
		var users []int64
		users, err = r.ids(`SELECT DISTINCT "user" FROM grants WHERE role = '' AND key IN ` + r.gone)
		if r.made = inList(users); err == nil {
			ids, err = r.ids(`SELECT id FROM keys WHERE id IN ` + r.gone + ` OR made_by IN ` + r.gone + ` OR "user" IN ` +
				r.made)
		}
	}
	return err
}

func (r *revoking) ids(query string, args ...any) ([]int64, error) {
	return Numbers(r.ctx, r.d, query, args...)
}

// inList is a list of SQL; of nothing, one that has no id.
func inList(ids []int64) string {
	list := []byte("(-1") // 0 is none
	for _, id := range ids {
		list = strconv.AppendInt(append(list, ','), id, 10)
	}
	return string(append(list, ')'))
}

// reset gives users whom a key gave rights those that they had before.
func (r *revoking) reset() error {
	type given struct{ is, was server.User }
	list, err := List(r.ctx, r.d, SelectUser+`, m.role, m.disabled FROM users u JOIN grants m ON m."user" = u.id
WHERE m.role <> '' AND m.key IN `+r.gone+` ORDER BY u.id, m.given`, nil,
		func(row Scanner) (g given, err error) {
			var user UserRow
			var disabled int64
			err = row.Scan(append(user.Columns(), &g.was.Role, &disabled)...)
			g.is, g.was.Disabled = user.User(), Moment(disabled)
			return g, err
		})
	for i, g := range list {
		if i > 0 && list[i-1].is.ID == g.is.ID || err != nil {
			continue // the first is what the user was before all of them
		}
		now := g.is
		if now.Role.Above(g.was.Role) {
			now.Role = g.was.Role
		}
		if now.Disabled.IsZero() {
			now.Disabled = g.was.Disabled
		}
		if now != g.is {
			r.e.Reset = append(r.e.Reset, now)
			err = editOne(r.ctx, r.d, `UPDATE users SET role = ?, disabled = ? WHERE id = ?`, string(now.Role),
				Micros(now.Disabled), now.ID)
		}
	}
	return err
}

func (r *revoking) keys() (err error) {
	r.e.Keys, err = r.names(`UPDATE keys SET revoked = ? WHERE (revoked = 0 OR revoked > ?) AND id IN `+r.gone+
		` RETURNING name`, r.at, r.at)
	r.e.Keys = slices.DeleteFunc(r.e.Keys, func(name string) bool { return name == r.name })
	return err
}

func (r *revoking) users() (err error) {
	r.e.Users, err = r.names(`UPDATE users SET disabled = ? WHERE disabled = 0 AND id IN `+r.made+
		` RETURNING name`, r.at)
	return err
}

// names runs a statement that returns names, and sorts them.
func (r *revoking) names(query string, args ...any) ([]string, error) {
	list, err := List(r.ctx, r.d, query, args, func(row Scanner) (s string, err error) {
		err = row.Scan(&s)
		return s, err
	})
	slices.Sort(list)
	return list, err
}

func (r *revoking) shares() (err error) {
	r.e.Shares, err = List(r.ctx, r.d, `SELECT o.name, w.name, h.project FROM shares h
JOIN users o ON o.id = h.owner JOIN users w ON w.id = h.with_user WHERE h.made_by IN `+r.gone+`
ORDER BY o.name, w.name, h.project`, nil, func(row Scanner) (s server.EndedShare, err error) {
		err = row.Scan(&s.Owner, &s.With, &s.Project)
		return s, err
	})
	if err == nil {
		_, err = r.d.Exec(r.ctx, `DELETE FROM shares WHERE made_by IN `+r.gone)
	}
	return err
}

// expiring ends logins and links.
func (r *revoking) expiring() (err error) {
	end := func(table, user string) (n int64) {
		if err == nil {
			n, err = r.d.Exec(r.ctx, `DELETE FROM `+table+` WHERE until > ? AND ("key" IN `+r.gone+` OR `+user+` IN `+
				r.made+`)`, r.at)
		}
		return n
	}
	r.e.Logins, r.e.Tickets, r.e.Links = end("logins", `"user"`), end("tickets", `"user"`), end("share_links", "maker")
	return err
}

// forgetGrants removes what was acted on: a key that is revoked again resets nobody again.
func (r *revoking) forgetGrants() error {
	_, err := r.d.Exec(r.ctx, `DELETE FROM grants WHERE key IN `+r.gone)
	return err
}

// AddShareLink implements server.ShareLinks. It also removes links that have been over for long.
func (k *Keeper) AddShareLink(ctx context.Context, x server.ShareLink) (id int64, err error) {
	err = k.db.Write(ctx, func(l Dialect) error {
		err := checkLinks(ctx, l, x)
		if err == nil {
			err = LockRetention(ctx, l)
		}
		if err == nil {
			_, err = l.Exec(ctx, `DELETE FROM share_links WHERE until < ?`, Micros(x.Created.Add(-longOver)))
		}
		if err != nil {
			return err
		}
		id, err = Number(ctx, l, `
INSERT INTO share_links (owner, hash, stream, maker, "key", created, until)
SELECT s.owner, ?, s.id, u.id, ?, ?, ? FROM streams s, users u WHERE s.id = ? AND u.id = ?
RETURNING id`, x.Hash[:], x.Key, Micros(x.Created), Micros(x.Until), x.Stream, x.By.ID)
		if err == nil && id == 0 {
			err = server.ErrNotFound
		}
		return err
	})
	return id, Wrap(err, "keep share link")
}

// checkLinks returns server.ErrHasMany for a link more than its maker may have. Others that add links of the user wait
// until the transaction of l ends.
func checkLinks(ctx context.Context, l Dialect, x server.ShareLink) error {
	if x.Most == 0 {
		return nil
	}
	if err := l.Hold(ctx, HeldUser, x.By.ID); err != nil {
		return err
	}
	at := Micros(x.Created)
	n, err := Number(ctx, l, `SELECT count(*) FROM (`+shareLinks+` AND l.maker = ?) working`, at, at, x.By.ID)
	if err == nil && n >= x.Most {
		err = fmt.Errorf("%d links to sessions: %w", n, server.ErrHasMany)
	}
	return err
}

// shareLinks are the links l that work, of users u, to streams s with facts f. Its values are a time, twice.
const shareLinks = SelectUser + `, l.id, l.hash, l.stream, s.session_id,
  CASE WHEN coalesce(f.title, '') <> '' THEN f.title ELSE coalesce(f.first_prompt, '') END, l."key", l.created, l.until
FROM share_links l JOIN users u ON u.id = l.maker JOIN streams s ON s.owner = l.owner AND s.id = l.stream
LEFT JOIN facts f ON f.owner = s.owner AND f.stream = s.id
WHERE l.until > ? AND u.disabled = 0 AND (u.role = 'owner' OR u.role = 'member' AND s.owner = u.id)
  AND (l."key" = 0 OR EXISTS (SELECT 1 FROM keys k WHERE k.id = l."key" AND (k.revoked = 0 OR k.revoked > ?)))`

func scanShareLink(row Scanner) (x server.ShareLink, err error) {
	var user UserRow
	var hash []byte
	var created, until int64
	err = row.Scan(append(user.Columns(), &x.ID, &hash, &x.Stream, &x.Session, &x.Title, &x.Key, &created, &until)...)
	copy(x.Hash[:], hash)
	x.By, x.Created, x.Until = user.User(), Moment(created), Moment(until)
	return x, err
}

// FindShareLink implements server.ShareLinks.
func (k *Keeper) FindShareLink(ctx context.Context, hash [32]byte, now time.Time) (server.ShareLink, error) {
	at := Micros(now)
	x, err := first(ctx, k.db, shareLinks+` AND l.hash = ?`, []any{at, at, hash[:]}, scanShareLink)
	return x, Wrap(err, "find share link")
}

// ShareLinks implements server.ShareLinks.
func (k *Keeper) ShareLinks(ctx context.Context, q server.ShareLinkQuery, now time.Time) ([]server.ShareLink, error) {
	where, args := chosen(q)
	at := Micros(now)
	list, err := List(ctx, k.db, shareLinks+where+` ORDER BY l.id DESC`, append([]any{at, at}, args...),
		scanShareLink)
	return list, Wrap(err, "list share links")
}

// chosen are conditions of links l to streams s.
func chosen(q server.ShareLinkQuery) (where string, args []any) {
	if q.User != 0 {
		where, args = where+` AND (l.maker = ? OR s.owner = ?)`, append(args, q.User, q.User)
	}
	if q.Stream != 0 {
		where, args = where+` AND l.stream = ?`, append(args, q.Stream)
	}
	return where, args
}

// RemoveShareLink implements server.ShareLinks.
func (k *Keeper) RemoveShareLink(ctx context.Context, q server.ShareLinkQuery, id int64) error {
	where, args := chosen(q)
	err := k.db.Edit(ctx, `
DELETE FROM share_links WHERE id = ? AND (owner, id) IN
  (SELECT l.owner, l.id FROM share_links l JOIN streams s ON s.owner = l.owner AND s.id = l.stream
  WHERE 1 = 1`+where+`)`, append([]any{id}, args...)...)
	return Wrap(err, "end share link")
}
