package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store/sqlstore"
)

// database implements sqlstore.DB.
type database struct {
	sqlstore.Dialect
	s *Store
}

// Read implements sqlstore.DB.
func (b database) Read(ctx context.Context, fn func(sqlstore.Dialect) error) error {
	conn, err := b.s.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	_, err = conn.Exec(ctx, `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY`, pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		return err
	}
	err = fn(dialect{conn})
	_, end := conn.Exec(context.WithoutCancel(ctx), `ROLLBACK`)
	if err != nil {
		return err // a connection that is broken fails to roll back too
	}
	return end
}

// Write implements sqlstore.DB. PostgreSQL keeps removed bytes in its files until it vacuums.
func (b database) Write(ctx context.Context, how sqlstore.How, fn func(sqlstore.Dialect) error) error {
	return b.s.Tier.Retry(ctx, func() error {
		return b.s.writeAs(ctx, how, func(tx pgx.Tx) error { return fn(dialect{tx}) })
	})
}

// writeAs runs fn in a transaction. Masking may take as long as it takes.
func (s *Store) writeAs(ctx context.Context, how sqlstore.How, fn func(pgx.Tx) error) error {
	if how&sqlstore.Once != 0 {
		return translate(s.once(ctx, fn))
	}
	if how != sqlstore.Erase {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, pgPatience)
		defer cancel()
	}
	run, begin := s.inBackground, []string(nil)
	switch {
	case how == 0:
		run, begin = s.withTx, []string{byKey, shareForgotten}
	case how&sqlstore.Erase != 0:
		begin = []string{byKey}
	}
	if how&sqlstore.Lazy != 0 { // for the disk nor for a standby
		begin = append(begin, `SET LOCAL synchronous_commit = off`)
	}
	return run(ctx, func(tx pgx.Tx) error {
		batch := &pgx.Batch{}
		for _, query := range begin {
			batch.Queue(query)
		}
		if err := tx.SendBatch(ctx, batch).Close(); err != nil {
			return fmt.Errorf("begin transaction: %w", err)
		}
		return fn(tx)
	})
}

// Tell implements sqlstore.DB.
func (b database) Tell(c server.Change) {
	b.s.begin()
	b.s.notices.tell(c)
}

// Snapshots implements sqlstore.DB: their numbers are those of transactions. It knows of all servers on the database,
// and of replicas that send feedback.
func (b database) Snapshots(ctx context.Context) (oldest, next int64, err error) {
	err = b.s.pool.QueryRow(ctx, `
SELECT n - coalesce((SELECT max(age(backend_xmin)) FROM pg_stat_activity
  WHERE backend_xmin IS NOT NULL AND pid <> pg_backend_pid()
  AND (datname = current_database() AND backend_type = 'client backend' OR backend_type = 'walsender')), 0), n
FROM (SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint AS n) s`).Scan(&oldest, &next)
	return oldest, next, sqlstore.Wrap(err, "look for snapshots")
}

// dialect is the dialect of PostgreSQL.
type dialect struct {
	db interface {
		Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
		Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	}
}

func (l dialect) Exec(ctx context.Context, query string, args ...any) (int64, error) {
	query, args = numbered(query, args)
	tag, err := l.db.Exec(ctx, query, args...)
	return tag.RowsAffected(), err
}

