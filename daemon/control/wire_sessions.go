package control

import "time"

// SessionsQuery is the query of GET /v1/sessions.
type SessionsQuery struct {
	Project string // name of a project, or a folder: sessions that were started in it or below it; "" all
	Page
}

// Page is a part of a long list: at most Limit items from Offset on. Limit 0 is 100; at most 1000 are given.
type Page struct{ Offset, Limit int }

// Sessions is the answer of GET /v1/sessions: main transcripts on disk, most recently changed first.
type Sessions struct {
	SchemaVersion int       `json:"schema_version"`
	Census        Census    `json:"census"`
	Matching      int       `json:"matching"` // sessions that match, on all pages
	Sessions      []Session `json:"sessions"`
	Next          int       `json:"next,omitempty"` // offset of the next page; missing on the last
}

// Census counts everything on disk, whatever the query.
type Census struct {
	Projects int            `json:"projects"`
	Sessions int            `json:"sessions"`
	Agents   int            `json:"agents"`
	Bytes    int64          `json:"bytes"`             // of all transcripts
	Largest  []ProjectTotal `json:"largest,omitempty"` // the ten largest projects
}

// ProjectTotal counts one project.
type ProjectTotal struct {
	Project  string `json:"project"`
	Cwd      string `json:"cwd,omitempty"`
	Sessions int    `json:"sessions"`
	Bytes    int64  `json:"bytes"` // of sessions and their agents
}

// Session is one main transcript.
type Session struct {
	Session      string    `json:"session"` // the stream's name; before delivery, the file's
	Project      string    `json:"project"`
	Cwd          string    `json:"cwd,omitempty"`
	Path         string    `json:"path"`
	Server       string    `json:"server,omitempty"`
	Bytes        int64     `json:"bytes"`
	ReadBytes    int64     `json:"read_bytes"`
	Lines        int64     `json:"lines"`        // lines read
	Acknowledged int64     `json:"acknowledged"` // how many of lines the servers have
	Waiting      int64     `json:"waiting"`      // entries in the outbox, from all generations
	Generation   uint32    `json:"generation"`
	ChangedAt    time.Time `json:"changed_at"`
	Excluded     string    `json:"excluded,omitempty"` // why it is not delivered
	Agents       int       `json:"agents"`             // number of agent transcripts
}

// ForgetRequest is the body of POST /v1/forget.
type ForgetRequest struct {
	Session string `json:"session"` // the whole id of a session, or an agent's stream name
}

// ForgetResult says what was removed and what was not. Nothing of the session is sent any more.
type ForgetResult struct {
	SchemaVersion int      `json:"schema_version"`
	Session       string   `json:"session"`
	Transcripts   int      `json:"transcripts"`      // transcripts on record here, agents' included
	Lines         int64    `json:"lines"`            // lines removed from servers
	Waiting       int64    `json:"waiting"`          // queued entries removed
	Dead          int64    `json:"dead_letters"`     // dead letters removed
	Pending       []string `json:"pending"`          // servers not reached yet; the daemon keeps trying
	Detail        string   `json:"detail,omitempty"` // why servers could not be reached
	Kept          []string `json:"kept"`             // servers that keep their copy: plain, or this key may not remove it
	OnDisk        []string `json:"on_disk"`          // files that stay on disk
}
