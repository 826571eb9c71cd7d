package postgres

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ccship/ccship/server/store/sqlstore"
)

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
