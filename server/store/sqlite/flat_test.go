package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store/sqlstore"
)

// counter counts what is asked of a database, and keeps how it is answered.
type counter struct {
	dialect
	t          *testing.T
	statements int
	rows       int
	plans      []string
}

func (c *counter) Query(ctx context.Context, query string, args []any, row func(sqlstore.Scanner) error) error {
	c.statements++
	kit.Must(c.t, c.dialect.Query(ctx, "EXPLAIN QUERY PLAN "+query, args, func(row sqlstore.Scanner) error {
		var n sql.RawBytes
		var step string
		err := row.Scan(&n, &n, &n, &step)
		c.plans = append(c.plans, step)
		return err
	}))
	return c.dialect.Query(ctx, query, args, func(x sqlstore.Scanner) error {
		c.rows++
		return row(x)
	})
}

// counted is a database whose reads are counted.
type counted struct {
	database
	counter *counter
}

func (c counted) Read(ctx context.Context, fn func(sqlstore.Dialect) error) error {
	return c.database.Read(ctx, func(d sqlstore.Dialect) error {
		c.counter.dialect = d.(dialect) //nolint:forcetypeassert // database has no other
		return fn(c.counter)
	})
}

func usage(d counted) *sqlstore.Finder {
	f := sqlstore.NewFinder(d.counter, selectSession)
	return &f
}

// grown is a store with some users, each with a session of another day that was rewritten.
func grown(t *testing.T, users int) *Store {
	t.Helper()
	s := openTexts(t)
	var group sync.WaitGroup
	for i := range users {
		group.Go(func() {
			u, err := s.AddUser(t.Context(), fmt.Sprint("user", i), server.Member, server.By{At: said})
			if err != nil {
				t.Error(err)
				return
			}
			putText(t, s, u.ID, fmt.Sprint("s", i), 0, "needle")
		})
	}
	group.Wait()
	tasks, err := s.Lagging(t.Context(), users)
	kit.Require(t, err == nil && len(tasks) == users, "%v %v", len(tasks), err)
	var all []*server.Derivation
	for i, task := range tasks {
		d := derivationOf(t, s, task, server.Line{Raw: []byte(`{"type":"user","message":{"role":"user","content":"needle"}}`)})
		for k := range d.Texts {
			d.Texts[k].Time = said.AddDate(0, 0, -i)
		}
		at := said.Add(time.Duration(i) * time.Second) // one half hour, whatever the number of users
		d.Answers = []server.Answer{{Key: "k", Model: "m", Time: at, Tokens: server.Tokens{Answers: 1, Input: 1}}}
		d.Drops = []server.Rewrite{{Epoch: d.Position.Epoch, First: 0, Last: 1, Lines: 1}}
		all = append(all, d)
	}
	kit.Must(t, s.SaveDerived(t.Context(), all...))
	for more := true; more; {
		more = kit.Try(s.SumUp(t.Context())).Must(t)
	}
	return s
}

// wholly is a step of a plan that reads a whole table of users or of what they have.
var wholly = regexp.MustCompile(`^SCAN (users|s|streams|a|answers|d|drops|gram_segments|usage_sums)\b`)

// TestFlat: answers to who sees everything, and to a member, take as many statements and rows with many users as with
// some, and no statement reads a whole table that grows with users.
func TestFlat(t *testing.T) {
	few, many := grown(t, 40), grown(t, 120)
	member := server.Scope{User: 30}
	find := func(s *Store) []server.FoundSession {
		found := kit.Try(s.Find(t.Context(), everyone, server.SessionQuery{Page: server.Page{Limit: 5, Recent: true}})).Must(t)
		return found.List
	}
	for _, c := range []struct {
		name string
		scan bool // it reads the beginning of a table, or of an index
		ask  func(d counted, s *Store) (int, error)
	}{
		{"the newest hits", true, func(d counted, s *Store) (int, error) {
			h, err := index(s, d).Search(t.Context(), everyone, server.SearchQuery{Text: "needle", Limit: 5})
			return len(h.List), err
		}},
		{"hits of two characters", true, func(d counted, s *Store) (int, error) {
			h, err := index(s, d).Search(t.Context(), everyone, server.SearchQuery{Text: "ne", Limit: 5})
			return len(h.List), err
		}},
		{"a member's hits", false, func(d counted, s *Store) (int, error) {
			h, err := index(s, d).Search(t.Context(), member, server.SearchQuery{Text: "needle", Limit: 5})
			return len(h.List), err
		}},
		{"a member's sessions of a machine, ranked", false, func(d counted, s *Store) (int, error) {
			r, err := index(s, d).Rank(t.Context(), member, server.RankQuery{Query: server.ParseQuery("needle machine:m", said), Limit: 5})
			return len(r.List), err
		}},
		{"names of users", false, func(d counted, s *Store) (int, error) {
			p := sqlstore.NewPeople(d)
			names, err := p.UserNames(t.Context(), []int64{3, 17, 5})
			return len(names), err
		}},
		{"rewrites", true, func(d counted, s *Store) (int, error) {
			c := sqlstore.NewFinder(d.counter, selectSession)
			x, err := c.Dropped(t.Context(), everyone, find(s), 10)
			return int(x.Count), err
		}},
		{"a member's rewrites", false, func(d counted, s *Store) (int, error) {
			c := sqlstore.NewFinder(d.counter, selectSession)
			x, err := c.Dropped(t.Context(), member, find(s), 10)
			return int(x.Count), err
		}},
		{"usage by day", true, func(d counted, s *Store) (int, error) {
			rows, err := usage(d).Usage(t.Context(), everyone, server.UsageQuery{By: []string{"day"},
				Since: said.AddDate(0, -1, 0).Truncate(24 * time.Hour)})
			return len(rows), err
		}},
		{"a member's usage, from within a half hour on", false, func(d counted, s *Store) (int, error) {
			rows, err := usage(d).Usage(t.Context(), member, server.UsageQuery{By: []string{"day"},
				Since: said.AddDate(0, -1, 0).Add(time.Minute)})
			return len(rows), err
		}},
		{"projects", true, func(d counted, s *Store) (int, error) {
			g, err := sqlstore.NewSums(d).Groups(t.Context(), everyone, server.GroupQuery{Limit: 5})
			return len(g.List), err
		}},
	} {
		count := func(s *Store) (*counter, int) {
			x := &counter{t: t, dialect: dialect{s.read}}
			n, err := c.ask(counted{database{x, s}, x}, s)
			kit.Require(t, err == nil && n != 0, "%s: %d, %v", c.name, n, err)
			return x, n
		}
		a, n := count(few)
		b, m := count(many)
		kit.Check(t, a.statements == b.statements && a.rows == b.rows && n == m,
			"%s: %d statements, %d rows, an answer of %d; with more users %d, %d, %d", c.name, a.statements, a.rows, n, b.statements, b.rows, m)
		for _, step := range b.plans {
			kit.Check(t, !wholly.MatchString(step) || c.scan && (strings.Contains(step, "INDEX") || step == "SCAN d"),
				"%s: %s", c.name, step)
		}
	}
}

