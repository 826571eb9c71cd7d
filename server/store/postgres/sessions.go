package postgres

import (
	"cmp"
	"context"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store/sqlstore"
)

// numbered turns a query's question marks, which are nothing but places of values, into PostgreSQL's $1, $2 …, and
// makes the values fit for it.
func numbered(sql string, args []any) (string, []any) {
	out := make([]byte, 0, len(sql)+2*len(args))
	n := int64(0)
	for i := range len(sql) {
		switch c := sql[i]; c {
		case '?':
			n++
			out = strconv.AppendInt(append(out, '$'), n, 10)
		default:
			out = append(out, c)
		}
	}
	fit := make([]any, len(args))
	for i, arg := range args {
		switch x := arg.(type) {
		case string:
			arg = sqlstore.CleanText(x)
		case []string:
			list := make([]string, len(x))
			for k := range x {
				list[k] = sqlstore.CleanText(x[k])
			}
			arg = list
		}
		fit[i] = arg
	}
	return string(out), fit
}

// pgSelectSession joins a stream with its epoch in front (or the one named by the first two values, its name and its
// key, both of "" for none) and that epoch's newest generation. Its columns are those of selectSession.
const pgSelectSession = `
SELECT s.id, s.owner, s.session_id, s.project_hash, s.machine, s.host, s.project, s.cwd, s.path, s.parent,
  e.rank, e.name, (SELECT count(*) FROM epochs c WHERE c.owner = s.owner AND c.stream = s.id),
  g.generation, greatest(g.end_line, g.rewound_to), CASE WHEN g.end_offset > 0 THEN g.end_offset ELSE g.bytes END,
  s.first_received, s.last_received, s.active` + sqlstore.MoreColumns + `
FROM streams s
CROSS JOIN LATERAL (SELECT rank, name FROM epochs o
  WHERE o.owner = s.owner AND o.stream = s.id AND (?::text = '' OR name_key = ?) ORDER BY rank DESC LIMIT 1) e
CROSS JOIN LATERAL (SELECT * FROM generations n
  WHERE n.owner = s.owner AND n.stream = s.id AND n.epoch = e.rank ORDER BY generation DESC LIMIT 1) g
LEFT JOIN facts f ON f.owner = s.owner AND f.stream = s.id
`

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
		return s.sessionsWhere(ctx, f.Where()+order+` LIMIT ?`, append(f.Args, q.Limit+1)...)
	}
	out, err := sqlstore.FindParts(ctx, dialect{s.pool}, scope, q.Page, page)
	if err == nil {
		err = cmp.Or(s.addUsage(ctx, out.List), sqlstore.AddCopies(ctx, dialect{s.pool}, out.List))
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
		return collectPg(ctx, s, sqlstore.SelectProjects, nil, sqlstore.ScanName)
	})
	f.Select(part, scope)
	filterSessions(&f, q, projects)
	f.HideCopies(part, scope, q)
	return f, err
}

// sessionsWhere runs pgSelectSession, for the epochs in front, with what follows its joins.
func (s *Store) sessionsWhere(ctx context.Context, rest string, args ...any) ([]server.FoundSession, error) {
	sql, args := numbered(pgSelectSession+rest, append([]any{"", sqlstore.Key("")}, args...))
	rows, err := s.pool.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (server.FoundSession, error) {
		x, _, err := sqlstore.ScanSession(row)
		return x, err
	})
}

// sessionsByID answers those of the streams that are still there.
func (s *Store) sessionsByID(ctx context.Context, ids []int64) (map[int64]server.FoundSession, error) {
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

// filterSessions lets through the streams s with facts f that a query chooses. projects are those whose names hold
// q.Text.
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
		f.Add(`strpos(f.models, chr(10) || ?::text || chr(10)) > 0`, q.Model)
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
		keys := make([][]byte, len(q.Names))
		for i, name := range q.Names {
			keys[i] = sqlstore.Key(name)
		}
		f.Add(`s.session_key = ANY (?::bytea[])`, keys)
	}
	if t := sqlstore.FoldText(q.Text); t != "" {
		f.Add(`(strpos(f.folded, ?) > 0 OR strpos(lower(s.project), ?) > 0 OR strpos(lower(s.session_id), ?) > 0
      OR s.project = ANY (?))`, t, t, t, projects)
	}
}

// addUsage adds what each session's answers used, and those of its copies, and counts its agents.
func (s *Store) addUsage(ctx context.Context, list []server.FoundSession) error {
	if len(list) == 0 {
		return nil
	}
	at, ids, owners := map[int64]*server.FoundSession{}, make([]int64, 0, len(list)), make([]int64, 0, len(list))
	for i := range list {
		at[list[i].ID], ids, owners = &list[i], append(ids, list[i].ID), append(owners, list[i].Owner)
	}
	rows, err := s.pool.Query(ctx, `
WITH j AS (SELECT * FROM unnest($1::bigint[], $2::bigint[]) j (owner, stream)),
x (owner, id, stream) AS (SELECT owner, stream, stream FROM j UNION ALL
  SELECT s.owner, s.id, t.stream FROM j JOIN streams s ON s.owner = j.owner AND s.id = j.stream
  JOIN facts f ON f.owner = s.owner AND f.stream = s.id `+sqlstore.WithCopies()+`)
SELECT x.id, a.model, `+sqlstore.LongContext+`, `+tokenSums+`
FROM x JOIN answers a ON a.owner = x.owner AND a.stream = x.stream
WHERE a.counted GROUP BY 1, 2, 3 ORDER BY x.id, a.model COLLATE "C", 3`, owners, ids)
	if err != nil {
		return err
	}
	var id int64
	row := server.UsageRow{Hour: -1}
	to := append([]any{&id, &row.Model, &row.Long}, sqlstore.TokenColumns(&row.Tokens)...)
	_, err = pgx.ForEachRow(rows, to, func() error {
		at[id].Usage = append(at[id].Usage, row)
		return nil
	})
	if err != nil {
		return err
	}
	return s.countAgents(ctx, at, ids)
}

// tokenSums are tokenColumns of answers; a sum of bigint would be numeric.
const tokenSums = `count(*), sum(input)::bigint, sum(output)::bigint, sum(cache_read)::bigint,
  sum(cache_write_5m)::bigint, sum(cache_write_1h)::bigint, sum(searches)::bigint`

func (s *Store) countAgents(ctx context.Context, at map[int64]*server.FoundSession, ids []int64) error {
	rows, err := s.pool.Query(ctx, `
SELECT s.id, count(*) FROM streams s JOIN streams a ON substr(a.parent, 1, 200) = substr(s.session_id, 1, 200)
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
