package store

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ccship/ccship/server"
)

// found is a text that holds what is looked for.
type found struct {
	id, stream int64
	text       string
	hit        server.Hit
}

// Search implements server.Library. A page's After is the id of the last text of the page before.
func (s *SQLite) Search(ctx context.Context, scope server.Scope, q server.SearchQuery) (server.Hits, error) {
	words := needles(q.Text)
	f, from, order, err := searchFilter(scope, q, words)
	if err != nil || len(words) == 0 || q.Limit < 1 {
		return server.Hits{}, err
	}
	rows, err := s.read.QueryContext(ctx, `
SELECT t.id, t.stream, t.epoch, e.name, t.generation, t.line, t.kind, t.text, `+isCurrent+` FROM `+from+f.where()+`
ORDER BY `+order+` DESC`, f.args...)
	if err != nil {
		return server.Hits{}, fmt.Errorf("search: %w", err)
	}
	defer rows.Close()
	var list []found
	for len(list) <= q.Limit && rows.Next() {
		x, err := scanFound(rows)
		if err != nil {
			return server.Hits{}, fmt.Errorf("search: %w", err)
		}
		if holds(x.text, words) {
			list = append(list, x)
		}
	}
	if err := rows.Err(); err != nil {
		return server.Hits{}, fmt.Errorf("search: %w", err)
	}
	rows.Close() // before another connection is asked for
	return s.hits(ctx, list, words, q.Limit)
}

func scanFound(row scanner) (x found, err error) {
	var epoch int64
	h := &x.hit
	err = row.Scan(&x.id, &x.stream, &epoch, &h.Epoch, &h.Generation, &h.Line, &h.Kind, &x.text, &h.Current)
	x.hit.Time = timeOfText(x.id)
	return x, err
}

// hits shows what was found, except one more than limit, which shows that there is a next page.
func (s *SQLite) hits(ctx context.Context, list []found, words []string, limit int) (server.Hits, error) {
	var out server.Hits
	if len(list) > limit {
		list = list[:limit]
		out.Next = strconv.FormatInt(list[limit-1].id, 10)
	}
	var ids []int64
	for _, x := range list {
		ids = append(ids, x.stream)
	}
	sessions, err := s.sessionsByID(ctx, ids)
	if err != nil {
		return server.Hits{}, fmt.Errorf("search: %w", err)
	}
	for _, x := range list {
		session, ok := sessions[x.stream]
		if !ok {
			continue // forgotten meanwhile
		}
		x.hit.Session, x.hit.Summary = session.Session, session.Summary
		x.hit.Snippet = snippet(x.text, words)
		out.List = append(out.List, x.hit)
	}
	return out, nil
}

// isCurrent says whether the newest view shows a text's line: no newer generation begins at or before it, and no
// epoch is newer.
const isCurrent = `(e.rank = (SELECT max(rank) FROM epochs WHERE stream = t.stream) AND NOT EXISTS (
  SELECT 1 FROM generations g WHERE g.epoch = t.epoch AND g.generation > t.generation AND g.rewound_to <= t.line))`

// searchFilter lets through what a query chooses, and names the tables and the column that orders them. The index,
// where it can help, is walked backwards, so that nothing has to be sorted.
func searchFilter(scope server.Scope, q server.SearchQuery, words []string) (f filter, from, order string, err error) {
	before, after := int64(math.MaxInt64), int64(0)
	if q.After != "" {
		if before, err = strconv.ParseInt(q.After, 10, 64); err != nil || before < 0 {
			return f, "", "", server.ErrBadPage
		}
	}
	if !q.Until.IsZero() {
		before = min(before, textID(q.Until))
	}
	if !q.Since.IsZero() {
		after = textID(q.Since)
	}
	order = `t.id`
	from = `texts t CROSS JOIN streams s ON s.id = t.stream CROSS JOIN epochs e ON e.id = t.epoch `
	if m := match(words); m != "" {
		order = `x.rowid`
		from = `texts_index x CROSS JOIN texts t ON t.id = x.rowid CROSS JOIN streams s ON s.id = t.stream
CROSS JOIN epochs e ON e.id = t.epoch `
		f.add(`x.texts_index MATCH ? AND x.rowid < ? AND x.rowid >= ?`, m, before, after)
	} else {
		f.add(`t.id < ? AND t.id >= ?`, before, after)
		for _, w := range words {
			if isASCII(w) { // LIKE knows small and capital letters of ASCII only; the others are looked at one by one
				f.add(`t.text LIKE ? ESCAPE '\'`, contains(w))
			}
		}
	}
	f.search(scope, q)
	return f, from, order, nil
}

// search lets through texts t of streams s that a query chooses, apart from what they hold.
func (f *filter) search(scope server.Scope, q server.SearchQuery) {
	f.scope(scope)
	f.streams(q.Project, q.Machine, q.User)
	if len(q.Kinds) > 0 {
		f.add(`t.kind IN (SELECT value FROM json_each(?))`, jsonList(q.Kinds))
	}
	if q.Session != "" {
		f.add(`(s.session_id = ? OR s.parent = ?)`, q.Session, q.Session)
	}
	if q.Model != "" {
		f.add(`EXISTS (SELECT 1 FROM facts m
  WHERE m.stream = s.id AND instr(m.models, char(10) || ? || char(10)) > 0)`, q.Model)
	}
	if !q.Superseded {
		f.add(isCurrent)
	}
}

func isASCII(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) < 0
}

// contains is a LIKE pattern, with \ as its escape, for texts that hold word.
func contains(word string) string {
	return "%" + strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(word) + "%"
}
