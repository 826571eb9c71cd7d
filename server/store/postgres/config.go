package postgres

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/pgxpool"
)

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
