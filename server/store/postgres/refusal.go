package postgres

import (
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ccship/ccship/server/store/sqlstore"
)

// What can be wrong with a database that answers.
var (
	errEncoding = errors.New("its encoding is not UTF8")
	errTooOld   = errors.New("is older than 14")
)

// OpenError says why a store can't be opened, in one line, and what to do about it.
type OpenError struct {
	Err  error
	Hint string
}

func (e *OpenError) Error() string { return e.Err.Error() }
func (e *OpenError) Unwrap() error { return e.Err }

// explain turns an error of opening into one for people. It names hosts and users, never a password.
func explain(err error, c *pgx.ConnConfig) error {
	where := fmt.Sprintf("PostgreSQL at %s", strings.Join(hosts(c), ", "))
	say := func(hint, format string, args ...any) error {
		return &OpenError{fmt.Errorf("%s: %w", where, &reason{fmt.Sprintf(format, args...), err}), hint}
	}
	if p, ok := errors.AsType[*pgconn.PgError](err); ok {
		switch p.Code {
		case "28P01", "28000":
			return say("check user and password in the URL, or in ~/.pgpass, and pg_hba.conf",
				"refuses user %q: %s", c.User, p.Message)
		case "3D000":
			return say(fmt.Sprintf("make it: createdb --encoding=UTF8 --template=template0 %s", c.Database),
				"has no database %q", c.Database)
		case "42501":
			return say("run `ccship-server user list` as the role that owns the tables; for a new database: "+
				fmt.Sprintf("ALTER DATABASE %s OWNER TO %s", c.Database, c.User), "%s", p.Message)
		case "53300":
			return say("raise max_connections there, or add pool_max_conns=8 to the URL", "%s", p.Message)
		}
		return say("see the log of PostgreSQL", "%s (%s)", p.Message, p.Code)
	}
	switch {
	case errors.Is(err, sqlstore.ErrNewer), errors.Is(err, sqlstore.ErrOtherBuild),
		errors.Is(err, errEncoding), errors.Is(err, errTooOld):
		return &OpenError{fmt.Errorf("%s: %w", where, err), hintOf(err)}
	case errors.As(err, new(noWritesError)):
		return say("is a standby named alone? name all hosts: postgres://user@one,two/database",
			"takes no writes")
	case isProtocol(err):
		return say("is the port PostgreSQL's?", "is not a PostgreSQL")
	}
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return say("is it running, and are host and port right?", "can't be reached: %s", innermost(err))
	}
	return say("see the log of PostgreSQL", "%s", innermost(err))
}

// reason is an error's cause in other words.
type reason struct {
	text  string
	cause error
}

func (r *reason) Error() string { return r.text }
func (r *reason) Unwrap() error { return r.cause }

func hintOf(err error) string {
	switch {
	case errors.Is(err, errEncoding):
		return "make the database with createdb --encoding=UTF8 --template=template0"
	case errors.Is(err, errTooOld):
		return "upgrade PostgreSQL"
	case errors.Is(err, sqlstore.ErrOtherBuild):
		return "make one with createdb, and name it with --store"
	}
	return "install the newer ccship-server"
}

func hosts(c *pgx.ConnConfig) (out []string) {
	add := func(host string, port uint16) {
		name := host
		if !strings.HasPrefix(host, "/") {
			name = net.JoinHostPort(host, fmt.Sprint(port))
		}
		if len(out) == 0 || out[len(out)-1] != name {
			out = append(out, name)
		}
	}
	add(c.Host, c.Port)
	for _, f := range c.Fallbacks {
		add(f.Host, f.Port)
	}
	return out
}

// isProtocol: something answered, but not in PostgreSQL's language.
func isProtocol(err error) bool {
	text := err.Error()
	return strings.Contains(text, "unexpected message") || strings.Contains(text, "invalid body length") ||
		strings.Contains(text, "unknown message type") || strings.Contains(text, "server refused TLS")
}

// innermost returns the last line of what went wrong, without what was tried. It walks the errors one by one, so it
// must see each as it is: errors.As would look through it.
func innermost(err error) string {
	for {
		switch x := err.(type) { //nolint:errorlint // see above
		case interface{ Unwrap() []error }:
			all := x.Unwrap()
			if len(all) == 0 {
				return oneLine(err)
			}
			err = all[len(all)-1]
		case interface{ Unwrap() error }:
			inner := x.Unwrap()
			if inner == nil {
				return oneLine(err)
			}
			if _, ok := err.(*net.OpError); ok { //nolint:errorlint // see above
				return oneLine(err)
			}
			err = inner
		default:
			return oneLine(err)
		}
	}
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// badURL leaves out the URL, which may hold a password.
func badURL(err error) error {
	if p, ok := errors.AsType[*pgconn.ParseConfigError](err); ok {
		text := p.Error()
		if i := strings.LastIndex(text, "`: "); i >= 0 {
			text = text[i+3:]
		}
		return fmt.Errorf("%w: %s; want postgres://user@host/database", sqlstore.ErrBadURL, text)
	}
	return fmt.Errorf("%w: %w", sqlstore.ErrBadURL, err)
}
