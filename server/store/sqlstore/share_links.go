package sqlstore

import (
	"context"
	"fmt"
	"time"

	"github.com/ccship/ccship/server"
)

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
