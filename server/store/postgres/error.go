package postgres

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ccship/ccship/server"
)

// again says whether another try can help: a connection that broke, a server that starts, stops or was demoted, a
// deadlock. What was tried must change nothing when it was done already.
func again(err error) bool {
	if _, ok := errors.AsType[*unsure](err); ok {
		return false
	}
	if errors.Is(err, errDoubt) {
		return true
	}
	if p, ok := errors.AsType[*pgconn.PgError](err); ok {
		switch p.Code {
		case "40001", "40P01", // serialization, deadlock
			"25006",          // a primary became a standby
			"53300",          // too many connections
			"55P03", "57014": // timed out at a lock, or in all
			return true
		}
		return strings.HasPrefix(p.Code, "08") || strings.HasPrefix(p.Code, "57P")
	}
	var network net.Error
	var connect *pgconn.ConnectError
	return errors.As(err, &connect) || errors.As(err, &network) || pgconn.SafeToRetry(err) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// persist runs fn until it succeeds, can't, or ctx is done; then it answers the last error.
func (s *Store) persist(ctx context.Context, fn func(context.Context) error) error {
	for wait := 20 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		err := fn(ctx)
		if err == nil || ctx.Err() != nil || !again(err) {
			return err
		}
		if p, ok := errors.AsType[*pgconn.PgError](err); ok && p.Code == "25006" {
			s.pool.Reset() // every connection may lead to what is a standby now
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(wait/2 + rand.N(wait/2)):
		}
	}
}

// translate converts errors to those of package server.
func translate(err error) error {
	p, ok := errors.AsType[*pgconn.PgError](err)
	switch {
	case ok && p.Code == "23505": // unique
		return server.ErrExists
	case errors.Is(err, pgx.ErrNoRows):
		return server.ErrNotFound
	}
	return err
}
