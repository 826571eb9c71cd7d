package store

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
)

const (
	// pgConns is how many connections a server opens at most, one for listening apart; pool_max_conns in the URL says
	// otherwise. A quarter of them may write, half may be snapshots.
	pgConns = 16
	// pgConnsLeast leaves a connection beside those of a writer and of snapshots, for the queries that a reader of a
	// snapshot makes meanwhile.
	pgConnsLeast  = 4
	pgConnTimeout = 5 * time.Second
	// A host that is gone without a word is noticed after idle + count × interval.
	pgKeepIdle, pgKeepInterval, pgKeepCount = 10 * time.Second, 5 * time.Second, 3
)

// pgSession is set on every connection. Nothing that we ask for takes long but reading a whole stream, which lifts
// the limit for itself. A database that says "acknowledged" before its log is on disk is configured to wait for it.
const pgSession = `
SET statement_timeout = '60s';
SET lock_timeout = '20s';
SET idle_in_transaction_session_timeout = '10min';
SET TimeZone = 'UTC';
SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'`

// configure reads a URL and adds what every connection has.
func (s *Postgres) configure(url string) (*pgxpool.Config, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, badPostgresURL(err)
	}
	if !strings.Contains(url, "pool_max_conns") {
		config.MaxConns = pgConns
	}
	config.MaxConns = max(config.MaxConns, pgConnsLeast)
	c := config.ConnConfig
	if c.ConnectTimeout == 0 {
		c.ConnectTimeout = pgConnTimeout
	}
	if c.RuntimeParams["application_name"] == "" {
		c.RuntimeParams["application_name"] = "ccship-server"
	}
	if c.ValidateConnect == nil { // a standby takes no lines, alone or among others
		c.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	dialer := &net.Dialer{KeepAliveConfig: net.KeepAliveConfig{
		Enable: true, Idle: pgKeepIdle, Interval: pgKeepInterval, Count: pgKeepCount,
	}}
	c.DialFunc = dialer.DialContext
	c.AfterConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
		_, err := conn.Exec(ctx, pgSession).ReadAll()
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

// badPostgresURL leaves out the URL, which may hold a password.
func badPostgresURL(err error) error {
	if p, ok := errors.AsType[*pgconn.ParseConfigError](err); ok {
		text := p.Error()
		if i := strings.LastIndex(text, "`: "); i >= 0 {
			text = text[i+3:]
		}
		return fmt.Errorf("%w: %s; want postgres://user@host/database", ErrBadURL, text)
	}
	return fmt.Errorf("%w: %w", ErrBadURL, err)
}

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
