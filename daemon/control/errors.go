package control

import (
	"context"
	"errors"
	"strings"
)

// Codes of an Error that programs may act on. Other codes are for people.
const (
	CodeNotRunning  = "not_running"
	CodeNoAnswer    = "no_answer"   // the daemon accepts a connection and never answers
	CodeUnreachable = "unreachable" // the server, not the daemon
	CodeRefusedKey  = "refused_key"
	CodeUsage       = "usage"
	CodeConfig      = "config"
	CodeInUse       = "already_running"
	CodeSocket      = "socket" // the socket's path cannot be used
	CodeFailed      = "failed"

	CodeForbidden    = "forbidden" // not a request of the owner's program
	CodeNotFound     = "not_found" // no such path, or receipt
	CodeMethod       = "method"
	CodeNoDeadLetter = "no_dead_letter"
	CodeNoPattern    = "no_pattern" // of exclude_projects
	CodeNoSession    = "no_session" // under that name
	CodeAmbiguous    = "ambiguous"  // a prefix of several sessions
	CodeNoCheckpoint = "no_checkpoint"
	CodeDocument     = "document" // a file that cannot be linked, or is not
)

var (
	// ErrNotRunning says that no daemon listens on the socket.
	ErrNotRunning = errors.New("the daemon is not running")
	// ErrInUse says that a daemon listens on the socket already.
	ErrInUse = errors.New("a daemon is running already")
)

// Error makes an error that crosses the socket equal on both sides: when a Daemon returns an *Error, its code, hint and
// retryable flag are sent, and the Client returns the same error.
func (e *Error) Error() string { return e.Message }

// Is lets errors.Is recognize ErrNotRunning and ErrInUse on either side of the socket.
func (e *Error) Is(target error) bool {
	return target == ErrNotRunning && e.Code == CodeNotRunning || target == ErrInUse && e.Code == CodeInUse
}

// asError converts err to the wire type.
func asError(err error) *Error {
	var known *Error
	if errors.As(err, &known) {
		return known
	}
	return &Error{Code: CodeFailed, Message: err.Error()}
}

// NewError returns an error with any code. The hint says what to do next; it may be empty.
func NewError(code, message, hint string) *Error {
	return &Error{Code: code, Message: message, Hint: hint}
}

// Usage returns the error of a request that cannot be carried out as it is.
func Usage(message, hint string) *Error { return NewError(CodeUsage, message, hint) }

// Failed returns the error of a valid request that could not be carried out.
func Failed(message, hint string) *Error { return NewError(CodeFailed, message, hint) }

// BadConfig returns the error of a configuration that cannot be used.
func BadConfig(message, hint string) *Error { return NewError(CodeConfig, message, hint) }

// NoSession returns the error of a session name that matches no session.
func NoSession(message, hint string) *Error { return NewError(CodeNoSession, message, hint) }

// Ambiguous returns the error of a prefix that several sessions or machines share.
func Ambiguous(message, hint string) *Error { return NewError(CodeAmbiguous, message, hint) }

// BadDocument returns the error of a file that cannot be linked, or is not linked.
func BadDocument(message, hint string) *Error { return NewError(CodeDocument, message, hint) }

// Unreachable returns the error of a server that cannot be reached. Retrying may help.
func Unreachable(message, hint string) *Error {
	return NewError(CodeUnreachable, message, hint).AsRetryable()
}

// AsRetryable marks e, which must not be shared, as one that may not occur when the request is repeated. It returns e.
func (e *Error) AsRetryable() *Error {
	e.Retryable = true
	return e
}

// ShellWord quotes a word of a command for a shell if needed.
func ShellWord(word string) string {
	plain := func(r rune) bool {
		return r > 0x7f || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' ||
			strings.ContainsRune("/._-+:@%,=", r)
	}
	if word != "" && !strings.ContainsFunc(word, func(r rune) bool { return !plain(r) }) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

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
