package protocol

import (
	"encoding/hex"
	"errors"

	"github.com/ccship/ccship/transcript/redact"
)

// MaskRequest names secrets of one transcript of the caller's own, and the tokens that replace them.
type MaskRequest struct {
	Machine     string           `json:"machine"`
	Epoch       string           `json:"epoch,omitempty"` // of the lines
	Lines       []LineMask       `json:"lines,omitempty"`
	Checkpoints []CheckpointMask `json:"checkpoints,omitempty"`
	Files       []FileMask       `json:"files,omitempty"` // attachments and versions of documents
}

// LineMask has the tokens of one line. Bytes that others replaced since count too.
type LineMask struct {
	Epoch      int64          `json:"-"` // its ID on the server
	Generation int64          `json:"generation"`
	Line       int64          `json:"line"`
	SHA256     Hash           `json:"sha256"` // of the stored bytes, without a newline
	Tokens     []redact.Token `json:"tokens"` // ascending
}

// CheckpointMask has the tokens of one text of a checkpoint.
type CheckpointMask struct {
	ID     string         `json:"id"`
	SHA256 Hash           `json:"sha256"` // of the text: the summary, the port id or the path of an active file
	Tokens []redact.Token `json:"tokens"` // ascending
}

// FileMask has the tokens of a file's content. Its address changes with it, wherever its user's sessions refer to it.
type FileMask struct {
	SHA256 Hash           `json:"sha256"`
	Tokens []redact.Token `json:"tokens"` // ascending
}

// Masked counts what a masking changed.
type Masked struct {
	Lines       int64 `json:"lines"`
	Checkpoints int64 `json:"checkpoints"`
	Files       int64 `json:"files"`
}

// Any reports whether something changed.
func (m Masked) Any() bool { return m != Masked{} }

// Hash is a sha256. Its text is hexadecimal digits in lower case.
type Hash [32]byte

// MarshalText implements encoding.TextMarshaler.
func (h Hash) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, h[:]), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (h *Hash) UnmarshalText(text []byte) error {
	if n, err := hex.Decode(h[:], text[:min(len(text), 2*len(h))]); err != nil || n != len(h) || len(text) != 2*n {
		return errors.New("not a sha256 of 64 hexadecimal digits")
	}
	return nil
}
