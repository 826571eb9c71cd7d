package control

import "time"

// Document is a file that belongs to a session for its whole life.
type Document struct {
	Path      string    `json:"path"` // relative to the session's working directory, slashes
	AddedAt   time.Time `json:"added_at"`
	ChangedAt time.Time `json:"changed_at,omitzero"` // of its newest version
	Version   int64     `json:"version"`             // from 1; 0 while none was read
	Size      int64     `json:"size,omitempty"`
	SHA256    string    `json:"sha256,omitempty"`
	Deleted   bool      `json:"deleted,omitempty"`
	TooLarge  bool      `json:"too_large,omitempty"` // larger than option document_cap: its content is not sent
	Problem   string    `json:"problem,omitempty"`   // why it cannot be read just now
}

// Documents is the answer of GET /v1/documents?session= and of POST and DELETE /v1/documents.
type Documents struct {
	SchemaVersion int        `json:"schema_version"`
	Session       string     `json:"session"`
	Cwd           string     `json:"cwd"`
	Documents     []Document `json:"documents"` // by time of linking
}

// DocumentRequest is the body of POST /v1/documents (link) and DELETE /v1/documents (unlink).
type DocumentRequest struct {
	Session string `json:"session"`
	// Path is relative to Base, or absolute. A link that leads out of the session's working directory is refused.
	Path string `json:"path"`
	Base string `json:"base,omitempty"` // "": the session's working directory
}

// InitQuery is the query of GET /v1/init.
type InitQuery struct {
	Session string
	Cwd     string
}

// Init is the answer of GET /v1/init: what a session's Claude is told at its start. The text is the same at every
// start of the session while its documents are.
type Init struct {
	SchemaVersion int    `json:"schema_version"`
	Text          string `json:"text"`
}
