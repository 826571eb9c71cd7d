package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// turnTimeout in milliseconds is how long one process waits for another that changes the schema of a large database.
const turnTimeout = 30 * time.Minute / time.Millisecond

// errTurnOver: the file of the turn that was waited for is gone.
var errTurnOver = errors.New("the turn is over")

// turn is the right to change a database's schema. It is SQLite's own lock on an empty database beside it, so it works
// alike on every system and ends with the process. The database itself can't serve: each step locks and unlocks it.
type turn struct {
	path string
	db   *sql.DB
	conn *sql.Conn
}

// takeTurn waits until no other process has the turn at the database at path. The caller must end it. It returns
// errTurnOver when another has ended its turn meanwhile and left nothing to do.
func takeTurn(ctx context.Context, path string) (t *turn, err error) {
	t = &turn{path: path + "-migrate"}
	if err := createFile(t.path); err != nil {
		return nil, err
	}
	if t.db, err = sql.Open("sqlite", fmt.Sprintf("file:%s?_busy_timeout=%d", uriPath(t.path), turnTimeout)); err != nil {
		return nil, err
	}
	if t.conn, err = t.db.Conn(ctx); err == nil {
		_, err = t.conn.ExecContext(ctx, `BEGIN EXCLUSIVE`)
	}
	if err != nil {
		if _, gone := os.Stat(t.path); errors.Is(gone, fs.ErrNotExist) {
			err = errTurnOver
		}
		return nil, errors.Join(fmt.Errorf("wait for another process that changes the schema: %w", err), t.end(false))
	}
	return t, nil
}

// end lets others have the turn. When all is done its file goes too: who waited on it finds nothing left to do.
func (t *turn) end(done bool) error {
	if done {
		_ = os.Remove(t.path) // where an open file can't be removed an empty one stays, and is used again
	}
	var err error
	if t.conn != nil {
		err = t.conn.Close() // and with it the transaction, which wrote nothing
	}
	return errors.Join(err, t.db.Close())
}
