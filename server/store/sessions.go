package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/ccship/ccship/server"
)

// selectSession joins a stream with its epoch in front (or the one that the first two values name, both empty for none)
// and that epoch's newest generation. SQLite keeps the order of a CROSS JOIN: the streams' order is the listing's.
const selectSession = `
SELECT s.id, s.owner, s.session_id, s.project_hash, s.machine, s.host, s.project, s.cwd, s.path, s.parent,
  e.id, e.name, (SELECT count(*) FROM epochs WHERE stream = s.id),
  g.generation, max(g.end_line, g.rewound_to), CASE WHEN g.end_offset > 0 THEN g.end_offset ELSE g.bytes END,
  s.first_received, s.last_received, s.active` + moreColumns + `
FROM streams s
CROSS JOIN epochs e ON e.stream = s.id
  AND e.rank = (SELECT max(rank) FROM epochs WHERE stream = s.id AND (? = '' OR name = ?))
CROSS JOIN generations g ON g.epoch = e.id
  AND g.generation = (SELECT max(generation) FROM generations WHERE epoch = e.id)
LEFT JOIN facts f ON f.stream = s.id
`

// moreColumns are what is derived of a session.
const moreColumns = `,
  coalesce(f.title, ''), coalesce(f.first_prompt, ''), coalesce(f.model, ''), coalesce(f.models, ''),
  coalesce(f.branch, ''), coalesce(f.version, ''), coalesce(f.started, 0), coalesce(f.ended, 0),
  coalesce(f.prompts, 0), coalesce(f.messages, 0), coalesce(f.tools, 0), coalesce(f.errors, 0),
  coalesce(f.compactions, 0), coalesce(f.context, 0), coalesce(f.window, 0), coalesce(f.compact_at, 0),
  coalesce(f.lines, 0)`

type scanner interface{ Scan(...any) error }

// querier is a pool or one connection of it.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

func scanSession(row scanner) (x server.FoundSession, epoch int64, err error) {
	var first, last, active, started, ended int64
	var models string
	f := &x.Summary
	err = row.Scan(&x.ID, &x.Owner, &x.SessionID, &x.ProjectHash, &x.Machine, &x.Host, &x.Project, &x.Cwd, &x.Path,
		&x.Parent, &epoch, &x.Epoch, &x.Epochs, &x.Generation, &x.Lines, &x.Bytes, &first, &last, &active,
		&f.Title, &f.FirstPrompt, &f.Model, &models, &f.Branch, &f.Version, &started, &ended, &f.Prompts, &f.Messages,
		&f.Tools, &f.Errors, &f.Compactions, &f.Context, &f.Window, &f.Limit, &f.Lines)
	x.First, x.Last, x.Active = time.UnixMicro(first).UTC(), time.UnixMicro(last).UTC(), time.UnixMicro(active).UTC()
	f.Started, f.Ended, f.Models = moment(started), moment(ended), splitModels(models)
	return x, epoch, err
}

// joinModels and splitModels keep a list of names in one text, in which each can be looked for.
func joinModels(models []string) string {
	if len(models) == 0 {
		return ""
	}
	return "\n" + strings.Join(models, "\n") + "\n"
}

func splitModels(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.Trim(text, "\n"), "\n")
}

// Sessions implements server.Catalog.
func (s *SQLite) Sessions(ctx context.Context, p server.Page) (server.Sessions, error) {
	found, err := s.Find(ctx, server.Scope{All: true}, server.SessionQuery{Page: p, Agents: true})
	out := server.Sessions{Next: found.Next}
	for _, x := range found.List {
		out.List = append(out.List, x.Session)
	}
	return out, err
}

