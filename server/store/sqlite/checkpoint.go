package sqlite

import (
	"context"
	"database/sql"
	"time"

	"github.com/ccship/ccship/server/store/queue"
	"github.com/ccship/ccship/server/store/sqlite/connection"
)

const (
	// logPages is from how many pages of the log on they are brought into the file, and an eighth of the file's pages if
	// that is more, up to logLarge: what changes often, as the inner pages of indexes, is in a longer log more often, and
	// written into the file once. The log takes that much of the disk, 164 to 490 MB, and is read whole when the server
	// was killed.
	logPages = 20000
	logShare = 8
	logLarge = 3 * logPages
	// logMost is from how many pages on SQLite does it within a commit, when nothing else has.
	logMost = 5 * logPages
	// logLook is the least time between two looks at how long the log is, logRest the least between two checkpoints: a
	// reader may keep the log from being used again.
	logLook = 50 * time.Millisecond
	logRest = 500 * time.Millisecond
)

// checkpoints brings pages of the log into the file beside those who write: lines would wait behind a commit that does.
type checkpoints struct {
	db    *sql.DB
	queue *queue.Queue
	pages int64
	due   chan struct{}
	stop  context.CancelFunc
	ended chan struct{}

	looked time.Time // belongs to who leads
}

// checkpointing begins to.
func (s *Store) checkpointing() (*checkpoints, error) {
	db, err := connection.Open(dsn(s.path, false), 0)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	ctx, stop := context.WithCancel(context.Background())
	c := &checkpoints{db: db, queue: &s.queue, pages: logPages, due: make(chan struct{}, 1), stop: stop,
		ended: make(chan struct{})}
	go c.run(ctx)
	return c, nil
}

func (c *checkpoints) close() error {
	c.stop()
	<-c.ended
	return c.db.Close()
}

// look is called behind each commit, by who leads.
func (c *checkpoints) look(ctx context.Context, conn *sql.Conn) {
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
	select {
	case c.due <- struct{}{}:
	default:
	}
}

func (c *checkpoints) run(ctx context.Context) {
	defer close(c.ended)
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.due:
		}
		c.checkpoint(ctx)
		select {
		case <-ctx.Done():
			return
		case <-time.After(logRest):
		}
	}
}

// checkpoint moves nearly all beside writers, and the rest while none of them is active: only then is the log used
// again from its beginning. What fails is tried again when the log is looked at next.
func (c *checkpoints) checkpoint(ctx context.Context) {
	const passive = `PRAGMA wal_checkpoint(PASSIVE)`
	var busy, pages, done int64
	if err := c.db.QueryRowContext(ctx, passive).Scan(&busy, &pages, &done); err != nil {
		return
	}
	select {
	case c.queue.Lead <- struct{}{}:
	case <-ctx.Done():
		return
	}
	defer func() { <-c.queue.Lead }()
	_ = c.db.QueryRowContext(ctx, passive).Scan(&busy, &pages, &done)
	select {
	case <-c.due: // of the log as it was: the one that begins now is short
	default:
	}
}
