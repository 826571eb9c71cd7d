package control

import "time"

// Document is a file that belongs to a session for its whole life.
type Document struct {
	Path      string    `json:"path"` // relative to the session's working directory, with slashes
	AddedAt   time.Time `json:"added_at"`
	ChangedAt time.Time `json:"changed_at,omitzero"` // when the newest version was found
	Version   int64     `json:"version"`             // from 1; 0 before the first is read
	Size      int64     `json:"size,omitempty"`
	SHA256    string    `json:"sha256,omitempty"` // hex
	Deleted   bool      `json:"deleted,omitempty"`
	TooLarge  bool      `json:"too_large,omitempty"` // larger than document_cap: the content is not sent
	Problem   string    `json:"problem,omitempty"`   // why it cannot be read or sent now
}

// Documents is the answer of GET /v1/documents?session= and of POST and DELETE /v1/documents.
type Documents struct {
	SchemaVersion int        `json:"schema_version"`
	Session       string     `json:"session"`
	Cwd           string     `json:"cwd"`       // the session's working directory
	Documents     []Document `json:"documents"` // in the order of linking
}

// DocumentRequest is the body of POST /v1/documents (link) and DELETE /v1/documents (unlink).
type DocumentRequest struct {
	Session string `json:"session"`        // its id, or a beginning of it that only one has
	Path    string `json:"path"`           // absolute or relative to base; inside the session's working directory
	Base    string `json:"base,omitempty"` // empty: the session's working directory
	// AllowSecret is only for a command that a person types.
	// Link a file even if its name says it holds keys or passwords.
	AllowSecret bool `json:"allow_secret,omitempty"`
}

// LinkAnswerRequest is the body of POST /v1/documents/answer.
type LinkAnswerRequest struct {
	Action string `json:"action"` // link or unlink
	Path   string `json:"path"`   // as Claude named it
}

// LinkAnswer is the answer to POST /v1/documents/answer.
type LinkAnswer struct {
	SchemaVersion int    `json:"schema_version"`
	Nonce         string `json:"nonce"` // good for one answer with this action and path, in any session
}

// InitQuery is the query of GET /v1/init.
type InitQuery struct {
	Session string
	Cwd     string
	Confirm bool   // return a receipt
	Title   string // the name that the user gave the session; "" if none is known
	Source  string // why the session starts, as Claude Code says it: "startup", "resume", "fork", …
}

// Init is the answer of GET /v1/init: what a session's Claude is shown at its start. The text is the same at every
// start of the session until its documents or its name change.
type Init struct {
	SchemaVersion int    `json:"schema_version"`
	Text          string `json:"text"` // in the language of option locale
	// For POST /v1/pending, once the text was passed on; with confirm.
	Receipt string `json:"receipt,omitempty"`
}
