package control

import "time"

// Pause is a time in which nothing is sent. Reading goes on into the outbox, so that nothing is lost.
type Pause struct {
	Since time.Time  `json:"since"`
	Until *time.Time `json:"until,omitempty"` // by the clock on the wall; none: until someone ends it
}

// PauseRequest is the body of POST /v1/pause.
type PauseRequest struct {
	For string `json:"for,omitempty"` // a Go duration; "" until someone ends it
}

// PauseState is the answer of POST /v1/pause and POST /v1/resume.
type PauseState struct {
	SchemaVersion int    `json:"schema_version"`
	Paused        bool   `json:"paused"`
	Was           bool   `json:"was"` // paused before
	Pause         *Pause `json:"pause,omitempty"`
}

// FlushResult is the answer of POST /v1/flush.
type FlushResult struct {
	SchemaVersion int   `json:"schema_version"`
	Paused        bool  `json:"paused"`  // the user's pause goes on: nothing is sent
	Waiting       int64 `json:"waiting"` // entries that are tried now
}

// ReloadResult is the answer of POST /v1/reload.
type ReloadResult struct {
	SchemaVersion int      `json:"schema_version"`
	Config        string   `json:"config"`            // the file that was read
	Changed       []string `json:"changed,omitempty"` // keys that are in force now with another value
	Restart       []string `json:"restart,omitempty"` // keys whose new value needs a restart
}

// Excludes is the answer of GET, POST and DELETE /v1/exclude.
type Excludes struct {
	SchemaVersion int         `json:"schema_version"`
	Config        string      `json:"config"`           // the file that is edited
	Origin        string      `json:"origin"`           // of the patterns in force: "file", "environment", "flag" or "default"
	Patterns      []Exclusion `json:"patterns"`         // of exclude_projects
	Others        []Reason    `json:"others,omitempty"` // what else keeps transcripts here
}

// Exclusion is a pattern of folders whose transcripts are not delivered.
type Exclusion struct {
	Pattern     string `json:"pattern"`
	Transcripts int    `json:"transcripts"` // on disk that it keeps here now
}

// Reason is something else that keeps transcripts from being delivered.
type Reason struct {
	Why         string `json:"why"`
	Transcripts int    `json:"transcripts"` // on disk that it keeps here now
}

// ExcludeRequest is the body of POST /v1/exclude; DELETE /v1/exclude takes the pattern as its query.
type ExcludeRequest struct {
	Pattern string `json:"pattern"`
}
