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
)

// ErrBadURL is for store URLs that name no store; its text says what would.
var ErrBadURL = errors.New("bad store URL")

// Open opens the store named by url, creates it when it is missing, and brings its schema up to date. It starts
// nothing; the caller closes it. The only scheme so far is sqlite:PATH.
func Open(ctx context.Context, url string) (*SQLite, error) {
	scheme, path, ok := strings.Cut(url, ":")
	switch {
	case !ok || scheme != "sqlite":
		return nil, fmt.Errorf("%w %q: want sqlite:PATH, for example sqlite:/var/lib/ccship/server.db", ErrBadURL, url)
	case strings.TrimPrefix(path, "//") == "":
		return nil, fmt.Errorf("%w %q: the path is missing; want sqlite:PATH", ErrBadURL, url)
	}
	return OpenSQLite(ctx, strings.TrimPrefix(path, "//"))
}
