package control

import "time"

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
