package sqlstore

import (
	"context"
	"fmt"

	"github.com/ccship/ccship/server"
)

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
