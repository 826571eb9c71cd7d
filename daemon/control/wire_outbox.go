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

// Pause is a time in which nothing is sent. Lines are still read into the outbox, so that nothing is lost.
type Pause struct {
	Since time.Time  `json:"since"`
	Until *time.Time `json:"until,omitempty"` // missing: until resumed
}

// PauseRequest is the body of POST /v1/pause.
type PauseRequest struct {
	For string `json:"for,omitempty"` // a Go duration; empty: until resumed
}

// PauseState is the answer of POST /v1/pause and POST /v1/resume.
type PauseState struct {
	SchemaVersion int    `json:"schema_version"`
	Paused        bool   `json:"paused"`
	Was           bool   `json:"was"` // whether it was paused before
	Pause         *Pause `json:"pause,omitempty"`
}

// FlushResult is the answer of POST /v1/flush.
type FlushResult struct {
	SchemaVersion int   `json:"schema_version"`
	Paused        bool  `json:"paused"`  // the user's pause is still in force: nothing is sent
	Waiting       int64 `json:"waiting"` // entries to be sent now
}

// VerifyFinding is a reason why a report is not equal.
type VerifyFinding struct {
	Kind string `json:"kind"` // differences, past, dead_letters, withheld, held_back, not_delivered
	// Transcripts with differences, else lines or entries; transcripts that are held back.
	Count int64  `json:"count"`
	Text  string `json:"text"`
	Fix   string `json:"fix"` // the command that fixes it, or what else does
}

// ExclusionCount counts what one rule leaves out.
type ExclusionCount struct {
	Why         string `json:"why"`
	Transcripts int    `json:"transcripts,omitempty"`
	Lines       int64  `json:"lines,omitempty"`
}

// ResendRequest is the body of POST /v1/resend.
type ResendRequest struct {
	Session   string `json:"session,omitempty"`    // a session's name, or a prefix that only one session has
	All       bool   `json:"all,omitempty"`        // every session
	FromStart bool   `json:"from_start,omitempty"` // every line, also those that the server has
}

// ResendResult says which transcripts are sent again. Their lines are read and queued after the answer.
type ResendResult struct {
	SchemaVersion int                `json:"schema_version"`
	Transcripts   int                `json:"transcripts"` // compared with the server
	Lines         int64              `json:"lines"`       // sent again
	Bytes         int64              `json:"bytes"`       // sent again, before compression
	Resent        []ResentTranscript `json:"resent"`
	Skipped       []SkippedFile      `json:"skipped,omitempty"` // not sent again
}

// ResentTranscript is a transcript that is sent again from an earlier line.
type ResentTranscript struct {
	SessionID  string `json:"session_id"`
	Path       string `json:"path"`
	From       int64  `json:"from"` // the first line that is sent again
	Lines      int64  `json:"lines"`
	Generation uint32 `json:"generation"` // the new one, which the lines are sent in
}

// SkippedFile is a transcript that cannot be sent again.
type SkippedFile struct {
	SessionID string `json:"session_id"`
	Path      string `json:"path"`
	Why       string `json:"why"`
}

// ReloadResult is the answer of POST /v1/reload.
type ReloadResult struct {
	SchemaVersion int      `json:"schema_version"`
	Config        string   `json:"config"`            // the file that was read
	Changed       []string `json:"changed,omitempty"` // keys whose new value is in force
	Restart       []string `json:"restart,omitempty"` // keys whose new value needs a restart
}

// Excludes is the answer of GET /v1/exclude.
type Excludes struct {
	SchemaVersion int    `json:"schema_version"`
	Config        string `json:"config"` // the file to edit
	// Source of the patterns in force; default, file, environment, flag.
	Origin   string      `json:"origin"`
	Patterns []Exclusion `json:"patterns"`         // the patterns of exclude_projects
	Others   []Reason    `json:"others,omitempty"` // other reasons why transcripts are not delivered
}

// Exclusion is a pattern of folders whose transcripts are not delivered.
type Exclusion struct {
	Pattern     string `json:"pattern"`
	Transcripts int    `json:"transcripts"` // how many transcripts on disk are excluded by this now
}

// Reason is something else that keeps transcripts from being delivered.
type Reason struct {
	Why         string `json:"why"`
	Transcripts int    `json:"transcripts"` // how many transcripts on disk are excluded by this now
}

// RemaskRequest is the body of POST /v1/redact/apply.
type RemaskRequest struct {
	DryRun bool `json:"dry_run,omitempty"` // count only
	Offset int  `json:"offset,omitempty"`  // how many transcripts were done by earlier requests: their next
	// Old asks for the other half: nothing is sent again, and the answer is in RemaskResult.Old.
	Old bool `json:"old,omitempty"` // mask in place, or count, what servers have stored in the clear
}

// RemaskResult counts the lines, in some transcripts, that servers have in another form than the masking rules in force
// produce.
type RemaskResult struct {
	SchemaVersion int   `json:"schema_version"`
	Total         int   `json:"total"`          // transcripts on disk
	Next          int   `json:"next,omitempty"` // offset of the next request; 0: all are done
	Transcripts   int   `json:"transcripts"`    // transcripts with such lines
	Lines         int64 `json:"lines"`          // such lines
	Clear         int64 `json:"clear"`          // such lines that servers have with secrets in clear
	// Lines sent again: from the first of these in each transcript to its end.
	Resent int64 `json:"resent"`

	Old *OldBytes `json:"old,omitempty"` // what servers had stored in the clear; only with old
}

// OldBytes counts what servers have stored in the clear, in some transcripts of this machine.
type OldBytes struct {
	Total       int   `json:"total"`          // transcripts on servers
	Next        int   `json:"next,omitempty"` // offset of the next request; 0: all are done
	Transcripts int   `json:"transcripts"`    // transcripts with something to mask
	Lines       int64 `json:"lines"`          // stored lines to mask, in every generation
	Checkpoints int64 `json:"checkpoints"`    // checkpoints to mask
	Files       int64 `json:"files"`          // attachments and versions of documents to mask
	// Servers that speak only the base protocol: they cannot mask.
	Plain []string `json:"plain_servers,omitempty"`
}
