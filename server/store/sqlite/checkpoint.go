package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/ccship/ccship/server/store/lines"
)

const (
	// logPages is from how many pages of the log on they are brought into the file, and an eighth of the file's pages if
	// that is more, up to logLarge: what changes often, as the inner pages of indexes, is in a longer log more often, and
	// written into the file once. The log takes that much of the disk, 164 to 490 MB, until nothing is written for a
	// while, and is read whole when the server was killed.
	logPages = 20000
	logShare = 8
	logLarge = 3 * logPages
	// logMost is from how many pages on SQLite does it within a commit, when nothing else has.
	logMost = 5 * logPages
	// logLook is the least time between two looks at how long the log is, logRest the least behind a checkpoint that a
	// reader kept from having the log used again.
	logLook = 50 * time.Millisecond
	logRest = 500 * time.Millisecond
	// logWait is how long writers wait, at a checkpoint, for readers that keep the log from being used again; twice as
	// long for each time that the log is twice as long as it should be, up to logWaitMost.
	logWait     = 100 * time.Millisecond
	logWaitMost = time.Second
	// logQuiet is how long nothing was written when the log is cut.
	logQuiet = 3 * time.Second
)

// checkpoints brings pages of the log into the file while others write: lines would wait behind a commit that does.
type checkpoints struct {
	db    *sql.DB
	queue *lines.Queue
	pages int64
	due   chan struct{}
	wrote chan struct{} // has space for one
	stop  context.CancelFunc
	ended chan struct{}

	looked time.Time    // used only by the queue's leader
	last   atomic.Int64 // when something was written, Unix nanoseconds
}

// checkpointing begins to.
func (s *Store) checkpointing() (*checkpoints, error) {
	db, err := openConnection(dsn(s.path, false), 0)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	ctx, stop := context.WithCancel(context.Background())
	c := &checkpoints{db: db, queue: &s.queue, pages: logPages, due: make(chan struct{}, 1),
		wrote: make(chan struct{}, 1), stop: stop, ended: make(chan struct{})}
	go c.run(ctx)
	return c, nil
}

func (c *checkpoints) close() error {
	c.stop()
	<-c.ended
	return c.db.Close()
}

// look is called after each commit, by the queue's leader.
func (c *checkpoints) look(ctx context.Context, conn *sql.Conn) {
	c.last.Store(time.Now().UnixNano())
	ring(c.wrote)
	if time.Since(c.looked) < logLook {
		return
	}
	c.looked = time.Now()
	var busy, pages, done int64
	err := conn.QueryRowContext(ctx, `PRAGMA wal_checkpoint(NOOP)`).Scan(&busy, &pages, &done)
	if err != nil || pages < c.pages {
		return
	}
	var file int64
	err = conn.QueryRowContext(ctx, `PRAGMA page_count`).Scan(&file)
	if err != nil || pages < min(file/logShare, logLarge) {
		return
	}
	ring(c.due)
}

func ring(bell chan struct{}) {
	select {
	case bell <- struct{}{}:
	default:
	}
}

func (c *checkpoints) run(ctx context.Context) {
	defer close(c.ended)
	var quiet <-chan time.Time // until the log is cut
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.wrote:
			if quiet == nil {
				quiet = time.After(logQuiet)
			}
			continue
		case <-quiet:
			if quiet = nil; !c.cut(ctx) {
				quiet = time.After(logQuiet)
			}
			continue
		case <-c.due:
		}
		if c.checkpoint(ctx) {
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(logRest):
		}
	}
}

// cut empties the log of a database to which nothing was written for a while: it takes as much of the disk as what it
// was written for. It reports whether that is done.
func (c *checkpoints) cut(ctx context.Context) bool {
	if time.Since(time.Unix(0, c.last.Load())) < logQuiet {
		return false
	}
	if _, ok := c.bring(ctx, "PASSIVE", 0); !ok || !c.lead(ctx) {
		return false
	}
	defer func() { <-c.queue.Lead }()
	_, ok := c.bring(ctx, "TRUNCATE", 0)
	return ok
}

// lead keeps writers from writing until a token is taken from queue.Lead.
func (c *checkpoints) lead(ctx context.Context) bool {
	select {
	case c.queue.Lead <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// bring has SQLite bring the log into the file, and wait for readers for a while. It returns how many pages the log
// has. ok is false if readers kept it from what the mode is for.
func (c *checkpoints) bring(ctx context.Context, mode string, wait time.Duration) (pages int64, ok bool) {
	busy, done := int64(1), int64(0)
	_, err := c.db.ExecContext(ctx, fmt.Sprintf(`PRAGMA busy_timeout = %d`, wait.Milliseconds()))
	if err == nil {
		err = c.db.QueryRowContext(ctx, `PRAGMA wal_checkpoint(`+mode+`)`).Scan(&busy, &pages, &done)
	}
	return pages, err == nil && busy == 0
}

// checkpoint moves nearly all while others write, and the rest while none of them is active: only then is the log used
// again from its beginning, and only once no reader needs it. One that begins while it is waited for others reads the
// file. It reports whether the log is used again; if not, that is tried when the log is looked at next.
func (c *checkpoints) checkpoint(ctx context.Context) bool {
	pages, ok := c.bring(ctx, "PASSIVE", 0)
	if !ok || !c.lead(ctx) {
		return false
	}
	defer func() { <-c.queue.Lead }()
	wait := logWait
	for most := 2 * max(c.pages, 1); pages > most && wait < logWaitMost; most *= 2 {
		wait *= 2
	}
	_, ok = c.bring(ctx, "RESTART", min(wait, logWaitMost))
	select {
	case <-c.due: // of the log as it was: the one that begins now is short
	default:
	}
	return ok
}
