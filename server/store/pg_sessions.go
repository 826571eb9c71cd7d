package store

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/ccship/ccship/server"
)

// numbered turns a query's question marks, which are nothing but places of values, into PostgreSQL's $1, $2 …, and
// makes the values fit for it.
func numbered(sql string, args []any) (string, []any) {
	var out strings.Builder
	for n := 1; ; n++ {
		before, after, more := strings.Cut(sql, "?")
		out.WriteString(before)
		if !more {
			break
		}
		out.WriteString("$" + strconv.Itoa(n))
		sql = after
	}
	fit := make([]any, len(args))
	for i, arg := range args {
		switch x := arg.(type) {
		case string:
			arg = cleanText(x)
		case []string:
			list := make([]string, len(x))
			for k := range x {
				list[k] = cleanText(x[k])
			}
			arg = list
		}
		fit[i] = arg
	}
	return out.String(), fit
}

// pgSelectSession joins a stream with its epoch in front (or the one named by the first two values, its name and its
// key, both of "" for none) and that epoch's newest generation. Its columns are those of selectSession.
const pgSelectSession = `
SELECT s.id, s.owner, s.session_id, s.project_hash, s.machine, s.host, s.project, s.cwd, s.path, s.parent,
  e.rank, e.name, (SELECT count(*) FROM epochs WHERE stream = s.id),
  g.generation, greatest(g.end_line, g.rewound_to), CASE WHEN g.end_offset > 0 THEN g.end_offset ELSE g.bytes END,
  s.first_received, s.last_received, s.active` + moreColumns + `
FROM streams s
CROSS JOIN LATERAL (SELECT rank, name FROM epochs
  WHERE stream = s.id AND (?::text = '' OR name_key = ?) ORDER BY rank DESC LIMIT 1) e
CROSS JOIN LATERAL (SELECT * FROM generations
  WHERE stream = s.id AND epoch = e.rank ORDER BY generation DESC LIMIT 1) g
LEFT JOIN facts f ON f.stream = s.id
`

// Sessions implements server.Catalog.
func (s *Postgres) Sessions(ctx context.Context, p server.Page) (server.Sessions, error) {
	found, err := s.Find(ctx, server.Scope{All: true}, server.SessionQuery{Page: p, Agents: true})
	out := server.Sessions{Next: found.Next}
	for _, x := range found.List {
		out.List = append(out.List, x.Session)
	}
	return out, err
}

// Find implements server.Library.
func (s *Postgres) Find(ctx context.Context, scope server.Scope, q server.SessionQuery) (server.Found, error) {
	projects, err := projectsHolding(q.Text, func() ([]string, error) {
		return collectPg(ctx, s, selectProjects, nil, scanName)
	})
	if err != nil {
		return server.Found{}, fmt.Errorf("find sessions: %w", err)
	}
	var f filter
	f.scope(scope)
	f.pgSessions(q, projects)
	order, err := f.page(q.Page)
	if err != nil {
		return server.Found{}, err
	}
	var out server.Found
	out.List, err = s.sessionsWhere(ctx, f.where()+order+` LIMIT ?`, append(f.args, q.Limit+1)...)
	if err != nil {
		return server.Found{}, fmt.Errorf("find sessions: %w", err)
	}
	if len(out.List) > q.Limit {
		out.List = out.List[:q.Limit]
		if q.Limit > 0 {
			out.Next = pageAfter(q.Page, &out.List[q.Limit-1].Session)
		}
	}
	if err := s.addUsage(ctx, out.List); err != nil {
		return server.Found{}, fmt.Errorf("find sessions: %w", err)
	}
	return out, nil
}

// sessionsWhere runs pgSelectSession, for the epochs in front, with what follows its joins.
func (s *Postgres) sessionsWhere(ctx context.Context, rest string, args ...any) ([]server.FoundSession, error) {
	sql, args := numbered(pgSelectSession+rest, append([]any{"", key("")}, args...))
	rows, err := s.pool.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (server.FoundSession, error) {
		x, _, err := scanSession(row)
		return x, err
	})
}

