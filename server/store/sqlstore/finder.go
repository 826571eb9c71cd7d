package sqlstore

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/transcript"
)

// Finder lists and counts sessions, the same in both databases. Set once, when a store opens.
type Finder struct {
	reader Dialect
	query  string
}

// SessionColumns are those of ScanSession, of streams s, epochs e, generations g and facts f.
var SessionColumns = `s.id, s.owner, s.session_id, s.project_hash, ` + OneProject("s") + `,
  s.machine, s.host, s.project, s.cwd, s.path,
  s.parent, e.rank, e.name, (SELECT count(*) FROM epochs c WHERE c.owner = s.owner AND c.stream = s.id),
  g.generation, CASE WHEN g.end_line > g.rewound_to THEN g.end_line ELSE g.rewound_to END,
  CASE WHEN g.end_offset > 0 THEN g.end_offset ELSE g.bytes END, s.first_received, s.last_received, s.active` +
	MoreColumns

// NewFinder returns the finder of a store. query selects SessionColumns, of the epochs in front, or of the one that its
// first two values name, name and key, and their newest generations. Conditions on streams s and facts f follow. It is
// tuned for each database.
func NewFinder(reader Dialect, query string) Finder { return Finder{reader, query} }

// Sessions implements server.Catalog.
func (c *Finder) Sessions(ctx context.Context, p server.Page) (server.Sessions, error) {
	found, err := c.Find(ctx, server.Scope{All: true}, server.SessionQuery{Page: p, Agents: true})
	out := server.Sessions{Next: found.Next}
	for i := range found.List {
		out.List = append(out.List, found.List[i].Session)
	}
	return out, err
}

// Find implements server.Library.
func (c *Finder) Find(ctx context.Context, scope server.Scope, q server.SessionQuery) (server.Found, error) {
	out, err := findParts(ctx, c.reader, scope, q.Page, func(part Part) ([]server.FoundSession, error) {
		f, err := c.filter(ctx, part, scope, q)
		if err != nil {
			return nil, err
		}
		order, err := f.Page(q.Page)
		if err != nil {
			return nil, err
		}
		return c.list(ctx, f.Where()+order+` LIMIT ?`, append(f.Args, q.Limit+1))
	})
	if err == nil {
		err = cmp.Or(c.addUsage(ctx, out.List), addCopies(ctx, c.reader, out.List))
	}
	return out, Wrap(err, "find sessions")
}

// filter lets through the streams s, with facts f, that a query chooses of a part of what a scope sees.
func (c *Finder) filter(ctx context.Context, part Part, scope server.Scope,
	q server.SessionQuery) (f Filter, err error) {
	f.Select(part, scope)
	f.Project(scope, q.Project)
	f.Streams(q.Machine, q.User)
	f.chosen(q)
	if t := FoldText(q.Text); t != "" {
		has, args := `instr(f.folded, ?) > 0 OR instr(lower(s.project), ?) > 0 OR instr(lower(s.session_id), ?) > 0`,
			[]any{t, t, t}
		projects, err := c.projects(ctx, t)
		if err != nil {
			return f, err
		}
		if len(projects) > 0 {
			has, args = has+` OR s.project IN (`+Marks(len(projects))+`)`, append(args, Values(projects)...)
		}
		f.Add(`(`+has+`)`, args...)
	}
	f.HideCopies(part, scope, q)
	return f, nil
}

// list runs the query for the epochs in front, with what follows its joins.
func (c *Finder) list(ctx context.Context, rest string, args []any) ([]server.FoundSession, error) {
	return List(ctx, c.reader, c.query+rest, append([]any{"", Key("")}, args...),
		func(row Scanner) (server.FoundSession, error) {
			x, _, err := ScanSession(row)
			return x, err
		})
}

// ByID answers those of the streams that are still there.
func (c *Finder) ByID(ctx context.Context, ids []int64) (map[int64]server.FoundSession, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	of := few(ids)
	list, err := c.list(ctx, `WHERE s.id IN (`+Marks(len(of))+`)`, of)
	if err != nil {
		return nil, fmt.Errorf("read sessions: %w", err)
	}
	out := make(map[int64]server.FoundSession, len(list))
	for _, x := range list {
		out[x.ID] = x
	}
	return out, nil
}

