// Package postgres is a store in a PostgreSQL database, which several servers can use at once. Work that a failover
// interrupts is tried again; changes are announced to the other servers.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store/lines"
	"github.com/ccship/ccship/server/store/search"
	"github.com/ccship/ccship/server/store/sqlstore"
)

// Store is a store in a PostgreSQL database. Safe for concurrent use, also by several processes.
type Store struct {
	pool   *pgxpool.Pool
	direct *pgx.ConnConfig         // for what needs a session: the schema, listening
	pooled bool                    // pool leads to a pooler in transaction mode
	open   *sqlstore.SnapshotSlots // of snapshots
	doubt  doubts
	// patience is how long a group of batches is retried: pgPatience except in tests.
	patience time.Duration
	notes    []string
	*search.Index
	queue lines.Queue
	lines *lines.Lines
	*lines.Sealer
	*lines.Tier
	sqlstore.Artifacts
	lines.Masks
	sqlstore.Finder
	repositories sqlstore.Repositories
	*sqlstore.Sums
	sqlstore.Keeper
	lines.Policy
	sqlstore.People
	notices *notices
}

// Open opens the database that url names and brings its schema up to date; several processes may do so at once.
// Of several hosts it uses the one that accepts writes. An error that a person can fix is an *OpenError.
func Open(ctx context.Context, url string, how sqlstore.Opening) (*Store, error) {
	w, err := wayOf(url)
	if err != nil {
		return nil, err
	}
	s := &Store{notices: newNotices(), patience: pgPatience, pooled: w.pooled}
	if s.lines, err = lines.New(how.Step); err != nil {
		return nil, err
	}
	config, err := s.configure(w.url)
	if err != nil {
		return nil, err
	}
	direct, err := s.configure(w.direct)
	if err != nil {
		return nil, err
	}
	if s.direct = direct.ConnConfig; s.pooled {
		throughPooler(config)
	}
	most := int(config.MaxConns)
	s.open, s.queue = sqlstore.NewSnapshotSlots(max(1, most/2)), lines.NewQueue(max(1, most/4))
	if err := s.prepare(ctx, s.direct, how); err != nil {
		return nil, explain(err, s.direct)
	}
	if s.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return nil, explain(err, config.ConnConfig)
	}
	if err = errors.Join(s.lookPooled(ctx), s.build(ctx, how)); err != nil {
		s.pool.Close()
		return nil, explain(err, config.ConnConfig)
	}
	return s, nil
}

// build makes what runs on the database.
func (s *Store) build(ctx context.Context, how sqlstore.Opening) (err error) {
	db := database{dialect{s.pool}, s}
	if s.Tier, err = lines.OpenCold(ctx, db, s.lines, how); err != nil {
		return err
	}
	s.Sealer, s.Masks = lines.NewSealer(db, s.lines), lines.NewMasks(db, s.lines)
	s.People = sqlstore.NewPeople(db)
	s.find(db)
	s.Keeper = sqlstore.NewKeeper(db)
	s.Policy = lines.NewPolicy(db, s.lines, s.Tier)
	s.Artifacts, err = sqlstore.NewArtifacts(ctx, db, s.Tier)
	return err
}

// find makes what a replica answers too.
func (s *Store) find(db sqlstore.DB) {
	s.Finder, s.Sums = sqlstore.NewFinder(db, selectSession), sqlstore.NewSums(db)
	s.Index = search.New(db, s.lines, &s.Finder)
}

// lookPooled notes what a pooler's way lacks.
func (s *Store) lookPooled(ctx context.Context) error {
	if !s.pooled {
		return nil
	}
	lacking, err := lacksPooled(ctx, s.pool)
	s.notes = append(s.notes, lacking...)
	return err
}

// Close closes the store's connections. Puts and snapshots must have ended.
func (s *Store) Close() error {
	s.Index.Close()
	s.notices.stop()
	s.notices.running.Wait()
	s.pool.Close()
	return nil
}

// Notes returns, one line each, what the database lacks and what works less well because of that.
func (s *Store) Notes() []string { return s.notes }

