package sqlstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/ccship/ccship/server"
)

// copiedFrom finds the session that a stream's history was copied from, of those that have answers of it. A fork takes
// all of the other session's history, and goes on at once: so of two sessions with answers in common, the fork is the
// one that went on first. The other one has gone on later, or not at all. Of two that have not, the later stream is the
// fork. Of several, it is the one with most in common, and then the one that went on last: the others are forks of it
// too. An answer that comes later than its copy was copied from it: see package derive. A copy of a session is no other
// session.
const copiedFrom = `
WITH others AS (
  SELECT o.owner, o.stream, count(*) AS shared FROM answers a
  JOIN answers o ON o.owner = a.owner AND o.key = a.key AND o.stream <> a.stream AND o.time <= a.time
  JOIN streams s ON s.owner = o.owner AND s.id = o.stream
  WHERE a.owner = ? AND a.stream = ? AND NOT a.sidechain AND NOT o.sidechain
    AND s.parent = '' AND s.session_id <> ?
    AND NOT EXISTS (SELECT 1 FROM facts f WHERE f.owner = o.owner AND f.stream = o.stream AND (f.copy = 1
      OR f.origin <> '' AND f.origin = (
        SELECT t.origin FROM facts t WHERE t.owner = a.owner AND t.stream = a.stream)))
  GROUP BY o.owner, o.stream
), ages AS (
  SELECT x.owner, x.stream, x.shared,
    (SELECT min(a.time) FROM answers a WHERE a.owner = ? AND a.stream = ? AND NOT a.sidechain AND NOT EXISTS (
      SELECT 1 FROM answers o WHERE o.owner = a.owner AND o.key = a.key AND o.stream = x.stream)) AS own,
    (SELECT min(o.time) FROM answers o WHERE o.owner = x.owner AND o.stream = x.stream
      AND NOT o.sidechain AND NOT EXISTS (
      SELECT 1 FROM answers a WHERE a.owner = o.owner AND a.key = o.key AND a.stream = ?)) AS theirs
  FROM others x
)
SELECT s.session_id FROM ages JOIN streams s ON s.owner = ages.owner AND s.id = ages.stream
WHERE own IS NOT NULL AND (theirs IS NULL OR theirs > own) OR own IS NULL AND theirs IS NULL AND ages.stream < ?
ORDER BY shared DESC, theirs IS NOT NULL, theirs DESC, ages.stream LIMIT 1`

// CopiedFrom returns the id of the session that another one's history was copied from, "" if it was not.
func CopiedFrom(ctx context.Context, l Dialect, x *server.Session) (string, error) {
	args := []any{x.Owner, x.ID, x.SessionID, x.Owner, x.ID, x.ID, x.ID}
	id, err := first(ctx, l, copiedFrom, args, func(row Scanner) (id string, err error) {
		err = row.Scan(&id)
		return id, err
	})
	if err != nil && !errors.Is(err, server.ErrNotFound) {
		return "", fmt.Errorf("look for the origin: %w", err)
	}
	return id, nil
}
