package sqlstore

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ccship/ccship/server"
)

// Keeper keeps marks, saved views, links to sessions, shares of commits and limits of users, the same in both
// databases. Set once, when a store opens.
type Keeper struct{ db Writer }

// NewKeeper returns the keeper of a store.
func NewKeeper(db DB) Keeper { return Keeper{Writer{DB: db}} }

// Marks implements server.Marks.
func (k *Keeper) Marks(ctx context.Context, reader int64, streams []int64) (map[int64]server.Mark, error) {
	out := map[int64]server.Mark{}
	if len(streams) == 0 {
		return out, nil
	}
	err := k.db.Query(ctx, `SELECT stream, star, name, note, tags, updated FROM marks
WHERE reader = ? AND stream IN (`+Marks(len(streams))+`)`, append([]any{reader}, Values(streams)...),
		func(row Scanner) error {
			var m server.Mark
			var star, updated int64
			var tags string
			err := row.Scan(&m.Stream, &star, &m.Name, &m.Note, &tags, &updated)
			m.Star, m.Tags, m.Updated = star != 0, split(tags), Moment(updated)
			out[m.Stream] = m
			return err
		})
	return out, Wrap(err, "read marks")
}

// SetMark implements server.Marks.
func (k *Keeper) SetMark(ctx context.Context, reader int64, m server.Mark) error {
	err := k.db.Write(ctx, func(l Dialect) error {
		if m.Empty() {
			_, err := l.Exec(ctx, `DELETE FROM marks WHERE reader = ? AND stream = ?`, reader, m.Stream)
			return err
		}
		if err := LockRetention(ctx, l); err != nil {
			return err
		}
		n, err := l.Exec(ctx, `
INSERT INTO marks (owner, reader, stream, star, name, note, tags, updated)
SELECT s.owner, ?, s.id, ?, ?, ?, ?, ? FROM streams s WHERE s.id = ?
ON CONFLICT (owner, reader, stream) DO UPDATE SET star = excluded.star, name = excluded.name,
  note = excluded.note, tags = excluded.tags, updated = excluded.updated`,
			reader, Flag(m.Star), CleanText(m.Name), CleanText(m.Note),
			CleanText(join(m.Tags)), Micros(m.Updated), m.Stream)
		if err == nil && n == 0 {
			err = server.ErrNotFound
		}
		return err
	})
	return Wrap(err, "keep mark")
}

// Tags implements server.Marks.
func (k *Keeper) Tags(ctx context.Context, reader int64) ([]string, error) {
	var out []string
	err := k.db.Query(ctx, `SELECT tags FROM marks WHERE reader = ? AND tags <> ''
GROUP BY tags ORDER BY max(updated) DESC, tags LIMIT ?`, []any{reader, 25 * server.MaxListedTags},
		func(row Scanner) error {
			var tags string
			err := row.Scan(&tags)
			for _, t := range split(tags) {
				if len(out) < server.MaxListedTags && !slices.Contains(out, t) {
					out = append(out, t)
				}
			}
			return err
		})
	if err != nil {
		return nil, fmt.Errorf("list tags: %w", err)
	}
	slices.Sort(out)
	return out, nil
}

// join and split keep a list of names in one text, in which each can be looked for.
func join(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return "\n" + strings.Join(names, "\n") + "\n"
}

func split(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.Trim(text, "\n"), "\n")
}