// withTx runs fn in a transaction, and retries it if that can help; running fn twice must be harmless.
func (s *Store) withTx(ctx context.Context, fn func(pgx.Tx) error) error {
	return s.persist(ctx, func(ctx context.Context) error { return s.try(ctx, classIngest, fn) })
}

// inBackground is withTx for work that nobody waits for: it waits for others' locks less long at a time.
func (s *Store) inBackground(ctx context.Context, fn func(pgx.Tx) error) error {
	return s.persist(ctx, func(ctx context.Context) error { return s.try(ctx, classBackground, fn) })
}

// once is withTx for work that must not run twice: it gives up when it cannot know whether the work was done.
func (s *Store) once(ctx context.Context, fn func(pgx.Tx) error) error {
	ctx, cancel := context.WithTimeout(ctx, pgPatience)
	defer cancel()
	return s.persist(ctx, func(ctx context.Context) error {
		err := s.try(ctx, classIngest, fn)
		if c, ok := errors.AsType[*commitError](err); ok {
			if _, refused := errors.AsType[*pgconn.PgError](err); !refused {
				return &unsure{c}
			}
		}
		return err
	})
}

// try runs fn in a transaction, with the time limits of a class.
func (s *Store) try(ctx context.Context, c class, fn func(pgx.Tx) error) error {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer conn.Release()
	tx, err := conn.BeginTx(ctx, s.beginWrite(c))
	if err != nil {
		return fmt.Errorf("begin transaction: %w", err)
	}
	if err := fn(tx); err != nil {
		// A failure of the rollback does not matter: the connection is broken then, and the database rolls back by itself.
		_ = tx.Rollback(context.WithoutCancel(ctx))
		return err
	}
	if err := tx.Commit(ctx); err != nil {
		return &commitError{err}
	}
	if err := s.doubt.about(conn.Conn().PgConn()); err != nil {
		return &commitError{err}
	}
	return nil
}

// commitError means that a transaction may or may not be committed.
type commitError struct{ err error }

func (e *commitError) Error() string { return "commit transaction: " + e.err.Error() }
func (e *commitError) Unwrap() error { return e.err }

// unsure is a commitError that must not be retried.
type unsure struct{ err error }

func (e *unsure) Error() string { return "it may be done or not: " + e.err.Error() }
func (e *unsure) Unwrap() error { return e.err }

const (
	// pgConns is how many connections a server opens at most, one for listening apart; pool_max_conns in the URL says
	// otherwise. A quarter of them may write, half may be snapshots.
	pgConns = 16
	// connsLeast leaves a connection next to those of a writer and of snapshots, for the queries that a reader of a
	// snapshot makes meanwhile.
	connsLeast  = 4
	connTimeout = 5 * time.Second
	// A host that is gone without a word is noticed after idle + count × interval.
	keepIdle, pgKeepInterval, pgKeepCount = 10 * time.Second, 5 * time.Second, 3
)

// limits returns the settings of a connection, or with SET LOCAL of a transaction, for work of a class. Reading a whole
// stream lifts the limit for itself. A database that says "acknowledged" before its log is on disk has to wait
// for it.
func limits(c class, set, local string) string {
	return c.set(set) + `; ` + set + ` idle_in_transaction_session_timeout = '10min'; ` + set + ` TimeZone = 'UTC';
SELECT set_config('synchronous_commit', 'on', ` + local + `) WHERE current_setting('synchronous_commit') = 'off'`
}

// Check returns the sqlstore.ErrBadURL that Open would return, and connects to nothing.
func Check(url string) error {
	w, err := wayOf(url)
	if err != nil {
		return err
	}
	for _, url := range []string{w.url, w.direct} {
		if _, err := pgxpool.ParseConfig(url); err != nil {
			return badURL(err)
		}
	}
	return nil
}

