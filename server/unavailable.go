package server

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
)

// UnavailableAfter is for how many seconds a client should wait when Unavailable: a database that fails over takes
// about so long.
const UnavailableAfter = 5

// ErrNoDatabase means that a database's file was removed or replaced while it was open.
var ErrNoDatabase = errors.New("the database's file was removed or replaced")

// Unavailable says whether err of a store means that the database can't be reached now, or has so much to do that it
// gave up: later the same may succeed.
func Unavailable(err error) bool {
	var sql interface {
		error
		SQLState() string // of PostgreSQL
	}
	if errors.As(err, &sql) {
		return passes(sql.SQLState())
	}
	var lite interface {
		error
		Code() int // of SQLite
	}
	if errors.As(err, &lite) {
		const busy, locked, cannotOpen = 5, 6, 14
		return slices.Contains([]int{busy, locked, cannotOpen}, lite.Code()&0xff)
	}
	var unsent interface {
		error
		SafeToRetry() bool
	}
	var network net.Error
	return errors.Is(err, ErrNoDatabase) || errors.As(err, &unsent) && unsent.SafeToRetry() || errors.As(err, &network) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) || errors.Is(err, context.DeadlineExceeded)
}

// passes says whether an error of PostgreSQL passes by itself.
func passes(state string) bool {
	return strings.HasPrefix(state, "08") || strings.HasPrefix(state, "57P") || slices.Contains([]string{
		"40001", "40P01", // serialization, deadlock
		"25006",          // a primary became a standby
		"53300",          // too many connections
		"55P03", "57014", // timed out at a lock, or in all
	}, state)
}
