package sqlstore

import (
	"context"

	"github.com/ccship/ccship/server"
)

// DB is a database. Each statement outside of Read and Write sees what is committed.
type DB interface {
	Dialect
	// Read runs fn on one state of the database.
	Read(ctx context.Context, fn func(Dialect) error) error
	// Write runs fn in a transaction. It may be retried, also to bring what is cold before: fn then starts afresh.
	Write(ctx context.Context, how How, fn func(Dialect) error) error
	// Snapshots are numbers of snapshots: of the one opened first of those that are open, and one that those have, or a
	// larger one, which are opened from now on.
	Snapshots(ctx context.Context) (oldest, next int64, err error)
	// Tell announces a durable change. It never blocks.
	Tell(change server.Change)
}

// How is how a database writes. Without any of these, a write is durable, and no session is forgotten meanwhile.
type How int

const (
	Once    How = 1 << iota // not retried when it may be done; server.ErrExists when a row with the name exists
	Lazy                    // need not survive a crash
	Erase                   // removed bytes are overwritten as far as the database can
	Patient                 // lets what comes in pass
)

// Writer is a database that writes in one way.
type Writer struct {
	DB
	How How
}

// Write runs fn in a transaction, as DB.Write does.
func (w Writer) Write(ctx context.Context, fn func(Dialect) error) error {
	return w.DB.Write(ctx, w.How, fn)
}

// Change runs a statement in a transaction of its own.
func (w Writer) Change(ctx context.Context, query string, args ...any) error {
	return w.Write(ctx, func(d Dialect) error {
		_, err := d.Exec(ctx, query, args...)
		return err
	})
}

// Edit runs a statement in a transaction of its own that must change a row: server.ErrNotFound when it changes none.
func (w Writer) Edit(ctx context.Context, query string, args ...any) error {
	return w.Write(ctx, func(d Dialect) error { return editOne(ctx, d, query, args...) })
}

// Locked is a dialect whose queries lock the rows that they read.
type Locked struct{ Dialect }

// Query implements Dialect.
func (l Locked) Query(ctx context.Context, query string, args []any, row func(Scanner) error) error {
	return l.Lock(ctx, query, args, row)
}
