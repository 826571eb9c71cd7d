// Package store keeps what the reference server was sent. It is the only room that knows a database driver.
//
// The schema is in migrations/; the bytes of a line are one row, clustered by (epoch, generation, line), so that a
// file is read in one sweep. Nothing that was superseded is deleted.
package store

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ccship/ccship/server"
)

// ErrBadURL is for store URLs that name no store; its text says what would.
var ErrBadURL = errors.New("bad store URL")

// Store is what Open opens. Close ends it: Puts and snapshots must be over.
type Store interface {
	server.Store
	// Version is the schema's version.
	Version(ctx context.Context) (int64, error)
	Close() error
}

// Open opens the store named by url, sqlite:PATH or postgres://…, creates a SQLite file that is missing, and brings
// the schema up to date. The caller closes it.
func Open(ctx context.Context, url string) (Store, error) {
	scheme, path, ok := strings.Cut(url, ":")
	switch {
	case ok && (scheme == "postgres" || scheme == "postgresql"):
		s, err := OpenPostgres(ctx, url)
		if err != nil {
			return nil, err
		}
		return s, nil
	case !ok || scheme != "sqlite":
		return nil, fmt.Errorf("%w %q: want sqlite:PATH, for example sqlite:/var/lib/ccship/server.db, "+
			"or postgres://user@host/database", ErrBadURL, url)
	case strings.TrimPrefix(path, "//") == "":
		return nil, fmt.Errorf("%w %q: the path is missing; want sqlite:PATH", ErrBadURL, url)
	}
	s, err := OpenSQLite(ctx, strings.TrimPrefix(path, "//"))
	if err != nil {
		return nil, err
	}
	return s, nil
}
