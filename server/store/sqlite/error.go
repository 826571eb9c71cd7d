package sqlite

import (
	"database/sql"
	"errors"

	"modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"github.com/ccship/ccship/server"
)

// isTaken reports whether a row with the same name exists.
func isTaken(err error) bool {
	e, ok := errors.AsType[*sqlite.Error](err)
	return ok && (e.Code() == lib.SQLITE_CONSTRAINT_UNIQUE || e.Code() == lib.SQLITE_CONSTRAINT_PRIMARYKEY)
}

// isBusy reports whether another process has the database.
func isBusy(err error) bool {
	e, ok := errors.AsType[*sqlite.Error](err)
	return ok && (e.Code()&0xff == lib.SQLITE_BUSY || e.Code()&0xff == lib.SQLITE_LOCKED)
}

// translate converts errors to those of package server.
func translate(err error) error {
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return server.ErrNotFound
	case isTaken(err):
		return server.ErrExists
	}
	return err
}
