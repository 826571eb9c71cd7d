package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store/sqlstore"
)

// selectSession joins a stream with its epoch in front (or the one that the first two values name, both empty for none)
// and that epoch's newest generation. SQLite keeps the order of a CROSS JOIN: the streams' order is the listing's.
const selectSession = `
SELECT s.id, s.owner, s.session_id, s.project_hash, s.machine, s.host, s.project, s.cwd, s.path, s.parent,
  e.rank, e.name, (SELECT count(*) FROM epochs c WHERE c.owner = s.owner AND c.stream = s.id),
  g.generation, max(g.end_line, g.rewound_to), CASE WHEN g.end_offset > 0 THEN g.end_offset ELSE g.bytes END,
  s.first_received, s.last_received, s.active` + sqlstore.MoreColumns + `
FROM streams s
CROSS JOIN epochs e ON e.owner = s.owner AND e.stream = s.id
  AND e.rank = (SELECT max(rank) FROM epochs WHERE owner = s.owner AND stream = s.id AND (? = '' OR name_key = ?))
CROSS JOIN generations g ON g.owner = e.owner AND g.stream = e.stream AND g.epoch = e.rank AND g.generation =
  (SELECT max(generation) FROM generations WHERE owner = e.owner AND stream = e.stream AND epoch = e.rank)
LEFT JOIN facts f ON f.owner = s.owner AND f.stream = s.id
`

// querier is a pool or one connection of it.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// Sessions implements server.Catalog.
func (s *Store) Sessions(ctx context.Context, p server.Page) (server.Sessions, error) {
	found, err := s.Find(ctx, server.Scope{All: true}, server.SessionQuery{Page: p, Agents: true})
	out := server.Sessions{Next: found.Next}
	for _, x := range found.List {
		out.List = append(out.List, x.Session)
	}
	return out, err
}

// Find implements server.Library.
func (s *Store) Find(ctx context.Context, scope server.Scope, q server.SessionQuery) (server.Found, error) {
	page := func(part sqlstore.Part) ([]server.FoundSession, error) {
		f, err := s.sources(ctx, part, scope, q)
		if err != nil {
			return nil, err
		}
		order, err := f.Page(q.Page)
		if err != nil {
			return nil, err
		}
		return querySessions(ctx, s.read, f.Where()+order+` LIMIT ?`, append(f.Args, q.Limit+1)...)
	}
	out, err := sqlstore.FindParts(ctx, dialect{s.read}, scope, q.Page, page)
	if err == nil {
		err = cmp.Or(s.addUsage(ctx, out.List), sqlstore.AddCopies(ctx, dialect{s.read}, out.List))
	}
	if err != nil {
		return server.Found{}, fmt.Errorf("find sessions: %w", err)
	}
	return out, nil
}

// sources filters the streams s, with facts f, that a query chooses of a part of what a scope sees.
func (s *Store) sources(ctx context.Context, part sqlstore.Part, scope server.Scope,
	q server.SessionQuery) (f sqlstore.Filter, err error) {
	projects, err := sqlstore.ProjectsHolding(q.Text, func() ([]string, error) {
		return sqlstore.List(ctx, dialect{s.read}, sqlstore.SelectProjects, nil, sqlstore.ScanName)
	})
	f.Select(part, scope)
	filterSessions(&f, q, projects)
	f.HideCopies(part, scope, q)
	return f, err
}

