package lines

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store/sqlstore"
)

const (
	// objectSize is how large an object becomes, unless one block alone is larger: reading one line of it reads all.
	objectSize = 1 << 20
	// cacheSize is how many bytes of objects are kept in memory, unless one is larger.
	cacheSize = 64 << 20
	// abandoned is how old an object must be that nothing uses yet, before it counts as left behind by a crash. It is far
	// longer than writing one takes.
	abandoned = time.Hour
	// objectLease is how long a process that died keeps others from moving anything. Two that move at once do no harm:
	// what one of them drops, the other finds changed.
	objectLease = 20 * time.Second
	// holdFor is how long a backup that died keeps others from removing anything.
	holdFor = 2 * time.Minute
	// sulk is for how long nothing is asked of a location that did not answer: readers get their error at once.
	sulk = 5 * time.Second
	// readTime is how long a reader waits for an object.
	readTime = 20 * time.Second
	// countEvery is how long counted numbers are good for.
	countEvery = time.Minute
)

// States of an object.
const (
	writing = 0 // nothing uses it yet
	used    = 1
	doomed  = 2 // to be removed. Before, what is still used of it has to come back
)

// inUse selects objects o that something uses. Of files that are all that are used.
const inUse = `(o.state = 1 OR o.state = 2 AND EXISTS (SELECT 1 FROM blocks b
  WHERE b.owner = o.owner AND b.stream = o.stream AND b.object = o.id))`

// Tier implements server.Cooler, and reads what it moved. Safe for concurrent use.
type Tier struct {
	db      sqlstore.Writer
	lines   *Lines
	cache   *cache
	self    string // who holds leases
	place   string
	id      string      // of the database, there
	objects objectStore // nil: there is no location

	sweeping sync.Mutex
	doomed   map[string]int64 // objects that a sweep left, and the next snapshot's number then; guarded by sweeping

	mu      sync.Mutex
	failed  error     // of the last use of the location; guarded by mu
	rest    time.Time // until then nothing is asked of it; guarded by mu
	counted time.Time // guarded by mu, as is what follows
	counts  server.Cold
}

// OpenCold returns the tier of a database, which remembers its location. A location in how replaces that.
func OpenCold(ctx context.Context, db sqlstore.DB, lines *Lines, how sqlstore.Opening) (*Tier, error) {
	t := &Tier{db: sqlstore.Writer{DB: db, How: sqlstore.Erase | sqlstore.Patient}, lines: lines,
		cache: newCache(cacheSize), self: rand.Text()}
	err := t.db.Query(ctx, `SELECT id, place FROM cold`, nil, func(row sqlstore.Scanner) error {
		return row.Scan(&t.id, &t.place)
	})
	if err != nil {
		return nil, fmt.Errorf("read the place of blocks: %w", err)
	}
	lines.cold = t
	was := t.place
	if t.place = cmp.Or(how.Blocks, was); t.place == "" {
		return t, nil
	}
	if t.objects, err = openObjects(t.place); err != nil || t.place == was {
		return t, err
	}
	err = t.db.Change(ctx, `UPDATE cold SET place = ?`, t.place)
	return t, sqlstore.Wrap(err, "write the place of blocks down")
}

// use runs fn, which asks something of the location, unless that did not answer a moment ago. Errors become
// server.ErrCold; errNoObject stays.
func (t *Tier) use(fn func() error) error {
	if t.objects == nil {
		return fmt.Errorf("%w: this store has no place for blocks; start the server with --blocks", server.ErrCold)
	}
	t.mu.Lock()
	failed := t.failed
	resting := failed != nil && time.Now().Before(t.rest)
	t.mu.Unlock()
	if resting {
		return failed
	}
	err := fn()
	if err != nil && !errors.Is(err, errNoObject) && !errors.Is(err, context.Canceled) {
		err = fmt.Errorf("%w: %w", server.ErrCold, err)
		t.mu.Lock()
		t.failed, t.rest = err, time.Now().Add(sulk)
		t.mu.Unlock()
		return err
	}
	t.mu.Lock()
	t.failed = nil
	t.mu.Unlock()
	return err
}

