package sqlite

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/derive"
	"github.com/ccship/ccship/server/store/search"
	"github.com/ccship/ccship/server/store/sqlstore"
)

var everyone = server.Scope{All: true}

// openTexts opens a new store that merges nothing by itself.
func openTexts(t *testing.T) *Store {
	t.Helper()
	s := kit.Try(Open(t.Context(), filepath.Join(t.TempDir(), "server.db"), sqlstore.Opening{})).Must(t)
	t.Cleanup(func() { _ = s.Close() })
	s.Index.Close()
	return s
}

// of is the database of a store.
func of(s *Store) database { return database{dialect{s.read}, s} }

// index is another index of a store, on a database.
func index(s *Store, db sqlstore.DB) *search.Index { return search.New(db, s.lines, &s.Finder) }

// say stores lines of a session, and derives each of them by itself: each becomes a segment.
func say(t *testing.T, s *Store, owner int64, session string, texts ...string) {
	t.Helper()
	for i, text := range texts {
		l := putText(t, s, owner, session, int64(i), text)
		tasks, err := s.Lagging(t.Context(), 1)
		kit.Require(t, err == nil && len(tasks) == 1, "%v %v", tasks, err)
		kit.Must(t, s.SaveDerived(t.Context(), derivationOf(t, s, tasks[0], l)))
	}
}

var said = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// putText stores a line of a session.
func putText(t *testing.T, s *Store, owner int64, session string, index int64, text string) server.Line {
	t.Helper()
	l := server.Line{Index: index, Raw: fmt.Appendf(nil, `{"type":"user","message":{"role":"user","content":%q}}`, text)}
	b := &server.Batch{Owner: owner, Received: said, Lines: []server.Line{l}, Head: server.Head{SessionID: session,
		Machine: "m", Epoch: "e", EndLine: index + 1}}
	kit.Must(t, s.Put(t.Context(), b))
	return l
}

// derivationOf is what the last line of a task says.
func derivationOf(t *testing.T, s *Store, task server.Task, l server.Line) *server.Derivation {
	t.Helper()
	d := &server.Derivation{Task: task, Position: task.Position, Done: true, Texts: derive.TextsOf(l)}
	if d.Position.Epoch == 0 {
		snap := kit.Try(s.Open(t.Context(), server.Ref{Stream: task.Stream})).Must(t)
		d.Position.Epoch = snap.Epochs()[0].ID
		kit.Must(t, snap.Close())
	}
	d.Position.Line = l.Index + 1
	for k := range d.Texts {
		d.Texts[k].Time = said.Add(time.Duration(l.Index) * time.Second)
	}
	return d
}

// foundLines are the lines that a search finds, in its order, over small pages.
func foundLines(t *testing.T, s *Store, text string) (lines []int64) {
	t.Helper()
	for q := (server.SearchQuery{Text: text, Limit: 7}); ; {
		hits := kit.Try(s.Search(t.Context(), everyone, q)).Must(t)
		lines = append(lines, kit.Each(hits.List, func(h server.Hit) int64 { return h.Line })...)
		if q.After = hits.Next; q.After == "" {
			return lines
		}
	}
}

func count(t *testing.T, s *Store, query string) (n int) {
	t.Helper()
	kit.Must(t, s.read.QueryRowContext(t.Context(), query).Scan(&n))
	return n
}

const orphans = `SELECT count(*) FROM gram_pages p WHERE NOT EXISTS (
  SELECT 1 FROM gram_segments s WHERE s.owner = p.owner AND s.id = p.segment AND s.level >= 0)`

var errKilled = errors.New("killed")

// killed is a database that does not write any more after some writes, as if the process had been killed.
type killed struct {
	database
	left int
}

func (k *killed) Write(ctx context.Context, how sqlstore.How, fn func(sqlstore.Dialect) error) error {
	if k.left--; k.left < 0 {
		return errKilled
	}
	return k.database.Write(ctx, how, fn)
}

