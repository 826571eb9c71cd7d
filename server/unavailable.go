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

// postgresError and sqliteError are what a database says.
type (
	postgresError interface {
		error
		SQLState() string
	}
	sqliteError interface {
		error
		Code() int
	}
)

// Unavailable says whether err of a store means that the database can't be reached now, or has so much to do that it
// gave up: later the same may succeed.
func Unavailable(err error) bool {
	if pg, ok := errors.AsType[postgresError](err); ok {
		return passes(pg.SQLState())
	}
	if lite, ok := errors.AsType[sqliteError](err); ok {
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

// DiskFull says whether err of a store means that the database has no space left.
func DiskFull(err error) bool {
	const full = 13
	pg, isPostgres := errors.AsType[postgresError](err)
	lite, isSQLite := errors.AsType[sqliteError](err)
	return isPostgres && pg.SQLState() == "53100" || isSQLite && lite.Code()&0xff == full
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
