package server

import (
	"context"
	"errors"
	"time"

	"github.com/ccship/ccship/protocol"
)

// Masker replaces secrets in what is stored by tokens of the same length. It is the only way to change stored bytes,
// and it changes nothing else. Safe for concurrent use.
type Masker interface {
	// Mask makes all of a masking durable in one step, or nothing. What is derived from the stream is removed, so that it
	// is derived again. What is masked already, or not stored with the expected bytes, stays as it is: repeating a masking
	// changes nothing. ErrNoToken when something other than secrets would change, ErrNotFound for a stream that does not
	// exist.
	Mask(ctx context.Context, m *Masking) (protocol.Masked, error)
	// Maskings lists what was masked, latest first; for a user only its own sessions.
	Maskings(ctx context.Context, scope Scope) ([]MaskedSession, error)
	// Scrub overwrites what secrets may have left behind in files of the database, if something was masked since the last
	// time. It calls progress now and then.
	Scrub(ctx context.Context, progress func(done, total int64)) error
}

// ErrNoToken refuses a masking that would change more than secrets.
var ErrNoToken = errors.New("only tokens may replace stored bytes")

// Masking is what to mask in one stream.
type Masking struct {
	Stream int64
	// By is the user who asks: the daemon of that user masks what it sends in the same way. 0: the server masks by itself.
	// Lines that it masks are listed, and the same lines are stored with these tokens when they come again.
	By          int64
	At          time.Time
	Lines       []protocol.LineMask
	Checkpoints []protocol.CheckpointMask
	Files       []protocol.FileMask
}

// MaskedSession is what was masked of one stream, by one user.
type MaskedSession struct {
	Owner     int64           `json:"-"`
	SessionID string          `json:"session_id"`
	Machine   string          `json:"machine"`
	By        int64           `json:"-"`  // user; 0: the server
	At        time.Time       `json:"at"` // the last time
	Masked    protocol.Masked `json:"-"`
}

// MaskedLine is a line that the server masked by itself.
type MaskedLine struct{ Generation, Line int64 }
