package sqlstore

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

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

// MoreColumns are what is derived of a session.
const MoreColumns = `,
  coalesce(f.title, ''), coalesce(f.first_prompt, ''), coalesce(f.model, ''), coalesce(f.models, ''),
  coalesce(f.branch, ''), coalesce(f.version, ''), coalesce(f.started, 0), coalesce(f.ended, 0),
  coalesce(f.prompts, 0), coalesce(f.messages, 0), coalesce(f.tools, 0), coalesce(f.errors, 0),
  coalesce(f.compactions, 0), coalesce(f.context, 0), coalesce(f.window, 0), coalesce(f.compact_at, 0),
  coalesce(f.lines, 0), coalesce(f.origin, ''), coalesce(f.copy, 0)`

// LongContext says of an answer a whether its request was above server.LongContext.
var LongContext = fmt.Sprintf(`a.input + a.cache_read + a.cache_write_5m + a.cache_write_1h > %d`, server.LongContext)

// ScanSession scans SessionColumns, and answers the epoch.
func ScanSession(row Scanner) (x server.FoundSession, epoch int64, err error) {
	var first, last, active int64
	err = scanWithFacts(row, []any{&x.ID, &x.Owner, &x.SessionID, &x.ProjectHash, &x.Repository, &x.Machine, &x.Host,
		&x.Project, &x.Cwd, &x.Path, &x.Parent, &epoch, &x.Epoch, &x.Epochs, &x.Generation, &x.Lines, &x.Bytes, &first,
		&last, &active}, &x.Summary)
	x.First, x.Last, x.Active = time.UnixMicro(first).UTC(), time.UnixMicro(last).UTC(), time.UnixMicro(active).UTC()
	return x, epoch, err
}

// scanWithFacts scans a row that ends with MoreColumns.
func scanWithFacts(row Scanner, to []any, f *server.Summary) error {
	var started, ended, named int64
	var models string
	err := row.Scan(append(to, &f.Title, &f.FirstPrompt, &f.Model, &models, &f.Branch, &f.Version, &started, &ended,
		&f.Prompts, &f.Messages, &f.Tools, &f.Errors, &f.Compactions, &f.Context, &f.Window, &f.Limit, &f.Lines, &f.Origin,
		&named)...)
	f.Copy = named != 0
	f.Started, f.Ended, f.Models = Moment(started), Moment(ended), split(models)
	return err
}

// projects returns the names of projects that hold a folded text beyond ASCII, whose small and capital letters SQL's
// lower() does not know.
func (c *Finder) projects(ctx context.Context, folded string) (out []string, err error) {
	if IsASCII(folded) {
		return nil, nil
	}
	err = c.reader.Query(ctx, `SELECT DISTINCT project FROM streams`, nil, func(row Scanner) error {
		var name string
		err := row.Scan(&name)
		if strings.Contains(FoldText(name), folded) {
			out = append(out, name)
		}
		return err
	})
	return out, err
}

// Page lets through what follows the page before, and answers the order.
func (f *Filter) Page(p server.Page) (order string, err error) {
	if p.Longest {
		return ` ORDER BY coalesce(f.ended - f.started, 0) DESC, s.id DESC`, nil
	}
	last, id, err := parseAfter(p)
	if err != nil {
		return "", err
	}
	if p.Recent {
		f.Add(`(s.active, s.id) < (?, ?)`, last, id)
		return ` ORDER BY s.active DESC, s.id DESC`, nil
	}
	f.Add(`s.id > ?`, id)
	return ` ORDER BY s.id`, nil
}

// TokenColumns returns where to scan a count of answers and its sums of tokens to.
func TokenColumns(t *server.Tokens) []any {
	return []any{&t.Answers, &t.Input, &t.Output, &t.CacheRead, &t.CacheWrite5m, &t.CacheWrite1h, &t.Searches}
}
