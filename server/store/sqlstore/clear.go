package sqlstore

import (
	"context"
	"crypto/rand"
	"time"
)

// clearAll removes what is indexed of a stream, and runs statements whose values are its owner and id.
func clearAll(ctx context.Context, d Dialect, x OwnedStream, queries ...string) error {
	if err := DropFromIndex(ctx, d, x.Owner, x.Stream); err != nil {
		return err
	}
	if err := RemoveEdits(ctx, d, x.Owner, x.Stream); err != nil {
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
func ClearMasked(ctx context.Context, d Dialect, x OwnedStream) error {
	return clearAll(ctx, d, x, dropFolds, dropMoments, `DELETE FROM facts WHERE owner = ? AND stream = ?`,
		`UPDATE streams SET redo = true, derived = 0, leased = 0, version = version + 1 WHERE owner = ? AND id = ?`)
}

// ClearQuotes removes everything that quotes a stream's lines, which are gone. Nothing is derived from it any more.
func ClearQuotes(ctx context.Context, d Dialect, x OwnedStream) error {
	return clearAll(ctx, d, x, dropFolds, dropMoments,
		`UPDATE facts SET title = '', first_prompt = '', folded = '' WHERE owner = ? AND stream = ?`,
		`UPDATE streams SET redo = false, derived = version, leased = 0 WHERE owner = ? AND id = ?`)
}

// ClearTexts removes what of a stream's texts can be found, and has it derived again from a time on.
func ClearTexts(ctx context.Context, d Dialect, x OwnedStream, again time.Time) error {
	if err := clearAll(ctx, d, x); err != nil {
		return err
	}
	_, err := d.Exec(ctx, `UPDATE streams SET redo = true, derived = -1, leased = ? WHERE owner = ? AND id = ?`,
		Micros(again), x.Owner, x.Stream)
	return err
}

// DropFromIndex makes all that is indexed of a stream so far disappear from the tables: it is masked, or gone. It runs
// in the transaction that does that. Searches see the lines as they are at once.
func DropFromIndex(ctx context.Context, d Dialect, owner, stream int64) error {
	_, err := d.Exec(ctx, `UPDATE streams SET round = round + 1 WHERE owner = ? AND id = ?`, owner, stream)
	if err != nil {
		return err
	}
	_, err = d.Exec(ctx, `
INSERT INTO gram_purges (owner, stream, round)
VALUES (?, ?, coalesce((SELECT round FROM streams WHERE owner = ? AND id = ?), 9223372036854775807))
ON CONFLICT (owner, stream) DO UPDATE SET round = excluded.round`, owner, stream, owner, stream)
	return err
}

// ScrubLater notes that pages and the index may still hold pieces of what was masked, or removed by a rule.
func ScrubLater(ctx context.Context, d Dialect) error {
	_, err := d.Exec(ctx, `INSERT INTO leases (name, holder, until) VALUES ('scrub', ?, 0)
ON CONFLICT (name) DO UPDATE SET holder = excluded.holder`, rand.Text())
	return err
}