// Cold implements server.Cooler.
func (t *Tier) Cold(ctx context.Context) (server.Cold, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if time.Since(t.counted) > countEvery {
		var c server.Cold
		err := t.db.Query(ctx, `SELECT count(*), CAST(coalesce(sum(size), 0) AS bigint),
  CAST(coalesce(sum(CASE WHEN state <> 1 THEN 1 ELSE 0 END), 0) AS bigint) FROM cold_objects`, nil,
			func(row sqlstore.Scanner) error { return row.Scan(&c.Objects, &c.Bytes, &c.Pending) })
		if err != nil {
			return c, fmt.Errorf("count cold objects: %w", err)
		}
		t.counts, t.counted = c, time.Now()
	}
	out := t.counts
	out.Place, out.Err = t.place, t.failed
	return out, nil
}

// Warm implements server.Cooler.
func (t *Tier) Warm(ctx context.Context) (w server.Warm, err error) {
	var since, oldest int64
	err = t.db.Query(ctx, `SELECT count(*), coalesce(min(s.last_received), 0) FROM streams s
WHERE s.cooled <> s.version`,
		nil, func(row sqlstore.Scanner) error { return row.Scan(&w.Streams, &since) })
	if err == nil {
		err = t.db.Query(ctx, `SELECT count(*), coalesce(min(received), 0) FROM lines`, nil,
			func(row sqlstore.Scanner) error { return row.Scan(&w.Lines, &oldest) })
	}
	if err != nil {
		return w, fmt.Errorf("count what is not in cold storage: %w", err)
	}
	w.Since, w.Oldest = sqlstore.Moment(since), sqlstore.Moment(oldest)
	return w, nil
}

// object is a row of cold_objects.
type object struct {
	owner, stream, blob int64
	id                  string
	size                int64
	sha256              []byte
	at                  int64 // when its state changed
}

// objectColumns are those of table cold_objects o that scanObject reads.
const objectColumns = `o.owner, o.stream, o.blob, o.id, o.size, o.sha256, o.at`

func scanObject(row sqlstore.Scanner) (o object, err error) {
	return o, row.Scan(&o.owner, &o.stream, &o.blob, &o.id, &o.size, &o.sha256, &o.at)
}

// name is where an object is in the location.
func (t *Tier) name(o object) string {
	kind, of := "s", o.stream
	if o.stream == 0 {
		kind, of = "f", o.blob
	}
	return fmt.Sprintf("%s/%d/%s%d/%s", t.id, o.owner, kind, of, o.id)
}

// marker is the object by which a database knows its location again.
func (t *Tier) marker() string { return t.id + "/store" }

const ofObject = ` WHERE owner = ? AND stream = ? AND blob = ? AND id = ?`

func (o object) key() []any { return []any{o.owner, o.stream, o.blob, o.id} }

// with are the values of a statement that ends with ofObject.
func (o object) with(values ...any) []any { return append(values, o.key()...) }

// lockStream keeps others from writing the stream of an object, and reports whether it is still there.
func (o object) lockStream(ctx context.Context, d sqlstore.Dialect) (bool, error) {
	id, err := sqlstore.Number(ctx, sqlstore.Locked{Dialect: d}, `SELECT id FROM streams WHERE owner = ? AND id = ?`,
		o.owner, o.stream)
	return id > 0, err
}

// lease takes or renews a lease. false: another process has it.
func (t *Tier) lease(ctx context.Context, name string, length time.Duration) (mine bool, err error) {
	err = t.db.Write(ctx, func(d sqlstore.Dialect) (err error) {
		mine, err = sqlstore.Lease(ctx, d, name, t.self, length)
		return err
	})
	return mine, err
}

// release ends a lease.
func (t *Tier) release(ctx context.Context, name string) error {
	ctx = context.WithoutCancel(ctx) // also when its work was interrupted
	err := t.db.Change(ctx, `DELETE FROM leases WHERE name = ? AND holder = ?`, name, t.self)
	return sqlstore.Wrap(err, "end the lease of %s", name)
}
