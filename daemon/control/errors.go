package control

import "errors"

// Codes of an Error that mean something to a program. Others are for people.
const (
	CodeNotRunning  = "not_running"
	CodeNoAnswer    = "no_answer"   // a daemon that accepts and never answers
	CodeUnreachable = "unreachable" // the server, not the daemon
	CodeRefusedKey  = "refused_key"
	CodeUsage       = "usage"
	CodeConfig      = "config"
	CodeInUse       = "already_running"
	CodeSocket      = "socket" // its path cannot be used
	CodeFailed      = "failed"

	CodeForbidden    = "forbidden" // not a request of the owner's program
	CodeNotFound     = "not_found" // no such path, or receipt
	CodeMethod       = "method"
	CodeNoDeadLetter = "no_dead_letter"
	CodeNoPattern    = "no_pattern" // of exclude_projects
	CodeTooMany      = "too_many"   // listeners of events
	CodeNoSession    = "no_session" // under that name
	CodeAmbiguous    = "ambiguous"  // a beginning that several sessions have
	CodeNoCheckpoint = "no_checkpoint"
	CodeDocument     = "document" // a file that cannot be linked, or is not
)

var (
	// ErrNotRunning says that no daemon listens on the socket.
	ErrNotRunning = errors.New("the daemon is not running")
	// ErrInUse says that a daemon listens on the socket already.
	ErrInUse = errors.New("a daemon is running already")
)

// Error makes what crosses the socket an error on both of its sides: a Daemon that returns an *Error decides code,
// hint and retryable of the answer, and the Client returns the same again.
func (e *Error) Error() string { return e.Message }

// Is lets errors.Is tell the two errors with a name apart on either side of the socket.
func (e *Error) Is(target error) bool {
	return target == ErrNotRunning && e.Code == CodeNotRunning || target == ErrInUse && e.Code == CodeInUse
}

// asError is err in the terms of the wire.
func asError(err error) *Error {
	var known *Error
	if errors.As(err, &known) {
		return known
	}
	return &Error{Code: CodeFailed, Message: err.Error()}
}
