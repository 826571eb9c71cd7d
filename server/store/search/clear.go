package search

import (
	"context"
	"time"

	"github.com/ccship/ccship/server/store/sqlstore"
)

// clearAll removes what is indexed of a stream, and runs statements whose values are its owner and id.
func clearAll(ctx context.Context, d sqlstore.Dialect, x sqlstore.OwnedStream, queries ...string) error {
	if err := Removed(ctx, d, x.Owner, x.Stream); err != nil {
		return err
	}
	if err := sqlstore.RemoveEdits(ctx, d, x.Owner, x.Stream); err != nil {
		return err
	}
	for _, query := range queries {
		if _, err := d.Exec(ctx, query, x.Owner, x.Stream); err != nil {
			return err
		}
	}
	return nil
}

const (
	dropFolds   = `DELETE FROM folds WHERE owner = ? AND stream = ?`
	dropMoments = `DELETE FROM moments WHERE owner = ? AND stream = ?`
)

// ClearMasked removes all that is derived from a stream's lines: some are masked, and it is derived anew.
func ClearMasked(ctx context.Context, d sqlstore.Dialect, x sqlstore.OwnedStream) error {
	return clearAll(ctx, d, x, dropFolds, dropMoments, `DELETE FROM facts WHERE owner = ? AND stream = ?`,
		`UPDATE streams SET redo = true, derived = 0, leased = 0, version = version + 1 WHERE owner = ? AND id = ?`)
}

// ClearQuotes removes everything that quotes a stream's lines, which are gone. Nothing is derived from it any more.
func ClearQuotes(ctx context.Context, d sqlstore.Dialect, x sqlstore.OwnedStream) error {
	return clearAll(ctx, d, x, dropFolds, dropMoments,
		`UPDATE facts SET title = '', first_prompt = '', folded = '' WHERE owner = ? AND stream = ?`,
		`UPDATE streams SET redo = false, derived = version, leased = 0 WHERE owner = ? AND id = ?`)
}

// ClearTexts removes what of a stream's texts can be found, and has it derived again from a time on.
func ClearTexts(ctx context.Context, d sqlstore.Dialect, x sqlstore.OwnedStream, again time.Time) error {
	if err := clearAll(ctx, d, x); err != nil {
		return err
	}
	_, err := d.Exec(ctx, `UPDATE streams SET redo = true, derived = -1, leased = ? WHERE owner = ? AND id = ?`,
		sqlstore.Micros(again), x.Owner, x.Stream)
	return err
}