// querySessions runs selectSession, for the epochs in front, with what follows its joins.
func querySessions(ctx context.Context, db querier, rest string, args ...any) ([]server.FoundSession, error) {
	rows, err := db.QueryContext(ctx, selectSession+rest, append([]any{"", sqlstore.Key("")}, args...)...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []server.FoundSession
	for rows.Next() {
		x, _, err := sqlstore.ScanSession(rows)
		if err != nil {
			return nil, err
		}
		out = append(out, x)
	}
	return out, rows.Err()
}

// sessionsByID answers those of the streams that are still there.
func (s *Store) sessionsByID(ctx context.Context, ids []int64) (map[int64]server.FoundSession, error) {
	list, err := querySessions(ctx, s.read, `WHERE s.id IN (SELECT value FROM json_each(?))`, jsonList(ids))
	if err != nil {
		return nil, fmt.Errorf("read sessions: %w", err)
	}
	out := make(map[int64]server.FoundSession, len(list))
	for _, x := range list {
		out[x.ID] = x
	}
	return out, nil
}

// jsonList is a list as one value of a query.
func jsonList[T int64 | string](list []T) string {
	if list == nil {
		list = []T{}
	}
	b, _ := json.Marshal(list) // numbers and strings always can be
	return string(b)
}

// addUsage adds what each session's answers used, and those of its copies, and counts its agents.
func (s *Store) addUsage(ctx context.Context, list []server.FoundSession) error {
	if len(list) == 0 {
		return nil
	}
	at, ids := map[int64]*server.FoundSession{}, make([]int64, 0, len(list))
	for i := range list {
		at[list[i].ID], ids = &list[i], append(ids, list[i].ID)
	}
	rows, err := s.read.QueryContext(ctx, `
WITH x (owner, id, stream) AS MATERIALIZED (
  SELECT s.owner, s.id, s.id FROM json_each(?1) j JOIN streams s ON s.id = j.value UNION ALL
  SELECT s.owner, s.id, t.stream FROM json_each(?1) j JOIN streams s ON s.id = j.value
  JOIN facts f ON f.owner = s.owner AND f.stream = s.id `+sqlstore.WithCopies()+`)
SELECT x.id, model, `+sqlstore.LongContext+`, count(*), sum(input), sum(output), sum(cache_read), sum(cache_write_5m),
  sum(cache_write_1h), sum(searches)
FROM x CROSS JOIN answers a ON a.owner = x.owner AND a.stream = x.stream WHERE counted = 1
GROUP BY 1, 2, 3 ORDER BY 1, 2, 3`, jsonList(ids))
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var id int64
		row := server.UsageRow{Hour: -1}
		if err := rows.Scan(append([]any{&id, &row.Model, &row.Long}, sqlstore.TokenColumns(&row.Tokens)...)...); err != nil {
			return err
		}
		at[id].Usage = append(at[id].Usage, row)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	return s.countAgents(ctx, at, ids)
}

func (s *Store) countAgents(ctx context.Context, at map[int64]*server.FoundSession, ids []int64) error {
	rows, err := s.read.QueryContext(ctx, `
SELECT s.id, count(*) FROM streams s JOIN streams a ON substr(a.parent, 1, 200) = substr(s.session_id, 1, 200)
  AND a.parent = s.session_id AND a.parent <> '' AND a.owner = s.owner AND a.machine = s.machine
WHERE s.id IN (SELECT value FROM json_each(?)) GROUP BY s.id`, jsonList(ids))
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var id, n int64
		if err := rows.Scan(&id, &n); err != nil {
			return err
		}
		at[id].Agents = n
	}
	return rows.Err()
}

// filterSessions lets through what a query chooses, of streams s with facts f. projects are those whose name holds
// its text.
func filterSessions(f *sqlstore.Filter, q server.SessionQuery, projects []string) {
	f.Streams(q.Project, q.Machine, q.User)
	f.Chosen(q)
	switch {
	case q.Parent != "":
		f.Parent(q.Parent)
	case !q.Agents:
		f.Add(`s.parent = ''`)
	}
	if q.Model != "" {
		f.Add(`instr(f.models, char(10) || ? || char(10)) > 0`, q.Model)
	}
	if q.Branch != "" {
		f.Add(`f.branch = ?`, q.Branch)
	}
	if !q.Since.IsZero() {
		f.Add(`s.active >= ?`, q.Since.UnixMicro())
	}
	if !q.Until.IsZero() {
		f.Add(`CASE WHEN f.started > 0 THEN f.started ELSE s.first_received END < ?`, q.Until.UnixMicro())
	}
	if len(q.Names) > 0 {
		keys := make([]any, len(q.Names))
		for i, name := range q.Names {
			keys[i] = sqlstore.Key(name)
		}
		f.Add(`s.session_key IN (`+sqlstore.Marks(len(keys))+`)`, keys...)
	}
	if t := sqlstore.FoldText(q.Text); t != "" {
		f.Add(`(instr(f.folded, ?) > 0 OR instr(lower(s.project), ?) > 0 OR instr(lower(s.session_id), ?) > 0
      OR s.project IN (SELECT value FROM json_each(?)))`, t, t, t, jsonList(projects))
	}
}