// SummaryOf implements server.Library.
func (c *Finder) SummaryOf(ctx context.Context, stream int64) (server.Summary, error) {
	found, err := c.ByID(ctx, []int64{stream})
	return found[stream].Summary, err
}

// addUsage adds what the answers of each session, its copies and the agents of both used, and counts its agents without
// copies.
func (c *Finder) addUsage(ctx context.Context, list []server.FoundSession) error {
	if len(list) == 0 {
		return nil
	}
	at, ids := map[int64]*server.FoundSession{}, make([]int64, 0, len(list))
	for i := range list {
		at[list[i].ID], ids = &list[i], append(ids, list[i].ID)
	}
	of := few(ids)
	these := `s.id IN (` + Marks(len(of)) + `)`
	err := c.reader.Query(ctx, `
WITH alone (owner, id, stream) AS MATERIALIZED (
  SELECT s.owner, s.id, s.id FROM streams s WHERE `+these+` UNION ALL
  SELECT s.owner, s.id, t.stream FROM streams s JOIN facts f ON f.owner = s.owner AND f.stream = s.id
  `+withCopies()+` WHERE `+these+`),
x (owner, id, stream) AS MATERIALIZED (
  SELECT owner, id, stream FROM alone UNION
  SELECT o.owner, o.id, a.id FROM alone o JOIN streams s ON s.owner = o.owner AND s.id = o.stream
  `+withAgents+`)
SELECT x.id, a.model, `+LongContext+`, count(*), CAST(sum(a.input) AS bigint), CAST(sum(a.output) AS bigint),
  CAST(sum(a.cache_read) AS bigint), CAST(sum(a.cache_write_5m) AS bigint), CAST(sum(a.cache_write_1h) AS bigint),
  CAST(sum(a.searches) AS bigint)
FROM x CROSS JOIN answers a WHERE a.owner = x.owner AND a.stream = x.stream AND a.counted
GROUP BY 1, 2, 3 ORDER BY 1, 2, 3`, append(of, of...), func(row Scanner) error {
		var id int64
		u := server.UsageRow{Hour: -1}
		err := row.Scan(append([]any{&id, &u.Model, &u.Long}, TokenColumns(&u.Tokens)...)...)
		if err == nil {
			at[id].Usage = append(at[id].Usage, u)
		}
		return err
	})
	if err != nil {
		return err
	}
	return c.reader.Query(ctx, `
SELECT s.id, count(*) FROM streams s `+withAgents+`
WHERE `+these+` AND NOT EXISTS (SELECT 1 FROM facts f JOIN facts o ON o.owner = f.owner AND `+holds("o", "f")+`
  JOIN streams p ON p.owner = o.owner AND p.id = o.stream AND p.parent = a.parent AND p.machine = a.machine
  WHERE f.owner = a.owner AND f.stream = a.id) GROUP BY s.id`, of, func(row Scanner) error {
		var id, n int64
		err := row.Scan(&id, &n)
		if err == nil {
			at[id].Agents = n
		}
		return err
	})
}

// withAgents joins the streams s of sessions with those of their agents.
const withAgents = `JOIN streams a ON substr(a.parent, 1, 200) = substr(s.session_id, 1, 200)
  AND a.parent = s.session_id AND a.parent <> '' AND a.owner = s.owner AND a.machine = s.machine`

// Drops implements server.Library.
func (c *Finder) Drops(ctx context.Context, scope server.Scope, q server.DropQuery) ([]server.Drop, error) {
	var f Filter
	f.Add(`d.lines > 0`)
	if !scope.All && scope.Only == 0 {
		f.Add(`d.owner IN (SELECT CAST(? AS bigint) UNION SELECT owner FROM shares WHERE with_user = ?)`,
			scope.User, scope.User)
	}
	f.Scope(scope)
	f.Drops(q)
	var ids []int64
	out, err := List(ctx, c.reader, `
SELECT s.id, e.name, d.generation, g.first_seen, d.first_line, d.last_line, d.lines
FROM drops d JOIN epochs e ON e.owner = d.owner AND e.stream = d.stream AND e.rank = d.epoch
JOIN streams s ON s.owner = d.owner AND s.id = d.stream
JOIN generations g ON g.owner = d.owner AND g.stream = d.stream AND g.epoch = d.epoch AND g.generation = d.generation
`+f.Where()+`
ORDER BY g.first_seen DESC, d.stream DESC, d.epoch DESC, d.generation DESC LIMIT ?`, append(f.Args, q.Limit),
		func(row Scanner) (d server.Drop, err error) {
			var at int64
			err = row.Scan(&d.Session.ID, &d.Epoch, &d.Generation, &at, &d.First, &d.Last, &d.Lines)
			d.At = Moment(at)
			ids = append(ids, d.Session.ID)
			return d, err
		})
	if err != nil {
		return nil, fmt.Errorf("list rewrites: %w", err)
	}
	found, err := c.ByID(ctx, ids)
	for i := range out {
		out[i].Session = found[out[i].Session.ID].Session
	}
	return out, err
}