// Find implements server.Library.
func (s *SQLite) Find(ctx context.Context, scope server.Scope, q server.SessionQuery) (server.Found, error) {
	projects, err := projectsHolding(q.Text, func() ([]string, error) {
		return list(ctx, sqliteDialect{s.read}, selectProjects, nil, scanName)
	})
	if err != nil {
		return server.Found{}, fmt.Errorf("find sessions: %w", err)
	}
	var f filter
	f.scope(scope)
	f.sessions(q, projects)
	order, err := f.page(q.Page)
	if err != nil {
		return server.Found{}, err
	}
	var out server.Found
	out.List, err = querySessions(ctx, s.read, f.where()+order+` LIMIT ?`, append(f.args, q.Limit+1)...)
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

// querySessions runs selectSession, for the epochs in front, with what follows its joins.
func querySessions(ctx context.Context, db querier, rest string, args ...any) ([]server.FoundSession, error) {
	rows, err := db.QueryContext(ctx, selectSession+rest, append([]any{"", ""}, args...)...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []server.FoundSession
	for rows.Next() {
		x, _, err := scanSession(rows)
		if err != nil {
			return nil, err
		}
		out = append(out, x)
	}
	return out, rows.Err()
}

// sessionsByID answers those of the streams that are still there.
func (s *SQLite) sessionsByID(ctx context.Context, ids []int64) (map[int64]server.FoundSession, error) {
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

// projectsHolding are those of the names of all projects that hold a text beyond ASCII, whose small and capital letters
// SQL's lower() does not know.
func projectsHolding(text string, names func() ([]string, error)) (out []string, err error) {
	folded := foldText(text)
	if isASCII(folded) {
		return nil, nil
	}
	all, err := names()
	for _, name := range all {
		if strings.Contains(foldText(name), folded) {
			out = append(out, name)
		}
	}
	return out, err
}

const selectProjects = `SELECT DISTINCT project FROM streams`

func scanName(row scanner) (name string, err error) { return name, row.Scan(&name) }

// sessions lets through what a query chooses, of streams s with facts f. projects are those whose name holds its text.
func (f *filter) sessions(q server.SessionQuery, projects []string) {
	f.streams(q.Project, q.Machine, q.User)
	switch {
	case q.Parent != "":
		f.add(`s.parent = ?`, q.Parent)
	case !q.Agents:
		f.add(`s.parent = ''`)
	}
	if q.Model != "" {
		f.add(`instr(f.models, char(10) || ? || char(10)) > 0`, q.Model)
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
		f.add(`(instr(f.folded, ?) > 0 OR instr(lower(s.project), ?) > 0 OR instr(lower(s.session_id), ?) > 0
      OR s.project IN (SELECT value FROM json_each(?)))`, t, t, t, jsonList(projects))
	}
}

// page lets through what follows the page before, and answers the order.
func (f *filter) page(p server.Page) (order string, err error) {
	last, id, err := parseAfter(p)
	if err != nil {
		return "", err
	}
	if p.Recent {
		f.add(`(s.active, s.id) < (?, ?)`, last, id)
		return ` ORDER BY s.active DESC, s.id DESC`, nil
	}
	f.add(`s.id > ?`, id)
	return ` ORDER BY s.id`, nil
}

// addUsage adds what each session's answers used, and counts its agents.
func (s *SQLite) addUsage(ctx context.Context, list []server.FoundSession) error {
	if len(list) == 0 {
		return nil
	}
	at, ids := map[int64]*server.FoundSession{}, make([]int64, 0, len(list))
	for i := range list {
		at[list[i].ID], ids = &list[i], append(ids, list[i].ID)
	}
	rows, err := s.read.QueryContext(ctx, `
SELECT stream, model, count(*), sum(input), sum(output), sum(cache_read), sum(cache_write_5m), sum(cache_write_1h)
FROM answers INDEXED BY answers_stream WHERE stream IN (SELECT value FROM json_each(?)) AND counted = 1
GROUP BY stream, model ORDER BY stream, model`, jsonList(ids))
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var id int64
		row := server.UsageRow{Hour: -1}
		if err := rows.Scan(append([]any{&id, &row.Model}, tokenColumns(&row.Tokens)...)...); err != nil {
			return err
		}
		at[id].Usage = append(at[id].Usage, row)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	return s.countAgents(ctx, at, ids)
}

func (s *SQLite) countAgents(ctx context.Context, at map[int64]*server.FoundSession, ids []int64) error {
	rows, err := s.read.QueryContext(ctx, `
SELECT s.id, count(*) FROM streams s JOIN streams a ON a.parent = s.session_id AND a.parent <> '' AND a.owner = s.owner
  AND a.machine = s.machine
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

func tokenColumns(t *server.Tokens) []any {
	return []any{&t.Answers, &t.Input, &t.Output, &t.CacheRead, &t.CacheWrite5m, &t.CacheWrite1h}
}
