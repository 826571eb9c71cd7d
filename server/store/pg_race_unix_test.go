//go:build unix

package store_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store"
	"github.com/ccship/ccship/server/store/pgtest"
	"github.com/ccship/ccship/server/store/postgres"
)

// TestPostgresForgetRace: a session is forgotten on one server while its lines come in on another. Afterwards it is not
// there, whatever came first.
func TestPostgresForgetRace(t *testing.T) {
	url := pgtest.Shared(t).Database(t)
	here, there := openPostgres(t, url), openPostgres(t, url)
	for round := range 15 {
		session := fmt.Sprint("s", round)
		var wg sync.WaitGroup
		put(t, here, batch(session, object(0, "x")))
		for w := range 6 {
			wg.Go(func() {
				for i := int64(0); ; i++ {
					b := batch(session, object(i, "x"))
					b.Head.Machine = fmt.Sprint("m", w, i%7) // new streams all the time
					switch err := there.Put(t.Context(), b); {
					case errors.Is(err, server.ErrForgotten):
						return
					case err != nil:
						t.Error(err)
						return
					}
				}
			})
		}
		kit.Try(here.Forget(t.Context(), all, session, 0, start)).Should(t)
		wg.Wait()
		if snap, err := here.Open(t.Context(), server.Ref{SessionID: session}); !errors.Is(err, server.ErrNotFound) {
			t.Errorf("round %d: forgotten, but there (%v)", round, err)
			if err == nil {
				snap.Close()
			}
		}
	}
}

// TestPostgresAnswersOnce: two servers derive two copies of the same answers at once; each answer is counted once.
func TestPostgresAnswersOnce(t *testing.T) {
	url := pgtest.Shared(t).Database(t)
	servers := []*postgres.Store{openPostgres(t, url), openPostgres(t, url)}
	put(t, servers[0], batch("a", object(0, "x")))
	put(t, servers[0], batch("b", object(0, "x")))
	tasks, err := servers[0].Lagging(t.Context(), 2)
	kit.Require(t, err == nil && len(tasks) == 2, "%v, %v", tasks, err)
	const rounds, answers = 8, 400
	for round := range rounds {
		var wg sync.WaitGroup
		for i, s := range servers {
			wg.Go(func() {
				d := &server.Derivation{Task: tasks[i], Position: server.Position{Epoch: 1, Line: int64(round + 1)}}
				for k := range answers {
					d.Answers = append(d.Answers, server.Answer{Key: fmt.Sprint(round, "-", k), Time: start, Tokens: server.Tokens{Answers: 1, Output: 1}})
				}
				kit.Should(t, s.SaveDerived(t.Context(), d))
				tasks[i].Position = d.Position
			})
		}
		wg.Wait()
	}
	rows, err := servers[0].Usage(t.Context(), all, server.UsageQuery{})
	kit.Check(t, err == nil && len(rows) == 1 && rows[0].Tokens.Answers == rounds*answers, "counted %+v, %v; want %d",
		rows, err, rounds*answers)
}

// TestPostgresLeasesRace: many derivers on two servers ask at once; no stream is handed out twice.
func TestPostgresLeasesRace(t *testing.T) {
	url := pgtest.Shared(t).Database(t)
	servers := []*postgres.Store{openPostgres(t, url), openPostgres(t, url)}
	const streams = 40
	for i := range streams {
		b := batch(fmt.Sprint("s", i), object(0, "x"))
		b.Received = start.Add(time.Duration(i) * time.Second)
		put(t, servers[0], b)
	}
	var mu sync.Mutex
	taken := map[int64]int{}
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			for {
				tasks, err := servers[n%2].Lagging(t.Context(), 3)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				for _, task := range tasks {
					taken[task.Stream]++
				}
				enough := len(taken) == streams // one that others look at is passed over
				mu.Unlock()
				if enough {
					return
				}
			}
		})
	}
	wg.Wait()
	for stream, n := range taken {
		kit.Equal(t, fmt.Sprintf("stream %d was handed out times", stream), n, 1)
	}
}

// TestPostgresSealLater: lines of a stream that another worker has when it is to be packed are packed at the next pass,
// though nothing comes to it any more.
func TestPostgresSealLater(t *testing.T) {
	url := pgtest.Shared(t).Database(t)
	st := openPostgres(t, url)
	put(t, st, batch("s", object(0, "x")))
	db := kit.Try(sql.Open("pgx", url)).Must(t)
	defer db.Close()
	other := kit.Try(db.BeginTx(t.Context(), nil)).Must(t)
	kit.Try(other.ExecContext(t.Context(), `SELECT id FROM streams FOR UPDATE`)).Must(t)
	kit.Equal(t, "blocks of a stream that another has", seal(t, st, endOfTime), 0)
	kit.Must(t, other.Commit())
	kit.Equal(t, "blocks", seal(t, st, endOfTime), 1)
}

