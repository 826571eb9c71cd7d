package protocol

import (
	"encoding/json"
	"fmt"
)

// Version is the version of the extension that client and server speak.
const Version = 1

// StreamIdentity says in every request which transcript of which machine it is about. The golden requests fix the order
// of its members, and those of Extension.
type StreamIdentity struct {
	Version    int     `json:"v"`
	Machine    string  `json:"machine"`
	Host       string  `json:"host"`
	Epoch      string  `json:"epoch"`
	Path       string  `json:"path"`
	Cwd        string  `json:"cwd"`
	Project    string  `json:"project"`
	Parent     *string `json:"parent_session_id"` // nil: it has none
	Repository string  `json:"repository,omitempty"`
}

// Extension is the ccship object next to the entries of a request: what the base protocol cannot say of them.
type Extension struct {
	StreamIdentity
	Generation int64    `json:"generation"`
	RewoundTo  int64    `json:"rewound_to"` // line at which the generation starts
	From       Position `json:"from"`
	To         Position `json:"to"`
	EOFNewline *bool    `json:"eof_newline"` // absent: true
	Edges      []Edge   `json:"edges,omitempty"`
}

// Position is a place in a transcript, in bytes and lines.
type Position struct {
	Offset int64 `json:"offset"`
	Line   int64 `json:"line"`
}

// Edge is the bytes of a line around its object: [line_index, base64 before, base64 after].
type Edge struct {
	Line          int64
	Before, After []byte
}

// MarshalJSON writes the triple.
func (e Edge) MarshalJSON() ([]byte, error) {
	// Appended to an empty slice, bytes that are nil become "" instead of null.
	return json.Marshal([3]any{e.Line, append([]byte{}, e.Before...), append([]byte{}, e.After...)})
}

// UnmarshalJSON reads the triple.
func (e *Edge) UnmarshalJSON(b []byte) error {
	parts := [3]any{&e.Line, &e.Before, &e.After}
	triple := parts[:]
	if err := json.Unmarshal(b, &triple); err != nil {
		return err
	}
	if len(triple) != len(parts) {
		return fmt.Errorf("an edge has %d parts, not 3", len(triple))
	}
	return nil
}
