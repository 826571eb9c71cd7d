package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ccship/ccship/server/store/lines"
	"github.com/ccship/ccship/server/store/sqlstore"
)

const (
	// byKey plans everything by key. Planned once, while the tables are still empty, it would be by reading them. What has
	// no key, as store_identity, then costs so much in the planner's eyes that it would be compiled, for 200 ms of CPU.
	byKey = `
SELECT set_config('plan_cache_mode', 'force_generic_plan', true), set_config('enable_seqscan', 'off', true),
  set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true),
  set_config('jit', 'off', true)`
	// shareForgotten takes the lock that forgetting excludes, so that the notes do not change under us.
	shareForgotten = `LOCK TABLE forgotten IN ROW SHARE MODE`

	// The streams' rows stay locked until the transaction ends: one stream is written by one at a time.
	lockStreams = `
SELECT x.n FROM unnest($1::bigint[], $2::bytea[], $3::bytea[]) WITH ORDINALITY x (owner, session_key, machine_key, n)
JOIN streams s ON s.owner = x.owner AND s.session_key = x.session_key AND s.machine_key = x.machine_key
ORDER BY x.n FOR NO KEY UPDATE OF s`
	// A statement of its own: it sees what those left whose locks were waited for. Subqueries with a limit are not
	// reordered: while the tables have no statistics, the planner would read all epochs of an owner to find one.
	readHeads = `
SELECT x.n, s.id, s.project_hash, s.masked, e.rank,
  e.rank = (SELECT max(o.rank) FROM epochs o WHERE o.owner = s.owner AND o.stream = s.id), n.generation IS NULL,
  coalesce(n.generation, 0), coalesce(n.rewound_to, 0), coalesce(n.line, 0), coalesce(g.stored_to, 0)
FROM unnest($1::bigint[], $2::bytea[], $3::bytea[], $4::bytea[], $5::bigint[])
  WITH ORDINALITY x (owner, session_key, machine_key, name_key, generation, n)
CROSS JOIN LATERAL (
  SELECT owner, id, project_hash, masked FROM streams o
  WHERE o.owner = x.owner AND o.session_key = x.session_key AND o.machine_key = x.machine_key LIMIT 1
) s
CROSS JOIN LATERAL (
  SELECT rank FROM epochs o WHERE o.owner = s.owner AND o.stream = s.id AND o.name_key = x.name_key LIMIT 1
) e
LEFT JOIN LATERAL (
  SELECT generation, rewound_to, greatest(end_line, rewound_to) AS line FROM generations o
  WHERE o.owner = s.owner AND o.stream = s.id AND o.epoch = e.rank ORDER BY generation DESC LIMIT 1
) n ON true
LEFT JOIN LATERAL (
  SELECT stored_to FROM generations o
  WHERE o.owner = s.owner AND o.stream = s.id AND o.epoch = e.rank AND o.generation = x.generation LIMIT 1
) g ON true`
	findForgotten = `
SELECT x.n FROM unnest($1::bigint[], $2::bigint[], $3::bytea[]) x (n, owner, session_key)
JOIN forgotten f ON f.owner = x.owner AND f.session_key = x.session_key`
	// Finish counts the first version.
	insertStreams = `
INSERT INTO streams (session_key, owner, machine_key, session_id, machine, project_hash, host, project, cwd, path,
  parent, first_received, last_received, version)
SELECT session_key, owner, machine_key, session_id, machine, project_hash, host, project, cwd, path, parent, received,
  received, 0
FROM unnest($1::bytea[], $2::bigint[], $3::bytea[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[],
  $9::text[], $10::text[], $11::text[], $12::bigint[])
  WITH ORDINALITY x (session_key, owner, machine_key, session_id, machine, project_hash, host, project, cwd, path,
  parent, received, n)
ORDER BY n ON CONFLICT (owner, session_key, machine_key) DO NOTHING`
	insertEpochs = `
INSERT INTO epochs (owner, stream, rank, name, name_key, first_seen)
SELECT s.owner, s.id, 1 + coalesce((SELECT max(o.rank) FROM epochs o WHERE o.owner = s.owner AND o.stream = s.id), 0),
  x.name, x.name_key, x.received
FROM unnest($1::bytea[], $2::bigint[], $3::bytea[], $4::text[], $5::bytea[], $6::bigint[])
  x (session_key, owner, machine_key, name, name_key, received)
JOIN streams s ON s.owner = x.owner AND s.session_key = x.session_key AND s.machine_key = x.machine_key
ON CONFLICT (owner, stream, name_key) DO NOTHING`
)