// configure reads a URL and adds what every connection has.
func (s *Store) configure(url string) (*pgxpool.Config, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, badURL(err)
	}
	if !strings.Contains(url, "pool_max_conns") {
		config.MaxConns = pgConns
	}
	config.MaxConns = max(config.MaxConns, connsLeast)
	c := config.ConnConfig
	if c.ConnectTimeout == 0 {
		c.ConnectTimeout = connTimeout
	}
	if c.RuntimeParams["application_name"] == "" {
		c.RuntimeParams["application_name"] = nameServer
	}
	wanted := c.ValidateConnect
	if wanted == nil { // a standby takes no lines, alone or among others
		wanted = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	c.ValidateConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
		if err := wanted(ctx, conn); err != nil {
			if _, said := errors.AsType[*pgconn.PgError](err); said || again(err) {
				return err
			}
			return noWritesError{err}
		}
		return nil
	}
	dialer := &net.Dialer{KeepAliveConfig: net.KeepAliveConfig{
		Enable: true, Idle: keepIdle, Interval: pgKeepInterval, Count: pgKeepCount,
	}}
	c.DialFunc = dialer.DialContext
	c.AfterConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
		_, err := conn.Exec(ctx, limits(classPage, "SET", inConnection)).ReadAll()
		return err
	}
	// A reader who has left is no reason to go on searching: the query is cancelled, not only its connection closed.
	c.BuildContextWatcherHandler = func(conn *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.CancelRequestContextWatcherHandler{Conn: conn, DeadlineDelay: 2 * time.Second}
	}
	c.OnNotice = s.doubt.notice
	config.BeforeClose = func(conn *pgx.Conn) { s.doubt.forget(conn.PgConn()) }
	return config, nil
}

// noWritesError refuses a database that takes no writes, as PostgreSQL itself does.
type noWritesError struct{ error }

// SQLState is that of a transaction that may only read: it passes once there is a primary again.
func (noWritesError) SQLState() string { return "25006" }

// doubts remembers connections whose last commit is on this machine's disk but maybe on no standby's: when the wait
// for a synchronous standby is cut short, PostgreSQL answers with success and a warning.
type doubts struct{ conns sync.Map }

// errDoubt asks for another try, which waits again for what the first has written.
var errDoubt = errors.New("the commit was not confirmed by the standby")

func (d *doubts) notice(conn *pgconn.PgConn, n *pgconn.Notice) {
	if n.SeverityUnlocalized == "WARNING" && n.Code == "01000" {
		d.conns.Store(conn, true)
	}
}

// about answers errDoubt when a warning came since it was last asked.
func (d *doubts) about(conn *pgconn.PgConn) error {
	if _, warned := d.conns.LoadAndDelete(conn); warned {
		return errDoubt
	}
	return nil
}

func (d *doubts) forget(conn *pgconn.PgConn) { d.conns.Delete(conn) }

// class is a kind of work with its time limits: how long a statement may run, and how long it may wait for a lock.
type class struct{ statement, lock time.Duration }

// The classes. What a person waits for ends before the person has left; what repeats by itself may take longer, but
// holds nothing up for long. Searches, sums and lists have a shorter limit yet, in package limit.
var (
	// classPage is every read that is not one of the others. It takes no locks but those of reading.
	classPage = class{30 * time.Second, 5 * time.Second}
	// classIngest is what daemons send: a transaction is tried again for as long as a daemon waits for its answer.
	classIngest = class{60 * time.Second, 20 * time.Second}
	// classBackground is deriving, forgetting and masking. They lock a stream's row as ingest does, and give up sooner.
	classBackground = class{5 * time.Minute, 5 * time.Second}
	// classBarrier takes a lock that all storing meets, for one small write: what waits for the lock holds others up.
	classBarrier = class{5 * time.Second, time.Second}
)

// set returns the statements that give a connection (SET) or a transaction (SET LOCAL) the limits.
func (c class) set(how string) string {
	return fmt.Sprintf(`%s statement_timeout = %d; %s lock_timeout = %d`,
		how, c.statement.Milliseconds(), how, c.lock.Milliseconds())
}

// Sizes implements server.Sizer: the whole database, whatever else is in it.
func (s *Store) Sizes(ctx context.Context) (server.Sizes, error) {
	var out server.Sizes
	err := s.pool.QueryRow(ctx, `SELECT pg_database_size(current_database()), (SELECT count(*) FROM streams)`).
		Scan(&out.Bytes, &out.Streams)
	return out, sqlstore.Wrap(err, "measure store")
}