// TestPostgresKeptMeanwhile: a star, a link or a hold that is set while rules remove lines is there before, and they
// remove nothing, or after.
func TestPostgresKeptMeanwhile(t *testing.T) {
	url := pgtest.Shared(t).Database(t)
	var set func() error // while rules are at the step
	var waits func() bool
	ended := make(chan error, 1)
	st := openPostgresWith(t, url, store.Opening{Step: func(name string) error {
		if name != "retire what nothing keeps" || set == nil {
			return nil
		}
		keep := set
		set = nil
		go func() { ended <- keep() }()
		for end := time.Now().Add(10 * time.Minute); !waits() && time.Now().Before(end); <-time.After(5 * time.Millisecond) {
			select {
			case err := <-ended:
				ended <- err
				return errors.Join(errors.New("it is set although the session is being removed"), err)
			default:
			}
		}
		return nil
	}})
	other := openPostgres(t, url)
	conn := kit.Try(pgx.Connect(t.Context(), url)).Must(t)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	waits = func() bool {
		var n int
		err := conn.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&n)
		return err != nil || n > 0
	}
	ann := addUser(t, st, "ann", server.Owner)
	addRule(t, st, server.RetentionRule{What: server.RetireSessions, Age: day})
	for name, keep := range map[string]func(id int64) error{
		"star": func(id int64) error { return other.SetMark(t.Context(), ann.ID, server.Mark{Stream: id, Star: true}) },
		"link": func(id int64) error {
			_, err := other.AddShareLink(t.Context(), server.ShareLink{Stream: id, By: ann, Created: later, Until: later.Add(day)})
			return err
		},
		"hold": func(int64) error {
			_, err := other.AddHold(t.Context(), server.Hold{Session: "x", By: "ann", Why: "a case", At: later})
			return err
		},
	} {
		b := batch(name, prose(0, 20, 500)...)
		agent := batch(name+"/agent-1", prose(0, 20, 500)...)
		b.Owner, agent.Owner = ann.ID, ann.ID
		put(t, st, b)
		put(t, st, agent)
		id := idOf(t, st, name)
		set = func() error { return keep(id) }
		kit.Err(t, name, nil)(st.Retire(t.Context(), server.RetireOptions{By: "ann", Now: later}))
		err := <-ended
		kit.Check(t, err == nil, "%s: %v", name, err)
	}
}

// TestPostgresKeptBefore: a star, a link or a hold whose transaction is under way when rules are applied for the first
// time keeps its session.
func TestPostgresKeptBefore(t *testing.T) {
	for table, keep := range map[string]func(*postgres.Store, int64, server.User) error{
		"marks": func(st *postgres.Store, id int64, who server.User) error {
			return st.SetMark(t.Context(), who.ID, server.Mark{Stream: id, Star: true})
		},
		"share_links": func(st *postgres.Store, id int64, who server.User) error {
			_, err := st.AddShareLink(t.Context(), server.ShareLink{Stream: id, By: who, Created: later, Until: later.Add(day)})
			return err
		},
		"retention_holds": func(st *postgres.Store, _ int64, who server.User) error {
			_, err := st.AddHold(t.Context(), server.Hold{Session: "s", By: who.Name, Why: "a case", At: later})
			return err
		},
	} {
		t.Run(table, func(t *testing.T) {
			t.Parallel()
			keptBefore(t, table, keep)
		})
	}
}

func keptBefore(t *testing.T, table string, keep func(*postgres.Store, int64, server.User) error) {
	url := pgtest.Shared(t).Database(t)
	looked, kept := make(chan struct{}), make(chan struct{})
	var once sync.Once
	st := openPostgresWith(t, url, store.Opening{Step: func(name string) error {
		if name == "retire what nothing keeps" {
			once.Do(func() { close(looked) })
			<-kept
		}
		return nil
	}})
	ann := addUser(t, st, "ann", server.Owner)
	addRule(t, st, server.RetentionRule{What: server.RetireSessions, Age: day})
	put(t, st, batch("s", prose(0, 20, 500)...), func(b *server.Batch) { b.Owner = ann.ID })
	id := idOf(t, st, "s")
	conn := kit.Try(pgx.Connect(t.Context(), url)).Must(t)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	run := func(query string) { kit.Try(conn.Exec(t.Context(), query)).Should(t) }
	wait := func(most int) {
		for n := 0; n < most && t.Context().Err() == nil; {
			select {
			case <-looked:
				return
			case <-time.After(5 * time.Millisecond):
			}
			run(`SELECT pg_stat_clear_snapshot()`)
			if err := conn.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&n); err != nil {
				t.Error(err)
				return
			}
		}
	}
	other := openPostgres(t, url)
	run(`BEGIN`)
	run(`LOCK TABLE ` + table + ` IN EXCLUSIVE MODE`)
	go func() {
		defer close(kept)
		kit.Should(t, keep(other, id, ann))
	}()
	wait(1)
	let := make(chan struct{})
	go func() {
		defer close(let)
		wait(2)
		run(`COMMIT`)
	}()
	_, err := st.Retire(t.Context(), server.RetireOptions{By: "ann", Now: later})
	<-kept
	<-let
	marked := 1
	lost := conn.QueryRow(t.Context(), `SELECT count(*) FROM streams WHERE retired > 0`).Scan(&marked)
	got := len(dumpOf(t, st, "s"))
	kit.Check(t, err == nil && lost == nil && got == 20 && marked <= 0,
		"%d of 20 lines are left, %d sessions count as dropped: %v, %v", got, marked, err, lost)
}

// TestPostgresEpochsAtOnce: several servers get the first lines of a stream at the same time, of several epochs.
func TestPostgresEpochsAtOnce(t *testing.T) {
	url := pgtest.Shared(t).Database(t)
	servers := []*postgres.Store{openPostgres(t, url), openPostgres(t, url), openPostgres(t, url)}
	for round := range 15 {
		session := fmt.Sprint("s", round)
		var writers sync.WaitGroup
		for n := range 12 {
			writers.Go(func() {
				b := batch(session, object(0, "x"))
				b.Head.Epoch = fmt.Sprint("e", n)
				kit.Should(t, servers[n%len(servers)].Put(t.Context(), b))
			})
		}
		writers.Wait()
		opened(t, servers[0], session, func(snap server.Snapshot) {
			kit.Equal(t, session+" has epochs of 12", len(snap.Epochs()), 12)
		})
	}
}