func (l dialect) Query(ctx context.Context, query string, args []any, row func(sqlstore.Scanner) error) error {
	query, args = numbered(query, args)
	rows, err := l.db.Query(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := row(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

func (l dialect) Lock(ctx context.Context, query string, args []any, row func(sqlstore.Scanner) error) error {
	return l.Query(ctx, query+" FOR UPDATE", args, row)
}

func (l dialect) SkipLocked(ctx context.Context, query string, args []any, row func(sqlstore.Scanner) error) error {
	return l.Query(ctx, query+" FOR UPDATE SKIP LOCKED", args, row)
}

// A lock that two ids share costs little.

func (l dialect) Hold(ctx context.Context, what sqlstore.Held, id int64) error {
	if _, err := l.db.Exec(ctx, `SELECT pg_advisory_xact_lock($1, $2)`, int32(what), int32(id)); err != nil {
		return fmt.Errorf("wait for another server: %w", err)
	}
	return nil
}

func (l dialect) TryHold(ctx context.Context, what sqlstore.Held, id int64) (free bool, err error) {
	err = l.Query(ctx, `SELECT pg_try_advisory_xact_lock(?, ?)`, []any{int32(what), int32(id)},
		func(row sqlstore.Scanner) error { return row.Scan(&free) })
	return free, err
}

// again says whether another try can help: a connection that broke, a server that starts, stops or was demoted, a
// deadlock. What was tried must change nothing when it was done already.
func again(err error) bool {
	if _, ok := errors.AsType[*unsure](err); ok {
		return false
	}
	if errors.Is(err, errDoubt) {
		return true
	}
	if p, ok := errors.AsType[*pgconn.PgError](err); ok {
		switch p.Code {
		case "40001", "40P01", // serialization, deadlock
			"25006",          // a primary became a standby
			"53300",          // too many connections
			"55P03", "57014": // timed out at a lock, or in all
			return true
		}
		return strings.HasPrefix(p.Code, "08") || strings.HasPrefix(p.Code, "57P")
	}
	var network net.Error
	var connect *pgconn.ConnectError
	return errors.As(err, &connect) || errors.As(err, &network) || pgconn.SafeToRetry(err) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// persist runs fn until it succeeds, can't, or ctx is done; then it answers the last error.
func (s *Store) persist(ctx context.Context, fn func(context.Context) error) error {
	for wait := 20 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		err := fn(ctx)
		if err == nil || ctx.Err() != nil || !again(err) {
			return err
		}
		if p, ok := errors.AsType[*pgconn.PgError](err); ok && p.Code == "25006" {
			s.pool.Reset() // every connection may lead to what is a standby now
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(wait/2 + rand.N(wait/2)):
		}
	}
}

// translate converts errors to those of package server.
func translate(err error) error {
	p, ok := errors.AsType[*pgconn.PgError](err)
	switch {
	case ok && p.Code == "23505": // unique
		return server.ErrExists
	case errors.Is(err, pgx.ErrNoRows):
		return server.ErrNotFound
	}
	return err
}

// A pooler in transaction mode, such as pgbouncer, gives each transaction whatever connection to the database is free.
// What lives in a session (settings, prepared statements, locks, listening) is lost or belongs to another client. A URL
// with pool_mode=transaction says that it leads to one; direct_host and direct_port then name the database itself, for
// what needs a session: the schema and listening.
const (
	paramMode, modeTransaction  = "pool_mode", "transaction"
	paramHost, paramPort        = "direct_host", "direct_port"
	inTransaction, inConnection = "true", "false"
)

var (
	errPoolMode = errors.New("pool_mode is transaction or session")
	errDirect   = errors.New("pool_mode=transaction needs direct_host, the database without the pooler: " +
		"postgres://user@pooler:6432/database?pool_mode=transaction&direct_host=db&direct_port=5432")
)

// way is how a URL leads to the database.
type way struct {
	url    string // for everything
	direct string // for what needs a session of its own
	pooled bool   // url leads to a pooler in transaction mode
}

// wayOf takes what only we understand out of a URL. It does not quote the URL, which may hold a password.
func wayOf(text string) (way, error) {
	u, err := url.Parse(text)
	if err != nil {
		return way{url: text, direct: text}, nil //nolint:nilerr // the next parser says so better
	}
	q := u.Query()
	mode, host, port := q.Get(paramMode), q.Get(paramHost), q.Get(paramPort)
	if mode == "" && host == "" && port == "" {
		return way{url: text, direct: text}, nil
	}
	for _, name := range []string{paramMode, paramHost, paramPort} {
		q.Del(name)
	}
	u.RawQuery = q.Encode()
	w := way{url: u.String(), pooled: mode == modeTransaction}
	switch {
	case mode != "" && mode != modeTransaction && mode != "session":
		return w, fmt.Errorf("%w: %w", sqlstore.ErrBadURL, errPoolMode)
	case w.pooled && host == "":
		return w, fmt.Errorf("%w: %w", sqlstore.ErrBadURL, errDirect)
	}
	w.direct = w.url
	if host != "" {
		q.Set("host", host)
		q.Del("port")
		if port != "" {
			q.Set("port", port)
		}
		u.Host, u.RawQuery = "", q.Encode()
		w.direct = u.String()
	}
	return w, nil
}

// throughPooler makes a connection fit a pooler in transaction mode: no statement is prepared under a name, because
// the next transaction may not find it, and no setting is left behind for the next user of the connection. A query
// of a reader who has left ends with its connection: requests to cancel end pgbouncer 1.18 ("bad client state").
func throughPooler(config *pgxpool.Config) {
	c := config.ConnConfig
	c.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	c.AfterConnect = nil
	c.BuildContextWatcherHandler = closing
}

// closing ends a connection whose context is done.
func closing(conn *pgconn.PgConn) ctxwatch.Handler {
	return &pgconn.DeadlineContextWatcherHandler{Conn: conn.Conn()}
}

// beginWrite returns how a transaction begins that writes, for work of a class.
func (s *Store) beginWrite(c class) pgx.TxOptions {
	settings := c.set("SET LOCAL")
	if s.pooled {
		settings = limits(c, "SET LOCAL", inTransaction)
	}
	return pgx.TxOptions{BeginQuery: "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; " + settings}
}

// lacksPooled says what sessions behind a pooler lack. Nobody but the role can set it for them.
func lacksPooled(ctx context.Context, pool *pgxpool.Pool) (notes []string, err error) {
	var timeout, commit string
	err = pool.QueryRow(ctx, `SELECT current_setting('statement_timeout'), current_setting('synchronous_commit')`).
		Scan(&timeout, &commit)
	if err != nil {
		return nil, fmt.Errorf("read settings: %w", err)
	}
	if timeout == "0" {
		notes = append(notes, "behind the pooler reads have no time limit: ALTER ROLE "+
			"… SET statement_timeout = '30s' in the database sets one")
	}
	if commit == "off" {
		notes = append(notes, "behind the pooler synchronous_commit is off for users and keys: ALTER ROLE "+
			"… SET synchronous_commit = 'on' in the database changes it; lines are safe")
	}
	return notes, nil
}
