package server

import (
	"context"
	"encoding/hex"
	"errors"
	"time"
)

// Masker replaces secrets in what is stored by tokens of the same length. It is the only way to change stored bytes,
// and it changes nothing else. Safe for concurrent use.
type Masker interface {
	// Mask makes all of a masking durable in one step, or nothing. What is derived from the stream is removed, so that it
	// is derived again. What is masked already, or not stored with the expected bytes, stays as it is: repeating a masking
	// changes nothing. ErrNoToken when something other than secrets would change, ErrNotFound for a stream that does not
	// exist.
	Mask(ctx context.Context, m *Masking) (Masked, error)
	// Maskings lists what was masked, latest first; for a user only its own sessions.
	Maskings(ctx context.Context, scope Scope) ([]MaskedSession, error)
	// Scrub overwrites what secrets may have left behind in files of the database, if something was masked since the last
	// time. It calls progress now and then.
	Scrub(ctx context.Context, progress func(done, total int64)) error
}

// ErrNoToken refuses a masking that would change more than secrets.
var ErrNoToken = errors.New("only tokens may replace stored bytes")

// Hash is a sha256. Its text is hexadecimal digits.
type Hash [32]byte

// UnmarshalText implements encoding.TextUnmarshaler.
func (h *Hash) UnmarshalText(text []byte) error {
	if n, err := hex.Decode(h[:], text[:min(len(text), 2*len(h))]); err != nil || n != len(h) || len(text) != 2*n {
		return errors.New("not a sha256 of 64 hexadecimal digits")
	}
	return nil
}

// Token replaces the bytes at a position: [rule:hash], or asterisks for a secret that is too short for that.
type Token struct {
	Start int    `json:"start"` // offset of its first byte
	Text  string `json:"text"`
}

// Masking is what to mask in one stream.
type Masking struct {
	Stream int64 `json:"-"`
	// By is the user who asks: the daemon of that user masks what it sends in the same way. 0: the server masks by itself.
	// Lines that it masks are listed, and the same lines are stored with these tokens when they come again.
	By          int64            `json:"-"`
	At          time.Time        `json:"-"`
	Lines       []LineMask       `json:"lines"`
	Checkpoints []CheckpointMask `json:"checkpoints"`
	Files       []FileMask       `json:"files"` // attachments and versions of documents
}

// LineMask is the tokens of one line. Bytes that others replaced since count too.
type LineMask struct {
	Epoch      int64   `json:"-"` // Epoch.ID
	Generation int64   `json:"generation"`
	Line       int64   `json:"line"`
	SHA256     Hash    `json:"sha256"` // of the stored bytes, without a newline
	Tokens     []Token `json:"tokens"` // ascending
}

// CheckpointMask is the tokens of one text of a checkpoint.
type CheckpointMask struct {
	ID     string  `json:"id"`
	SHA256 Hash    `json:"sha256"` // of the text: the summary, the port id or the path of an active file
	Tokens []Token `json:"tokens"` // ascending
}

// FileMask is the tokens of a file's content. Its address changes with it, wherever its user's sessions refer to it.
type FileMask struct {
	SHA256 Hash    `json:"sha256"`
	Tokens []Token `json:"tokens"` // ascending
}

// Masked counts what a masking changed.
type Masked struct {
	Lines       int64 `json:"lines"`
	Checkpoints int64 `json:"checkpoints"`
	Files       int64 `json:"files"`
}

// Any reports whether something changed.
func (m Masked) Any() bool { return m != Masked{} }

// MaskedSession is what was masked of one stream, by one user.
type MaskedSession struct {
	Owner     int64     `json:"-"`
	SessionID string    `json:"session_id"`
	Machine   string    `json:"machine"`
	By        int64     `json:"-"`  // user; 0: the server
	At        time.Time `json:"at"` // the last time
	Masked    Masked    `json:"-"`
}

// MaskedLine is a line that the server masked by itself.
type MaskedLine struct{ Generation, Line int64 }
