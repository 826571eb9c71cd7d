package sqlstore

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/ccship/ccship/server"
)

// once runs statements in a transaction of their own. A failure names what was to be done.
func (p *People) once(ctx context.Context, what string, fn func(Dialect) error) error {
	if err := p.db.Write(ctx, fn); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// edit runs one statement that must change a row: server.ErrNotFound when it changes none, server.ErrExists when
// another row has the name.
func (p *People) edit(ctx context.Context, what, query string, args ...any) error {
	return Wrap(p.db.Edit(ctx, query, args...), "%s", what)
}

func editOne(ctx context.Context, d Dialect, query string, args ...any) error {
	n, err := d.Exec(ctx, query, args...)
	if err == nil && n == 0 {
		err = server.ErrNotFound
	}
	return err
}

// AddUser implements server.Accounts.
func (p *People) AddUser(ctx context.Context, name string, role server.Role, by server.By) (server.User, error) {
	u := server.User{Name: CleanText(name), Role: role, Created: Moment(Micros(by.At))}
	err := p.with(ctx, fmt.Sprintf("add user %q", name), func(d Dialect) (err error) {
		if err = allowed(ctx, d, by, server.Owner, 0); err != nil {
			return err
		}
		u.ID, err = Number(ctx, d, `INSERT INTO users (name, role, created) VALUES (?, ?, ?) RETURNING id`,
			u.Name, string(role), Micros(by.At))
		if err == nil {
			err = grant(ctx, d, by, server.User{ID: u.ID})
		}
		return err
	})
	if err != nil {
		return server.User{}, err
	}
	return u, nil
}

// SetRole implements server.Accounts.
func (p *People) SetRole(ctx context.Context, user int64, role server.Role, by server.By) error {
	return p.with(ctx, "change role", func(d Dialect) error {
		if err := allowed(ctx, d, by, server.Owner, 0); err != nil {
			return err
		}
		was, err := lockedUser(ctx, d, user)
		if err == nil && role.Above(was.Role) {
			err = grant(ctx, d, by, was)
		}
		if err == nil {
			err = editOne(ctx, d, `UPDATE users SET role = ? WHERE id = ?`, string(role), user)
		}
		return err
	})
}

// DisableUser implements server.Accounts.
func (p *People) DisableUser(ctx context.Context, user int64, disabled bool, by server.By) error {
	return p.with(ctx, "disable user", func(d Dialect) error {
		if err := allowed(ctx, d, by, server.Owner, 0); err != nil {
			return err
		}
		was, err := lockedUser(ctx, d, user)
		var at int64
		if disabled {
			at = Micros(by.At)
		} else if err == nil && !was.Disabled.IsZero() {
			err = grant(ctx, d, by, was)
		}
		if err == nil {
			err = editOne(ctx, d, `UPDATE users SET disabled = ? WHERE id = ?`, at, user)
		}
		return err
	})
}

// AddShare implements server.Accounts.
func (p *People) AddShare(ctx context.Context, h server.Share) error {
	return p.with(ctx, "share project", func(d Dialect) error {
		err := allowed(ctx, d, server.By{Key: h.By, At: h.Created}, server.Member, h.Owner)
		if err == nil {
			err = checkShares(ctx, d, h)
		}
		if err != nil {
			return err
		}
		return editOne(ctx, d, `
INSERT INTO shares (with_user, owner, project_key, project_hash, project, created, documents, made_by)
SELECT r.id, o.id, ?, ?, ?, ?, ?, ? FROM users r, users o WHERE r.id = ? AND o.id = ?
ON CONFLICT (with_user, owner, project_key) DO UPDATE SET documents = excluded.documents, made_by = excluded.made_by`,
			Key(h.ProjectHash), CleanText(h.ProjectHash), CleanText(h.Project), Micros(h.Created), Flag(h.Documents), h.By,
			h.With, h.Owner)
	})
}

// checkShares returns server.ErrHasMany for a share more than its owner may have.
func checkShares(ctx context.Context, d Dialect, h server.Share) error {
	if h.Most == 0 {
		return nil
	}
	if err := d.Hold(ctx, HeldUser, h.Owner); err != nil {
		return err
	}
	n, err := Number(ctx, d, `SELECT count(*) FROM shares WHERE owner = ? AND NOT (with_user = ? AND project_key = ?)`,
		h.Owner, h.With, Key(h.ProjectHash))
	if err == nil && n >= h.Most {
		err = fmt.Errorf("%d shares: %w", n, server.ErrHasMany)
	}
	return err
}

// RemoveShare implements server.Accounts.
func (p *People) RemoveShare(ctx context.Context, h server.Share) error {
	return p.edit(ctx, "end sharing", `DELETE FROM shares WHERE with_user = ? AND owner = ? AND project_key = ?`,
		h.With, h.Owner, Key(h.ProjectHash))
}

// TouchKey implements server.Keyring.
func (p *People) TouchKey(ctx context.Context, id int64, at time.Time) error {
	return p.edit(ctx, "note use of key", `UPDATE keys SET used = CASE WHEN used > ? THEN used ELSE ? END WHERE id = ?`,
		Micros(at), Micros(at), id)
}

// AddKey implements server.Accounts.
func (p *People) AddKey(ctx context.Context, k server.Key) error {
	return p.with(ctx, fmt.Sprintf("add key %q", k.Name), func(d Dialect) error {
		err := allowed(ctx, d, server.By{Key: k.By, At: k.Created}, server.Viewer, k.User.ID)
		if err == nil {
			err = checkKeys(ctx, d, k.User.ID, k)
		}
		if err != nil {
			return err
		}
		return editOne(ctx, d, `
INSERT INTO keys ("user", name, hash, created, made_by) SELECT id, ?, ?, ?, ? FROM users WHERE id = ?`,
			CleanText(k.Name), k.Hash[:], Micros(k.Created), k.By, k.User.ID)
	})
}

// RotateKey implements server.Accounts. The old hash stays under the name with the time until which it is valid.
func (p *People) RotateKey(ctx context.Context, next server.Key, grace time.Time) error {
	name := CleanText(next.Name)
	return p.with(ctx, fmt.Sprintf("rotate key %q", name), func(d Dialect) error {
		k, err := first(ctx, Locked{d}, SelectKey+`WHERE k.name = ? AND (k.revoked = 0 OR k.revoked > ?)`,
			[]any{name, Micros(next.Created)}, ScanKey)
		if err == nil {
			err = allowed(ctx, d, server.By{Key: next.By, At: next.Created}, server.Viewer, k.User.ID)
		}
		if err == nil {
			err = checkKeys(ctx, d, k.User.ID, next)
		}
		if err != nil {
			return err
		}
		until := grace
		if !k.Revoked.IsZero() && k.Revoked.Before(grace) {
			until = k.Revoked
		}
		err = editOne(ctx, d, `UPDATE keys SET name = ?, revoked = ? WHERE id = ?`,
			fmt.Sprintf("%s (rotated, until %s, %d)", name, until.UTC().Format("2006-01-02 15:04"), k.ID),
			Micros(until), k.ID)
		if err != nil {
			return err
		}
		return editOne(ctx, d, `INSERT INTO keys ("user", name, hash, created, made_by, chain) VALUES (?, ?, ?, ?, ?, ?)`,
			k.User.ID, name, next.Hash[:], Micros(next.Created), next.By, cmp.Or(k.Chain, k.ID))
	})
}

// longOver is the age at which expired logins and tickets are removed, when a new one is made.
const longOver = 90 * 24 * time.Hour

// MaxTickets and MaxLogins are how many one-time links and logins of a user work: with one more, the one that would be
// over first ends.
const (
	MaxTickets = 50
	MaxLogins  = 500
)

// expiring is a table whose rows are over after a while. A user has most of them.
type expiring struct {
	table, key string
	most       int
}

// prune makes space for a row: it removes those that were over long ago, and those of the user that are over first.
func (e expiring) prune(ctx context.Context, d Dialect, user int64, until time.Time) error {
	_, err := d.Exec(ctx, `DELETE FROM `+e.table+` WHERE until < ?`, Micros(until.Add(-longOver)))
	if err == nil {
		_, err = d.Exec(ctx, `DELETE FROM `+e.table+` WHERE "user" = ? AND `+e.key+` NOT IN
  (SELECT `+e.key+` FROM `+e.table+` WHERE "user" = ? ORDER BY until DESC LIMIT ?)`, user, user, e.most-1)
	}
	return err
}

// AddLogin implements server.Accounts.
func (p *People) AddLogin(ctx context.Context, token [32]byte, l server.Login) error {
	return p.once(ctx, "add login", func(d Dialect) error {
		if err := (expiring{"logins", "token", MaxLogins}).prune(ctx, d, l.User.ID, l.Until); err != nil {
			return err
		}
		return editOne(ctx, d, `
INSERT INTO logins (token, "user", key, until) SELECT ?, id, ?, ? FROM users WHERE id = ?`,
			token[:], l.Key, Micros(l.Until), l.User.ID)
	})
}

// RemoveLogin implements server.Accounts.
func (p *People) RemoveLogin(ctx context.Context, token [32]byte) error {
	return p.edit(ctx, "end login", `DELETE FROM logins WHERE token = ?`, token[:])
}

// AddTicket implements server.Accounts.
func (p *People) AddTicket(ctx context.Context, ticket [32]byte, l server.Login) error {
	return p.once(ctx, "add one-time link", func(d Dialect) error {
		if err := (expiring{"tickets", "ticket", MaxTickets}).prune(ctx, d, l.User.ID, l.Until); err != nil {
			return err
		}
		return editOne(ctx, d, `
INSERT INTO tickets (ticket, "user", key, until) SELECT ?, id, ?, ? FROM users WHERE id = ?`,
			ticket[:], l.Key, Micros(l.Until), l.User.ID)
	})
}

// TakeTicket implements server.Accounts. Of several who take one at once, on whatever server, one gets it. When the
// answer to the commit is lost, nobody does. What is refused is used up all the same.
func (p *People) TakeTicket(ctx context.Context, ticket [32]byte, now time.Time) (l server.Login, err error) {
	err = p.once(ctx, "use one-time link", func(d Dialect) error {
		l = server.Login{}
		var user, until int64
		err := d.Query(ctx, `DELETE FROM tickets WHERE ticket = ? RETURNING "user", key, until`, []any{ticket[:]},
			func(row Scanner) error { return row.Scan(&user, &l.Key, &until) })
		if l.Until = Moment(until); err != nil || !now.Before(l.Until) {
			return err
		}
		return d.Query(ctx, SelectUser+`FROM users u WHERE u.id = ? AND u.disabled = 0`, []any{user},
			func(row Scanner) (err error) { l.User, err = scanUser(row); return err })
	})
	if err == nil && l.User.ID == 0 {
		err = fmt.Errorf("use one-time link: %w", server.ErrNotFound)
	}
	return l, err
}
