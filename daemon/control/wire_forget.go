package control

// ForgetRequest is the body of POST /v1/forget.
type ForgetRequest struct {
	Session string `json:"session" doc:"the whole id of a session, or an agent's stream name"`
}

// ForgetResult says what was removed, and what not. Nothing of the session is sent from then on.
type ForgetResult struct {
	SchemaVersion int      `json:"schema_version"`
	Session       string   `json:"session"`
	Transcripts   int      `json:"transcripts" doc:"transcripts on record here, agents' included"`
	Lines         int64    `json:"lines" doc:"lines removed from servers"`
	Waiting       int64    `json:"waiting" doc:"queued entries removed"`
	Dead          int64    `json:"dead_letters" doc:"dead letters removed"`
	Pending       []string `json:"pending" doc:"servers not reached yet; the daemon keeps trying"`
	Detail        string   `json:"detail,omitempty" doc:"why servers could not be reached"`
	Kept          []string `json:"kept" doc:"servers that keep their copy: plain, or this key may not remove it"`
	OnDisk        []string `json:"on_disk" doc:"files that stay on disk"`
}
