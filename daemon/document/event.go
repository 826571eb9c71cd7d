package document

import (
	"bytes"
	"encoding/base64"
	"time"
	"unicode/utf8"
)

// What happens to a document, as on the wire.
const (
	kindLinked   = "linked" // with the content at that time
	kindUnlinked = "unlinked"
	kindModified = "modified"
	kindDeleted  = "deleted"
	kindRefused  = "refused" // only as the answer to a viewer
)

// Who changed a document, as on the wire.
const (
	byClaude = "claude" // one of its tools, whose result is in the transcript
	byMCP    = "mcp"    // Claude asked for the link
	byUser   = "user"   // the command line
	byViewer = "viewer"
	byOther  = "other"
)

// maxInline is the largest content that is sent inside its event, in bytes. A larger one is a blob.
const maxInline = 64 << 10

// event is an element of POST /api/documents.
type event struct {
	Path      string    `json:"path"`
	Change    string    `json:"change"`
	By        string    `json:"by"`
	AddedAt   time.Time `json:"added_at,omitzero"`
	At        time.Time `json:"at"`
	Version   int64     `json:"version,omitempty"`
	Size      int64     `json:"size"`
	SHA256    string    `json:"sha256,omitempty"`
	Encoding  string    `json:"encoding,omitempty"`
	Content   *string   `json:"content,omitempty"`
	Blob      string    `json:"blob,omitempty"` // SHA-256 of a blob that was sent before
	TooLarge  bool      `json:"too_large,omitempty"`
	Reason    string    `json:"reason,omitempty"`
	RequestID string    `json:"link_request,omitempty"`
	Line      *int64    `json:"line,omitempty"`
}

// newEvent returns the event of a change, without content.
func newEvent(c *change) event {
	d := &c.document
	e := event{
		Path: d.Path, Change: c.kind, By: c.by, At: time.Now().UTC().Truncate(time.Millisecond), Version: d.Version,
		Size: d.Size, SHA256: d.SHA256, TooLarge: d.TooLarge, RequestID: c.requestID, Reason: c.reason,
	}
	if c.kind == kindUnlinked || c.kind == kindRefused {
		e.Size, e.SHA256, e.TooLarge = 0, "", false
	}
	if d.AddedAt > 0 {
		e.AddedAt = time.UnixMilli(d.AddedAt).UTC()
	}
	if c.line >= 0 {
		e.Line = &c.line
	}
	return e
}

// inline puts a content into its event.
func (e *event) inline(content []byte) {
	text := string(content)
	e.Encoding = "utf-8"
	if !isText(content) {
		e.Encoding, text = "base64", base64.StdEncoding.EncodeToString(content)
	}
	e.Content = &text
}

func isText(content []byte) bool {
	return utf8.Valid(content) && bytes.IndexByte(content, 0) < 0
}