const (
	maxNeedles = 16
	maxNeedle  = 256 // characters
)

// Needles splits a search text into parts that must all be found: words, and texts in double quotes.
func Needles(query string) (out []string) {
	for i, part := range strings.Split(query, `"`) {
		words := []string{FoldText(part)}
		if i%2 == 0 {
			words = strings.Fields(words[0])
		}
		for _, w := range words {
			if r := []rune(w); len(r) > maxNeedle {
				w = string(r[:maxNeedle])
			}
			if w != "" && len(out) < maxNeedles {
				out = append(out, w)
			}
		}
	}
	return out
}

const (
	markBegin = "\x02"
	markEnd   = "\x03"
	// snippetRunes is about how many characters a snippet shows around what was found.
	snippetRunes = 200
)

// HoldsAll says whether a text has all needles.
func HoldsAll(text string, needles []string) bool {
	folded := FoldText(text)
	for _, n := range needles {
		if !strings.Contains(folded, n) {
			return false
		}
	}
	return true
}

// Snippet returns the part of a text around the first needle, on one line, with every needle in it between U+0002 and
// U+0003. "…" stands for what was cut off.
func Snippet(text string, needles []string) string {
	shown, folded := squeeze(text)
	first := len(folded)
	for _, n := range needles {
		if i := indexRunes(folded, []rune(n), 0); i >= 0 {
			first = min(first, i)
		}
	}
	if first == len(folded) {
		first = 0
	}
	from := max(0, first-snippetRunes/4)
	to := min(len(shown), from+snippetRunes)
	from = max(0, min(from, to-snippetRunes))
	var out strings.Builder
	if from > 0 {
		out.WriteString("…")
	}
	marked := marks(folded[from:to], needles)
	for i, r := range shown[from:to] {
		if marked[i] && (i == 0 || !marked[i-1]) {
			out.WriteString(markBegin)
		}
		out.WriteRune(r)
		if marked[i] && (i+1 == len(marked) || !marked[i+1]) {
			out.WriteString(markEnd)
		}
	}
	if to < len(shown) {
		out.WriteString("…")
	}
	return out.String()
}

// squeeze returns a text on one line, as it is shown and as it is searched: both of the same length.
func squeeze(text string) (shown, folded []rune) {
	text = transcript.Compose(text)
	n := utf8.RuneCountInString(text)
	shown, folded = make([]rune, 0, n), make([]rune, 0, n)
	space := false
	for _, r := range text {
		if isSpace(r) {
			space = len(shown) > 0
			continue
		}
		if space {
			shown, folded = append(shown, ' '), append(folded, ' ')
			space = false
		}
		shown, folded = append(shown, r), append(folded, unicode.ToLower(r))
	}
	return shown, folded
}

// marks says which characters are part of a needle.
func marks(folded []rune, needles []string) []bool {
	out := make([]bool, len(folded))
	for _, n := range needles {
		needle := []rune(n)
		for i := indexRunes(folded, needle, 0); i >= 0; i = indexRunes(folded, needle, i+len(needle)) {
			for k := range needle {
				out[i+k] = true
			}
		}
	}
	return out
}

// indexRunes returns where needle begins in text at or behind from, -1 if nowhere.
func indexRunes(text, needle []rune, from int) int {
	if len(needle) == 0 {
		return -1
	}
next:
	for i := from; i+len(needle) <= len(text); i++ {
		for k, r := range needle {
			if text[i+k] != r {
				continue next
			}
		}
		return i
	}
	return -1
}