// TestPanicRollsBack: what panicked is undone, and others write.
func TestPanicRollsBack(t *testing.T) {
	s := openTexts(t)
	func() {
		defer func() { kit.Check(t, recover() != nil, "the panic does not go on") }()
		_ = s.withWriter(t.Context(), func(c *sql.Conn) error {
			kit.Try(c.ExecContext(t.Context(), `INSERT INTO leases (name, holder, until) VALUES ('x', '', 7)`)).Should(t)
			panic("a mistake")
		})
	}()
	putText(t, s, 1, "s", 0, "a")
	var n int
	err := s.read.QueryRowContext(t.Context(), `SELECT count(*) FROM leases`).Scan(&n)
	kit.Check(t, err == nil && n == 0, "%d rows of what panicked, %v", n, err)
}

// explained keeps how statements are run.
type explained struct {
	dialect
	plan []string
}

func (e *explained) Exec(ctx context.Context, query string, args ...any) (int64, error) {
	err := e.dialect.Query(ctx, "EXPLAIN QUERY PLAN "+query, args, func(row sqlstore.Scanner) error {
		var n any
		var step string
		err := row.Scan(&n, &n, &n, &step)
		e.plan = append(e.plan, step)
		return err
	})
	if err != nil {
		return 0, err
	}
	return e.dialect.Exec(ctx, query, args...)
}

// TestAnswersByKey: saving and removing answers reads those with the same keys, never all of their owner.
func TestAnswersByKey(t *testing.T) {
	s := openTexts(t)
	putText(t, s, 1, "s", 0, "a")
	err := of(s).Write(t.Context(), 0, func(d sqlstore.Dialect) error {
		e := &explained{dialect: d.(dialect)} //nolint:forcetypeassert // database has no other
		x := &server.Derivation{Task: server.Task{Owner: 1, Stream: 1}}
		for i := range 20 {
			x.Answers = append(x.Answers, server.Answer{Key: fmt.Sprint(i), Time: time.Unix(1, 0)})
		}
		if err := sqlstore.SaveAnswers(t.Context(), e, 1, []*server.Derivation{x}); err != nil {
			return err
		}
		if err := sqlstore.RemoveAnswers(t.Context(), e, sqlstore.OwnedStream{Stream: 1, Owner: 1}); err != nil {
			return err
		}
		for _, step := range e.plan {
			kit.Check(t, !strings.HasSuffix(step, "(owner=?)") && step != "SCAN n" && step != "SCAN a" && step != "SCAN o",
				"a step is: %s", step)
		}
		kit.Check(t, len(e.plan) >= 5, "steps are %q", e.plan)
		return nil
	})
	kit.Must(t, err)
}

// TestLaggingByOwner: of what is to derive whole, the newest stream is handed out first, and others of its owner with it.
func TestLaggingByOwner(t *testing.T) {
	s := openTexts(t)
	for i := range 12 { // the newest is the last one, of owner 3
		b := &server.Batch{Owner: int64(1 + i%3), Received: said.Add(time.Duration(i) * time.Second),
			Lines: []server.Line{{Raw: []byte(`{}`)}}, Head: server.Head{SessionID: fmt.Sprint(i), Machine: "m", EndLine: 1}}
		kit.Must(t, s.Put(t.Context(), b))
	}
	for _, want := range [][]string{{"11", "8", "5", "2", "10", "7"}, {"9", "6", "3", "0", "4", "1"}} {
		tasks := kit.Try(s.Lagging(t.Context(), 6)).Must(t)
		got := kit.Each(tasks, func(task server.Task) string { return task.SessionID })
		kit.Equal(t, "sessions", got, want)
	}
}

// TestUnsummed: a stream that sums do not have as it is stays marked while it is written, and is marked again by the
// first write after it was summed up.
func TestUnsummed(t *testing.T) {
	s := openTexts(t)
	summed := func() (n int64) {
		kit.Must(t, s.read.QueryRowContext(t.Context(), `SELECT summed FROM streams`).Scan(&n))
		return n
	}
	for i, want := range []int64{1, 3} {
		putText(t, s, 1, "s", int64(2*i), "a")
		kit.Check(t, summed() == -1, "after a write summed is %d", summed())
		if i > 0 {
			putText(t, s, 1, "s", 1, "b")
		}
		kit.Try(s.SumUp(t.Context())).Must(t)
		kit.Equal(t, "summed", summed(), want)
	}
}