// TestMergeKilled: whenever a merge is killed, a search finds each line once, and the next merge ends what was begun
// and leaves nothing behind.
func TestMergeKilled(t *testing.T) {
	s := openTexts(t)
	texts, want := make([]string, 40), []int64(nil)
	for i := range texts {
		texts[i] = fmt.Sprintf("the needle number %d with some words that are all its own: %x", i, i*i*7919)
		want = append([]int64{int64(i)}, want...)
	}
	say(t, s, 1, "s", texts...)
	n := count(t, s, `SELECT count(*) FROM gram_segments`)
	kit.Require(t, n == len(texts), "%d segments", n)
	for n, done := 0, false; !done; n++ {
		x := index(s, &killed{of(s), n})
		err := x.Merge(t.Context(), 1)
		done = err == nil
		kit.Require(t, done || errors.Is(err, errKilled), "%v", err)
		got := foundLines(t, s, "needle")
		kit.Require(t, slices.Equal(got, want), "killed before write %d: found lines %v", n, got)
		kit.Try(s.conn.ExecContext(t.Context(), `UPDATE gram_segments SET until = 0`)).Must(t)
	}
	n = count(t, s, `SELECT count(*) FROM gram_segments`)
	kit.Check(t, n < 16, "%d segments are left", n)
	kit.Equal(t, "pages belong to no segment", count(t, s, orphans), 0)
	kit.Equal(t, "found lines", len(foundLines(t, s, `"number 17 with"`)), 1)
}

// TestForgottenLeaves: nothing of a forgotten session is left in the index, and the rest is found.
func TestForgottenLeaves(t *testing.T) {
	s := openTexts(t)
	say(t, s, 1, "kept", "a word that stays")
	say(t, s, 1, "gone", "a word that goes", "xylophone")
	x := index(s, of(s))
	kit.Try(s.Forget(t.Context(), everyone, "gone", 1, time.Now())).Must(t)
	kit.Equal(t, "found lines", len(foundLines(t, s, "xylophone")), 0)
	kit.Must(t, x.Purge(t.Context()))
	kit.Equal(t, "found lines", len(foundLines(t, s, "word")), 1)
	rows := kit.Try(s.read.QueryContext(t.Context(), `SELECT data FROM gram_segments`)).Must(t)
	defer rows.Close()
	for rows.Next() {
		var data []byte
		kit.Must(t, rows.Scan(&data))
		kit.Equal(t, "the index knows it", kit.Try(search.Holds(data, "xylo")).Must(t), false)
	}
	kit.Must(t, rows.Err())
	kit.Equal(t, "notes are left", count(t, s, `SELECT count(*) FROM gram_purges`), 0)
}

// TestSavedTogether: texts of several sessions that are stored at once are one segment for each owner, and those of one
// session can be derived again, or forgotten, without the others.
func TestSavedTogether(t *testing.T) {
	s := openTexts(t)
	say(t, s, 1, "again", "a word of before")
	lines := map[string]server.Line{}
	for session, owner := range map[string]int64{"again": 1, "second": 1, "gone": 1, "other": 2} {
		lines[session] = putText(t, s, owner, session, 0, "common "+session)
	}
	tasks, err := s.Lagging(t.Context(), 10)
	kit.Require(t, err == nil && len(tasks) == len(lines), "%v %v", tasks, err)
	before := count(t, s, `SELECT count(*) FROM gram_segments`)
	derived := make([]*server.Derivation, len(tasks))
	for i := range tasks {
		derived[i] = derivationOf(t, s, tasks[i], lines[tasks[i].SessionID])
	}
	kit.Must(t, s.SaveDerived(t.Context(), derived...))
	kit.Equal(t, "segments of 2 owners", count(t, s, `SELECT count(*) FROM gram_segments`)-before, 2)
	found := func(text string, want int) {
		t.Helper()
		kit.Equal(t, text+": found lines", len(foundLines(t, s, text)), want)
	}
	found("before", 0)
	found("common", 4)
	kit.Try(s.Forget(t.Context(), everyone, "gone", 1, time.Now())).Must(t)
	kit.Must(t, index(s, of(s)).Purge(t.Context()))
	found("common", 3)
	found("gone", 0)
}

// counting counts the rows that searches read.
type counting struct {
	database
	rows int
}

func (c *counting) Read(ctx context.Context, fn func(sqlstore.Dialect) error) error {
	return c.database.Read(ctx, func(d sqlstore.Dialect) error { return fn(countingDialect{d, c}) })
}

type countingDialect struct {
	sqlstore.Dialect
	of *counting
}

func (d countingDialect) Query(ctx context.Context, query string, args []any, row func(sqlstore.Scanner) error) error {
	return d.Dialect.Query(ctx, query, args, func(r sqlstore.Scanner) error {
		d.of.rows++
		return row(r)
	})
}