// names are batches' keys, a column each.
type names struct {
	owners                     []int64
	sessions, machines, epochs [][]byte
	generations                []int64
}

func namesOf(group []*lines.Job) (n names) {
	for _, j := range group {
		h := &j.Batch.Head
		n.owners, n.generations = append(n.owners, j.Batch.Owner), append(n.generations, h.Generation)
		n.sessions = append(n.sessions, sqlstore.Key(h.SessionID))
		n.machines = append(n.machines, sqlstore.Key(h.Machine))
		n.epochs = append(n.epochs, sqlstore.Key(h.Epoch))
	}
	return n
}

// enter finds or makes streams and epochs, locks the streams, and tells where they stand. No two batches are of one
// stream.
func enter(ctx context.Context, tx pgx.Tx, group []*lines.Job) ([]stored, error) {
	out := make([]stored, len(group))
	gone := make([]bool, len(group))
	batch := &pgx.Batch{}
	batch.Queue(byKey)
	batch.Queue(shareForgotten)
	queueForgotten(batch, group, gone)
	all := make([]int, len(group))
	for i := range all {
		all[i] = i
	}
	queueRead(batch, group, all, out)
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return nil, fmt.Errorf("read streams: %w", err)
	}
	var missing []int
	for i := range out {
		if gone[i] {
			out[i] = stored{}
		} else if !out[i].known {
			missing = append(missing, i)
		}
	}
	if len(missing) == 0 {
		return out, nil
	}
	batch = &pgx.Batch{}
	queueNew(batch, group, missing)
	queueRead(batch, group, missing, out)
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return nil, fmt.Errorf("write streams: %w", err)
	}
	for _, i := range missing {
		if !out[i].known {
			return nil, fmt.Errorf("write streams: stream %q is not there", group[i].Batch.Head.SessionID)
		}
	}
	return out, nil
}

// queueForgotten asks which batches are of sessions that were forgotten.
func queueForgotten(batch *pgx.Batch, group []*lines.Job, gone []bool) {
	var at, owners []int64
	var keys [][]byte
	for i, j := range group {
		for _, key := range sqlstore.TombstoneKeys(&j.Batch.Head) {
			at, owners, keys = append(at, int64(i)), append(owners, j.Batch.Owner), append(keys, key)
		}
	}
	batch.Queue(findForgotten, at, owners, keys).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			var i int64
			if err := rows.Scan(&i); err != nil {
				return err
			}
			gone[i] = true
		}
		return rows.Err()
	})
}

// queueRead locks and reads some of the batches' streams.
func queueRead(batch *pgx.Batch, group []*lines.Job, some []int, out []stored) {
	jobs := make([]*lines.Job, len(some))
	for i, at := range some {
		jobs[i] = group[at]
	}
	n := namesOf(jobs)
	batch.Queue(lockStreams, n.owners, n.sessions, n.machines)
	batch.Queue(readHeads, n.owners, n.sessions, n.machines, n.epochs, n.generations).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			var at int64
			h := stored{known: true}
			e := &h.End
			err := rows.Scan(&at, &h.Stream, &h.Project, &h.Masked, &e.Epoch, &e.Front, &e.First, &e.Generation, &e.Rewound,
				&e.Line, &h.To)
			if err != nil {
				return err
			}
			out[some[at-1]] = h
		}
		return rows.Err()
	})
}

// queueNew makes what is missing of streams and epochs.
func queueNew(batch *pgx.Batch, group []*lines.Job, missing []int) {
	var texts [8][]string
	var epochs []string
	var received []int64
	jobs := make([]*lines.Job, len(missing))
	for i, at := range missing {
		jobs[i] = group[at]
		h := sqlstore.Clean(group[at].Batch.Head)
		for c, v := range []string{h.SessionID, h.Machine, h.ProjectHash, h.Host, h.Project, h.Cwd, h.Path, h.Parent} {
			texts[c] = append(texts[c], v)
		}
		epochs, received = append(epochs, h.Epoch), append(received, group[at].Batch.Received.UnixMicro())
	}
	n := namesOf(jobs)
	batch.Queue(insertStreams, n.sessions, n.owners, n.machines, texts[0], texts[1], texts[2], texts[3], texts[4],
		texts[5], texts[6], texts[7], received)
	// A stream that came since it was looked for is another's: its next epoch has the next rank, one after the other.
	batch.Queue(lockStreams, n.owners, n.sessions, n.machines)
	batch.Queue(insertEpochs, n.sessions, n.owners, n.machines, epochs, n.epochs, received)
}

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
