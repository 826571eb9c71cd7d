// Package store opens the databases that keep what the reference server was sent: sqlite and postgres are the two,
// and sqlstore has what they share. Nothing else knows a database driver.
//
// Each has its schema in one file. Lines are packed into blocks, see package lines; those that came last are
// rows. Both are clustered by epoch, generation and line, so that a file is read in one sweep. Nothing that was
// superseded is deleted. The tests here are the contract, run against both.
package store

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store/lines"
	"github.com/ccship/ccship/server/store/postgres"
	"github.com/ccship/ccship/server/store/sqlite"
	"github.com/ccship/ccship/server/store/sqlstore"
)

var (
	// ErrNewer means that a newer version of this program made the schema.
	ErrNewer = sqlstore.ErrNewer
	// ErrOtherBuild means that another build of this program made the schema.
	ErrOtherBuild = sqlstore.ErrOtherBuild
	// ErrOutdated means that Opening.AsIs was asked for, and that the schema would have to be made.
	ErrOutdated = sqlstore.ErrOutdated
	// ErrBadURL is for store URLs that name no store; its text says what would.
	ErrBadURL = sqlstore.ErrBadURL
	// ErrBadBlocks is for an Opening.Blocks that names no location; its text says what would.
	ErrBadBlocks = lines.ErrBadBlocks
)

// Opening is how a store is opened.
type Opening = sqlstore.Opening

// Store is what Open opens. Close ends it: Puts and snapshots must be over.
type Store interface {
	server.Store
	Close() error
}

// Open opens the store named by url, sqlite:PATH or postgres://…, creates a SQLite file that is missing, and brings
// the schema up to date. The caller closes it.
func Open(ctx context.Context, url string, how Opening) (Store, error) {
	if err := Check(url); err != nil {
		return nil, err
	}
	scheme, path, _ := strings.Cut(url, ":")
	if onPostgres(scheme) {
		return openPostgres(ctx, url, how)
	}
	if how.Replica != "" {
		return nil, fmt.Errorf("%w %q: a replica needs a store in PostgreSQL", ErrBadURL, url)
	}
	s, err := sqlite.Open(ctx, strings.TrimPrefix(path, "//"), how)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Check returns the ErrBadURL that Open would return, and opens nothing.
func Check(url string) error {
	scheme, path, ok := strings.Cut(url, ":")
	switch {
	case ok && onPostgres(scheme):
		return postgres.Check(url)
	case !ok || scheme != "sqlite":
		return fmt.Errorf("%w %q: want sqlite:PATH, for example sqlite:/var/lib/ccship/server.db, "+
			"or postgres://user@host/database", ErrBadURL, url)
	case strings.TrimPrefix(path, "//") == "":
		return fmt.Errorf("%w %q: the path is missing; want sqlite:PATH", ErrBadURL, url)
	}
	return nil
}

// CheckBlocks returns the ErrBadBlocks of a location that Opening.Blocks could not be.
func CheckBlocks(place string) error { return lines.CheckBlocks(place) }

func onPostgres(scheme string) bool { return scheme == "postgres" || scheme == "postgresql" }

func openPostgres(ctx context.Context, url string, how Opening) (Store, error) {
	s, err := postgres.Open(ctx, url, how)
	if err != nil {
		return nil, err
	}
	if how.Replica == "" {
		return s, nil
	}
	r, err := postgres.WithReplica(ctx, s, how.Replica)
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return r, nil
}
