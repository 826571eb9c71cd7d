package control

import "time"

// OutboxList is the answer of GET /v1/outbox: what waits, oldest first.
type OutboxList struct {
	SchemaVersion int         `json:"schema_version"`
	Outbox        Outbox      `json:"outbox"`
	Pause         *Pause      `json:"pause,omitempty"`
	Servers       []Server    `json:"servers"`
	Rows          []OutboxRow `json:"rows"`
	Next          int         `json:"next,omitempty"` // offset of the next page; missing on the last
}

// OutboxRow is what waits of one transcript for one server.
type OutboxRow struct {
	Server   string    `json:"server"`
	Session  string    `json:"session"`
	Path     string    `json:"path,omitempty"` // below the watched root
	Kind     string    `json:"kind"`           // lines include what is derived from them; lines, blobs
	Batches  int64     `json:"batches"`
	Entries  int64     `json:"entries"`
	Bytes    int64     `json:"bytes"`  // uncompressed
	Stored   int64     `json:"stored"` // compressed
	OldestAt time.Time `json:"oldest_at"`
}

// DeadLetters is the answer of GET /v1/outbox/dead, in the order in which they were queued.
type DeadLetters struct {
	SchemaVersion int          `json:"schema_version"`
	Letters       []DeadLetter `json:"letters"`
}

// DeadLetter is an entry that a server refuses because of its content.
type DeadLetter struct {
	ID         string    `json:"id"`
	Server     string    `json:"server"`
	Session    string    `json:"session"`
	Path       string    `json:"path,omitempty"` // below the watched root
	Generation uint32    `json:"generation"`
	Line       int64     `json:"line"`           // for other kinds: the position in the batch
	Kind       string    `json:"kind"`           // lines, checkpoints, documents, blob
	Name       string    `json:"name,omitempty"` // of a blob: its path below the session's folder
	Entries    int       `json:"entries"`        // more than one if the whole batch is damaged
	Bytes      int64     `json:"bytes"`          // uncompressed
	Reason     string    `json:"reason"`         // rejected, too_large, damaged
	Status     int       `json:"status,omitempty"`
	Answer     string    `json:"answer,omitempty"` // the first bytes of the server's answer
	At         time.Time `json:"at"`
}

// DeadRequest is the body of POST /v1/outbox/dead/retry and /v1/outbox/dead/drop: some letters, or all of them.
type DeadRequest struct {
	IDs []string `json:"ids,omitempty"`
	All bool     `json:"all,omitempty"`
}

// DropServerRequest is the body of POST /v1/outbox/drop. It names a retired server.
type DropServerRequest struct {
	Server string `json:"server"` // the URL of a retired server
}

// DropServerResult counts what was removed.
type DropServerResult struct {
	SchemaVersion int    `json:"schema_version"`
	Server        string `json:"server"`
	Rows          int64  `json:"rows"`
	Entries       int64  `json:"entries"` // lines in those batches
	Letters       int64  `json:"letters"` // dead letters
}

// DeadResult is how many letters were queued again or dropped: all that were named, or none and an Error.
type DeadResult struct {
	SchemaVersion int `json:"schema_version"`
	Letters       int `json:"letters"`
}
