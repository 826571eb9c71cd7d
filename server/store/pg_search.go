package store

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ccship/ccship/server"
)

// pgFound is a text that holds what is looked for.
type pgFound struct {
	time, epoch int64
	text        string
	hit         server.Hit
}

// after is where the next page begins.
func (x *pgFound) after() string {
	return fmt.Sprintf("%d.%d.%d.%d.%d.%s", x.time, x.hit.Session.ID, x.epoch, x.hit.Generation, x.hit.Line, x.hit.Kind)
}

// newestFirst are how many of the newest texts are looked through before the index is asked. A word that is common is
// found among few; the index would have to collect, and put in order, every text that has it.
var newestFirst = []int{2_000, 10_000}

// Search implements server.Library. A page's After is the place of the last text of the page before.
func (s *Postgres) Search(ctx context.Context, scope server.Scope, q server.SearchQuery) (server.Hits, error) {
	words := needles(q.Text)
	var within filter
	if err := within.pgWithin(q); err != nil || len(words) == 0 || q.Limit < 1 {
		return server.Hits{}, err
	}
	if q.Session == "" {
		for _, newest := range newestFirst {
			list, err := s.search(ctx, within, newest, scope, q)
			if err != nil {
				return server.Hits{}, err
			}
			if len(list) > q.Limit {
				return s.hits(ctx, list, words, q.Limit)
			}
		}
	}
	list, err := s.search(ctx, within, 0, scope, q)
	if err != nil {
		return server.Hits{}, err
	}
	return s.hits(ctx, list, words, q.Limit)
}

// search finds a page of texts and one more, among the newest of those within, or with newest 0 among all.
func (s *Postgres) search(ctx context.Context, within filter, newest int, scope server.Scope,
	q server.SearchQuery) ([]pgFound, error) {
	const order = ` ORDER BY t.time DESC, t.stream DESC, t.epoch DESC, t.generation DESC, t.line DESC, t.kind DESC LIMIT ?`
	var f filter
	texts := `texts`
	var args []any
	if newest > 0 {
		texts = `(SELECT * FROM texts t ` + within.where() + order + `)`
		args = append(slices.Clone(within.args), newest)
	} else {
		f.conditions, f.args = slices.Clone(within.conditions), slices.Clone(within.args)
	}
	for _, w := range needles(q.Text) {
		s.holding(&f, w)
	}
	f.pgSearch(scope, q)
	sql, args := numbered(`
SELECT t.time, t.stream, t.epoch, e.name, t.generation, t.line, t.kind, t.text, `+pgIsCurrent+`
FROM `+texts+` t JOIN streams s ON s.id = t.stream JOIN epochs e ON e.stream = t.stream AND e.rank = t.epoch `+
		f.where()+order, append(append(args, f.args...), q.Limit+1))
	list, err := collectPg(ctx, s, sql, args, func(row scanner) (x pgFound, err error) {
		err = row.Scan(&x.time, &x.hit.Session.ID, &x.epoch, &x.hit.Epoch, &x.hit.Generation, &x.hit.Line, &x.hit.Kind,
			&x.text, &x.hit.Current)
		x.hit.Time = moment(x.time)
		return x, err
	})
	if err != nil {
		return nil, fmt.Errorf("search: %w", err)
	}
	return list, nil
}

// hits shows what was found, except one more than limit, which shows that there is a next page.
func (s *Postgres) hits(ctx context.Context, list []pgFound, words []string, limit int) (server.Hits, error) {
	var out server.Hits
	if len(list) > limit {
		list = list[:limit]
		out.Next = list[limit-1].after()
	}
	var ids []int64
	for _, x := range list {
		ids = append(ids, x.hit.Session.ID)
	}
	sessions, err := s.sessionsByID(ctx, ids)
	if err != nil {
		return server.Hits{}, fmt.Errorf("search: %w", err)
	}
	for _, x := range list {
		session, ok := sessions[x.hit.Session.ID]
		if !ok {
			continue // forgotten meanwhile
		}
		x.hit.Session, x.hit.Summary = session.Session, session.Summary
		x.hit.Snippet = snippet(x.text, words)
		out.List = append(out.List, x.hit)
	}
	return out, nil
}

// holding lets through texts that hold a word. What is compared is exact; without trigrams an index of words narrows
// it down, which knows words from their beginning on only.
func (s *Postgres) holding(f *filter, word string) {
	indexed := indexText(word)
	if !s.trigrams {
		f.add(pgWords+` @@ to_tsquery('simple', ?)`, `'`+strings.NewReplacer(`\`, `\\`, `'`, `''`).Replace(indexed)+`':*`)
	}
	f.add(`t.indexed LIKE ?`, contains(indexed))
}

// pgIsCurrent says whether the newest view shows a text's line: no newer generation begins at or before it, and no
// epoch is newer.
const pgIsCurrent = `(t.epoch = (SELECT max(rank) FROM epochs WHERE stream = t.stream) AND NOT EXISTS (
  SELECT FROM generations g WHERE g.stream = t.stream AND g.epoch = t.epoch AND g.generation > t.generation
    AND g.rewound_to <= t.line))`

// pgWithin lets through texts t of the time a query chooses that follow the page before.
func (f *filter) pgWithin(q server.SearchQuery) error {
	if !q.Since.IsZero() {
		f.add(`t.time >= ?`, q.Since.UnixMicro())
	}
	if !q.Until.IsZero() {
		f.add(`t.time < ?`, q.Until.UnixMicro())
	}
	if q.After == "" {
		return nil
	}
	parts := strings.SplitN(q.After, ".", 6)
	if len(parts) != 6 {
		return server.ErrBadPage
	}
	var place [5]any
	for i := range place {
		n, err := strconv.ParseInt(parts[i], 10, 64)
		if err != nil {
			return server.ErrBadPage
		}
		place[i] = n
	}
	f.add(`(t.time, t.stream, t.epoch, t.generation, t.line, t.kind) < (?, ?, ?, ?, ?, ?)`,
		place[0], place[1], place[2], place[3], place[4], parts[5])
	return nil
}

// pgSearch lets through texts t of streams s that a query chooses, apart from what they hold.
func (f *filter) pgSearch(scope server.Scope, q server.SearchQuery) {
	f.scope(scope)
	f.streams(q.Project, q.Machine, q.User)
	if len(q.Kinds) > 0 {
		f.add(`t.kind = ANY (?)`, q.Kinds)
	}
	if q.Session != "" {
		f.pgSession(q.Session, true)
	}
	if q.Model != "" {
		f.add(`EXISTS (SELECT FROM facts m
  WHERE m.stream = s.id AND strpos(m.models, chr(10) || ?::text || chr(10)) > 0)`, q.Model)
	}
	if !q.Superseded {
		f.add(pgIsCurrent)
	}
}

// pgSession lets through the streams s of a session, and of its agents.
func (f *filter) pgSession(session string, agents bool) {
	if !agents {
		f.add(`s.session_key = ?`, key(session))
		return
	}
	f.add(`(s.session_key = ? OR (hashtextextended(s.parent, 0) = hashtextextended(?, 0) AND s.parent = ?))`,
		key(session), session, session)
}
