package store

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ccship/ccship/server"
)

// selectSession joins a stream with its epoch in front (or the named one: ?1, ” for none) and that epoch's newest
// generation.
const selectSession = `
SELECT s.id, s.session_id, s.project_hash, s.machine, s.host, s.project, s.cwd, s.path, s.parent,
  e.id, e.name, (SELECT count(*) FROM epochs WHERE stream = s.id),
  g.generation, max(g.end_line, g.rewound_to), CASE WHEN g.end_offset > 0 THEN g.end_offset ELSE g.bytes END,
  s.first_received, s.last_received
FROM streams s
JOIN epochs e ON e.stream = s.id
  AND e.rank = (SELECT max(rank) FROM epochs WHERE stream = s.id AND (?1 = '' OR name = ?1))
JOIN generations g ON g.epoch = e.id AND g.generation = (SELECT max(generation) FROM generations WHERE epoch = e.id)
`

type scanner interface{ Scan(...any) error }

func scanSession(row scanner) (x server.Session, epoch int64, err error) {
	var first, last int64
	err = row.Scan(&x.ID, &x.SessionID, &x.ProjectHash, &x.Machine, &x.Host, &x.Project, &x.Cwd, &x.Path, &x.Parent,
		&epoch, &x.Epoch, &x.Epochs, &x.Generation, &x.Lines, &x.Bytes, &first, &last)
	x.First, x.Last = time.UnixMicro(first).UTC(), time.UnixMicro(last).UTC()
	return x, epoch, err
}

// Sessions implements server.Catalog. A page's After is "<id>", or "<last received>-<id>" of a recent listing.
func (s *SQLite) Sessions(ctx context.Context, p server.Page) (server.Sessions, error) {
	where, args, err := pageWhere(p)
	if err != nil {
		return server.Sessions{}, err
	}
	rows, err := s.read.QueryContext(ctx, selectSession+where, append([]any{""}, append(args, p.Limit+1)...)...)
	if err != nil {
		return server.Sessions{}, fmt.Errorf("list sessions: %w", err)
	}
	defer rows.Close()
	var out server.Sessions
	for rows.Next() {
		x, _, err := scanSession(rows)
		if err != nil {
			return server.Sessions{}, fmt.Errorf("list sessions: %w", err)
		}
		if len(out.List) == p.Limit {
			out.Next = pageAfter(p, &out.List[len(out.List)-1])
			break
		}
		out.List = append(out.List, x)
	}
	if err := rows.Err(); err != nil {
		return server.Sessions{}, fmt.Errorf("list sessions: %w", err)
	}
	return out, nil
}

func pageWhere(p server.Page) (where string, args []any, err error) {
	last, id := int64(1)<<62, int64(0)
	if p.After != "" {
		a, b, ok := strings.Cut(p.After, "-")
		if !ok {
			a, b = "0", p.After
		}
		var errA, errB error
		last, errA = strconv.ParseInt(a, 10, 64)
		id, errB = strconv.ParseInt(b, 10, 64)
		if ok != p.Recent || errA != nil || errB != nil {
			return "", nil, server.ErrBadPage
		}
	}
	if p.Recent {
		return `WHERE (s.last_received, s.id) < (?2, ?3) ORDER BY s.last_received DESC, s.id DESC LIMIT ?4`,
			[]any{last, id}, nil
	}
	return `WHERE s.id > ?2 ORDER BY s.id LIMIT ?3`, []any{id}, nil
}

func pageAfter(p server.Page, last *server.Session) string {
	if p.Recent {
		return fmt.Sprintf("%d-%d", last.Last.UnixMicro(), last.ID)
	}
	return strconv.FormatInt(last.ID, 10)
}
