package control

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
