package control

import (
	"context"
	"errors"
)

// Reach returns the first daemon that answers on one of the sockets, with its status. If none answers, it returns the
// error of the first socket, where people expect the daemon.
func Reach(ctx context.Context, paths []string) (*Client, Status, error) {
	return ReachFor(ctx, paths, StatusQuery{})
}

// ReachFor is Reach with a query for the status.
func ReachFor(ctx context.Context, paths []string, q StatusQuery) (*Client, Status, error) {
	var first error
	for _, path := range paths {
		client := Dial(path)
		status, err := StatusOf(ctx, client, q)
		if err == nil {
			return client, status, nil
		}
		if first == nil || errors.Is(first, ErrNotRunning) && !errors.Is(err, ErrNotRunning) && !UnusablePath(err) {
			first = err
		}
	}
	return nil, Status{}, first
}

// UnusablePath reports whether nothing can ever listen at a path, so that the error of an earlier path says more.
func UnusablePath(err error) bool {
	var known *Error
	return errors.As(err, &known) && known.Code == CodeSocket
}
