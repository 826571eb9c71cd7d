package sqlstore

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ccship/ccship/server"
)

// with runs statements that give rights in a transaction of their own, unless the key they are done with is revoked by
// then: a request may be read for long after its key was checked.
func (p *People) with(ctx context.Context, what string, by server.By, fn func(Dialect) error) error {
	return p.once(ctx, what, func(d Dialect) error {
		if by.Key == 0 {
			return fn(d)
		}
		if err := d.Hold(ctx, HeldRights, 0); err != nil {
			return err
		}
		n, err := one(ctx, d, `SELECT count(*) FROM keys WHERE id = ? AND (revoked = 0 OR revoked > ?)`, by.Key,
			Micros(by.At))
		if err == nil && n == 0 {
			err = fmt.Errorf("its key is revoked: %w", server.ErrNotFound)
		}
		if err != nil {
			return err
		}
		return fn(d)
	})
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

// gone are a key of a name, what it was rotated to and from, keys that were made with one of these, keys of users who
// were, and so on. Its value is the name.
const gone = `WITH RECURSIVE gone (id) AS (
  SELECT k.id FROM keys k JOIN keys named ON named.name = ?
  WHERE coalesce(nullif(k.chain, 0), k.id) = coalesce(nullif(named.chain, 0), named.id)
  UNION SELECT k.id FROM gone g JOIN keys k ON k.made_by = g.id
    OR k."user" IN (SELECT m."user" FROM grants m WHERE m.key = g.id AND m.role = '')) `

const (
	goneKeys = `(SELECT id FROM gone)`
	goneMade = `(SELECT "user" FROM grants WHERE role = '' AND key IN ` + goneKeys + `)` // users
)

// RevokeKey implements server.Accounts. It revokes all that came from the key, too.
func (p *People) RevokeKey(ctx context.Context, name string, at time.Time) (e server.Ended, err error) {
	err = p.once(ctx, fmt.Sprintf("revoke key %q", name), func(d Dialect) error {
		if err := d.Hold(ctx, HeldRights, 0); err != nil {
			return err
		}
		e = server.Ended{}
		return (&revoking{ctx, d, CleanText(name), Micros(at), &e}).all()
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
}

func (r *revoking) all() error {
	n, err := one(r.ctx, r.d, `SELECT count(*) FROM keys WHERE name = ?`, r.name)
	if err == nil && n == 0 {
		err = server.ErrNotFound
	}
	for _, step := range []func() error{r.reset, r.keys, r.users, r.shares, r.expiring, r.forgetGrants} {
		if err == nil {
			err = step()
		}
	}
	return err
}

// reset gives users whom a key gave rights those that they had before.
func (r *revoking) reset() error {
	type given struct{ is, was server.User }
	list, err := List(r.ctx, r.d, gone+SelectUser+`, m.role, m.disabled FROM users u JOIN grants m ON m."user" = u.id
WHERE m.role <> '' AND m.key IN `+goneKeys+` ORDER BY u.id, m.given`, []any{r.name},
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
	r.e.Keys, err = r.names(`UPDATE keys SET revoked = ? WHERE (revoked = 0 OR revoked > ?) AND id IN `+goneKeys+
		` RETURNING name`, r.at, r.at)
	r.e.Keys = slices.DeleteFunc(r.e.Keys, func(name string) bool { return name == r.name })
	return err
}

func (r *revoking) users() (err error) {
	r.e.Users, err = r.names(`UPDATE users SET disabled = ? WHERE disabled = 0 AND id IN `+goneMade+
		` RETURNING name`, r.at)
	return err
}

// names runs a statement that returns names, and sorts them.
func (r *revoking) names(query string, args ...any) ([]string, error) {
	list, err := List(r.ctx, r.d, gone+query, append([]any{r.name}, args...), func(row Scanner) (s string, err error) {
		err = row.Scan(&s)
		return s, err
	})
	slices.Sort(list)
	return list, err
}

func (r *revoking) shares() (err error) {
	r.e.Shares, err = List(r.ctx, r.d, gone+`SELECT o.name, w.name, h.project FROM shares h
JOIN users o ON o.id = h.owner JOIN users w ON w.id = h.with_user WHERE h.made_by IN `+goneKeys+`
ORDER BY o.name, w.name, h.project`, []any{r.name}, func(row Scanner) (s server.EndedShare, err error) {
		err = row.Scan(&s.Owner, &s.With, &s.Project)
		return s, err
	})
	if err == nil {
		_, err = r.d.Exec(r.ctx, gone+`DELETE FROM shares WHERE made_by IN `+goneKeys, r.name)
	}
	return err
}

// expiring ends logins and links.
func (r *revoking) expiring() (err error) {
	end := func(table, user string) (n int64) {
		if err == nil {
			n, err = r.d.Exec(r.ctx, gone+`DELETE FROM `+table+` WHERE until > ? AND ("key" IN `+goneKeys+` OR `+user+` IN `+
				goneMade+`)`, r.name, r.at)
		}
		return n
	}
	r.e.Logins, r.e.Tickets, r.e.Links = end("logins", `"user"`), end("tickets", `"user"`), end("share_links", "maker")
	return err
}

// forgetGrants is last: all others find users by grants.
func (r *revoking) forgetGrants() error {
	_, err := r.d.Exec(r.ctx, gone+`DELETE FROM grants WHERE key IN `+goneKeys, r.name)
	return err
}
