package control

import (
	"context"
	"errors"
)

// Reach finds the first daemon that answers on one of some sockets, with its status now. The error of the first place
// counts: it is where people expect the daemon.
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

// UnusablePath says that an error means that nothing can ever listen at a place, so that the places before it say more.
func UnusablePath(err error) bool {
	var known *Error
	return errors.As(err, &known) && known.Code == CodeSocket
}