// TestCostIsOwn: how much a member's search reads does not depend on what others have.
func TestCostIsOwn(t *testing.T) {
	s := openTexts(t)
	say(t, s, 1, "mine", "a needle", "hay", "another needle")
	c := &counting{database: of(s)}
	x := index(s, c)
	cost := func(text string) int {
		c.rows = 0
		hits, err := x.Search(t.Context(), server.Scope{User: 1}, server.SearchQuery{Text: text, Limit: 10})
		kit.Require(t, err == nil && len(hits.List) == 2, "%q: %d hits, %v", text, len(hits.List), err)
		return c.rows
	}
	words := []string{"needle", "ne", "d"}
	before := map[string]int{}
	for _, w := range words {
		before[w] = cost(w)
	}
	for i := range 5 {
		var texts []string
		for k := range 10 {
			texts = append(texts, fmt.Sprintf("needle %d.%d", i, k))
		}
		say(t, s, int64(2+i), fmt.Sprint("theirs", i), texts...)
	}
	for _, w := range words {
		kit.Equal(t, w+": rows read", cost(w), before[w])
	}
}

// TestTinyBudget: a search that may read next to nothing a page finds each line once and newest first, over more pages,
// also lines of one moment, and also where a page finds nothing.
func TestTinyBudget(t *testing.T) {
	s := openTexts(t)
	texts := func(hay int) (list []string) {
		for i := range 30 {
			text := fmt.Sprint("needle ", i)
			if i%9 != 0 {
				text = fmt.Sprint("need eedl edle ", i) // all of its parts
			}
			list = append(list, text+strings.Repeat(" hay", hay))
		}
		return list
	}
	say(t, s, 1, "a", texts(350)...) // two or three of them make a doc
	say(t, s, 1, "b", texts(550)...) // at the same times, but their docs begin elsewhere
	var want []string
	for i := 27; i >= 0; i -= 9 {
		want = append(want, fmt.Sprint("b", i), fmt.Sprint("a", i))
	}
	for _, when := range []string{"before segments are merged", "after"} {
		for _, budget := range []int{0, 1000, 100_000_000} {
			got, cut, empty := walk(t, search.NewWithin(of(s), s.lines, &s.Finder, search.Bounds{Bytes: budget}))
			kit.Equal(t, fmt.Sprintf("%s, with %d bytes a page: found", when, budget), got, want)
			kit.Equal(t, fmt.Sprintf("%s, with %d bytes a page: %d pages ended early", when, budget, cut), (cut > 0),
				(budget < 100_000_000))
			kit.Check(t, budget != 0 || empty != 0, "%s: no page found nothing", when)
		}
		kit.Must(t, index(s, of(s)).Merge(t.Context(), 1))
	}
}

// walk goes through all pages of a search: what it finds, how many of them ended early, and how many found nothing.
func walk(t *testing.T, x *search.Index) (found []string, cut, empty int) {
	t.Helper()
	q := server.SearchQuery{Text: "needle", Limit: 4}
	for range 500 {
		hits := kit.Try(x.Search(t.Context(), everyone, q)).Must(t)
		found = append(found, kit.Each(hits.List, func(h server.Hit) string { return fmt.Sprint(h.Session.SessionID, h.Line) })...)
		if hits.More {
			cut++
		}
		if len(hits.List) == 0 && hits.Next != "" {
			empty++
		}
		if q.After = hits.Next; q.After == "" {
			return found, cut, empty
		}
	}
	t.Fatal("the search does not end")
	return nil, 0, 0
}

// TestLiveSession: of a session whose lines are derived one by one few segments are left, without anybody asking for
// that, and each line is found.
func TestLiveSession(t *testing.T) {
	s := kit.Try(Open(t.Context(), t.TempDir()+"/server.db", sqlstore.Opening{})).Must(t)
	t.Cleanup(func() { _ = s.Close() })
	const lines = 200
	var texts []string
	for i := range lines {
		texts = append(texts, fmt.Sprintf("the needle number %d, with words of its own: %x", i, i*i*7919))
	}
	say(t, s, 1, "live", texts...)
	n := lines
	for end := time.Now().Add(2 * time.Minute); n >= 24 && time.Now().Before(end); {
		select {
		case <-t.Context().Done():
		case <-time.After(10 * time.Millisecond):
		}
		n = count(t, s, `SELECT count(*) FROM gram_segments`)
	}
	t.Logf("%d segments, %d pages", n, count(t, s, `SELECT count(*) FROM gram_pages`))
	kit.Check(t, n < 24, "%d segments of %d lines are left", n, lines)
	kit.Equal(t, "lines found", len(foundLines(t, s, "needle")), lines)
}
