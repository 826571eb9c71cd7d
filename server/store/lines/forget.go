package lines

import (
	"context"
	"fmt"

	"github.com/ccship/ccship/server/store/sqlstore"
)

// Forget deletes a stream with everything that belongs to it, and returns how many lines it had. The caller has the
// hold of its owner's answers. Sums of answers need the stream's row.
func (x *Lines) Forget(ctx context.Context, d sqlstore.Dialect, of sqlstore.OwnedStream) (n int64, err error) {
	if err := sqlstore.DropFromIndex(ctx, d, of.Owner, of.Stream); err != nil {
		return 0, fmt.Errorf("remove texts: %w", err)
	}
	if err := sqlstore.RemoveAnswers(ctx, d, of); err != nil {
		return 0, fmt.Errorf("remove answers: %w", err)
	}
	if _, err := d.Exec(ctx, `DELETE FROM streams WHERE owner = ? AND id = ?`, of.Owner, of.Stream); err != nil {
		return 0, fmt.Errorf("remove stream: %w", err)
	}
	if err := sqlstore.RemoveArtifacts(ctx, d, of); err != nil {
		return 0, fmt.Errorf("remove artifacts: %w", err)
	}
	if n, err = x.releaseLines(ctx, d, of.Owner, of.Stream); err != nil {
		return 0, err
	}
	for _, table := range []string{"lines", "blocks", "retired", "drops", "superseded", "facts", "folds", "moments",
		"edits", "commits", "marks", "share_links", "masked_lines", "maskings", "generations", "epochs"} {
		_, err := d.Exec(ctx, `DELETE FROM `+table+` WHERE owner = ? AND stream = ?`, of.Owner, of.Stream)
		if err != nil {
			return 0, fmt.Errorf("remove %s: %w", table, err)
		}
	}
	return n, nil
}

// releaseLines counts the lines of a stream, and has those in cold storage removed.
func (x *Lines) releaseLines(ctx context.Context, d sqlstore.Dialect, owner, stream int64) (n int64, err error) {
	n, err = sqlstore.Number(ctx, d, `SELECT (SELECT count(*) FROM lines l
  WHERE l.owner = ? AND l.stream = ? AND `+before+` < l.line) +
  (SELECT CAST(coalesce(sum(lines), 0) AS bigint) FROM blocks WHERE owner = ? AND stream = ?)`,
		owner, stream, owner, stream, owner, stream)
	if err != nil {
		return 0, fmt.Errorf("count lines: %w", err)
	}
	// What is being written stays noted until its writer finds the stream gone.
	_, err = d.Exec(ctx, `UPDATE cold_objects SET state = 2, at = ? WHERE owner = ? AND stream = ? AND state = 1`, now(),
		owner, stream)
	return n, sqlstore.Wrap(err, "remove what is cold")
}
