package control

// ForgetRequest is the body of POST /v1/forget.
type ForgetRequest struct {
	Session string `json:"session"` // its whole id: the main transcript's, or an agent's stream
}

// ForgetResult says what was removed, and what not. Nothing of the session is sent from then on.
type ForgetResult struct {
	SchemaVersion int      `json:"schema_version"`
	Session       string   `json:"session"`
	Transcripts   int      `json:"transcripts"`      // remembered here: the session's and its agents'
	Lines         int64    `json:"lines"`            // removed from servers
	Waiting       int64    `json:"waiting"`          // entries that waited to be sent, removed
	Dead          int64    `json:"dead_letters"`     // removed
	Owed          []string `json:"owed"`             // servers that could not be told; it is tried until they are
	Detail        string   `json:"detail,omitempty"` // why not
	Kept          []string `json:"kept"`             // servers that keep what they have: plain ones, and those that do not let this key remove it
	OnDisk        []string `json:"on_disk"`          // files that stay as they are
}