// sessionsByID answers those of the streams that are still there.
func (s *Postgres) sessionsByID(ctx context.Context, ids []int64) (map[int64]server.FoundSession, error) {
	list, err := s.sessionsWhere(ctx, `WHERE s.id = ANY (?)`, ids)
	if err != nil {
		return nil, fmt.Errorf("read sessions: %w", err)
	}
	out := make(map[int64]server.FoundSession, len(list))
	for _, x := range list {
		out[x.ID] = x
	}
	return out, nil
}

// pgSessions lets through the streams s with facts f that a query chooses. projects are those whose names hold q.Text.
func (f *filter) pgSessions(q server.SessionQuery, projects []string) {
	f.streams(q.Project, q.Machine, q.User)
	switch {
	case q.Parent != "":
		f.add(`hashtextextended(s.parent, 0) = hashtextextended(?, 0) AND s.parent = ?`, q.Parent, q.Parent)
	case !q.Agents:
		f.add(`s.parent = ''`)
	}
	if q.Model != "" {
		f.add(`strpos(f.models, chr(10) || ?::text || chr(10)) > 0`, q.Model)
	}
	if q.Branch != "" {
		f.add(`f.branch = ?`, q.Branch)
	}
	if !q.Since.IsZero() {
		f.add(`s.active >= ?`, q.Since.UnixMicro())
	}
	if !q.Until.IsZero() {
		f.add(`CASE WHEN f.started > 0 THEN f.started ELSE s.first_received END < ?`, q.Until.UnixMicro())
	}
	if t := foldText(q.Text); t != "" {
		f.add(`(strpos(f.folded, ?) > 0 OR strpos(lower(s.project), ?) > 0 OR strpos(lower(s.session_id), ?) > 0
      OR s.project = ANY (?))`, t, t, t, projects)
	}
}

// addUsage adds what each session's answers used, and counts its agents.
func (s *Postgres) addUsage(ctx context.Context, list []server.FoundSession) error {
	if len(list) == 0 {
		return nil
	}
	at, ids := map[int64]*server.FoundSession{}, make([]int64, 0, len(list))
	for i := range list {
		at[list[i].ID], ids = &list[i], append(ids, list[i].ID)
	}
	rows, err := s.pool.Query(ctx, `
SELECT stream, model, `+pgTokenSums+` FROM answers WHERE stream = ANY ($1) AND counted
GROUP BY stream, model ORDER BY stream, model COLLATE "C"`, ids)
	if err != nil {
		return err
	}
	var id int64
	row := server.UsageRow{Hour: -1}
	_, err = pgx.ForEachRow(rows, append([]any{&id, &row.Model}, tokenColumns(&row.Tokens)...), func() error {
		at[id].Usage = append(at[id].Usage, row)
		return nil
	})
	if err != nil {
		return err
	}
	return s.countAgents(ctx, at, ids)
}

// pgTokenSums are tokenColumns of answers; a sum of bigint would be numeric.
const pgTokenSums = `count(*), sum(input)::bigint, sum(output)::bigint, sum(cache_read)::bigint,
  sum(cache_write_5m)::bigint, sum(cache_write_1h)::bigint`

func (s *Postgres) countAgents(ctx context.Context, at map[int64]*server.FoundSession, ids []int64) error {
	rows, err := s.pool.Query(ctx, `
SELECT s.id, count(*) FROM streams s JOIN streams a ON hashtextextended(a.parent, 0) = hashtextextended(s.session_id, 0)
  AND a.parent = s.session_id AND a.parent <> '' AND a.owner = s.owner AND a.machine = s.machine
WHERE s.id = ANY ($1) GROUP BY s.id`, ids)
	if err != nil {
		return err
	}
	var id, n int64
	_, err = pgx.ForEachRow(rows, []any{&id, &n}, func() error {
		at[id].Agents = n
		return nil
	})
	return err
}
