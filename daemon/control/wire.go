// Package control is the daemon's local interface: HTTP and JSON over a Unix socket that only its owner may open.
// It holds the wire types, the handler and the client; what the answers say is the business of the Daemon behind it.
package control

import "time"

// SchemaVersion is the version of every JSON document of this package. It rises when a member changes its meaning.
const SchemaVersion = 1

// What Status.State can be.
const (
	StateWatching  = "watching"
	StateImporting = "importing"
	StateReading   = "reading"
	StateSending   = "sending"
	StateRetrying  = "retrying"
	StatePaused    = "paused"  // by the user
	StateRefused   = "refused" // by a server
	StateFull      = "full"
	StateNoServer  = "no_server"
)

// Status is the answer of GET /v1/status, and of `ccship status --json`.
type Status struct {
	SchemaVersion int       `json:"schema_version"`
	Running       bool      `json:"running"`
	Version       string    `json:"version,omitempty"`
	PID           int       `json:"pid,omitempty"`
	StartedAt     time.Time `json:"started_at,omitzero"`
	Config        string    `json:"config,omitempty"` // the configuration file that was read, which need not exist
	// State is one word for the whole: "watching", "importing", "reading", "sending", "retrying", "paused" (by the user:
	// see Pause), "refused" (a server refuses what it is sent), "full", "no_server".
	State   string   `json:"state,omitempty"`
	Pause   *Pause   `json:"pause,omitempty"`
	Servers []Server `json:"servers,omitempty"` // the user's own server first
	Files   *Files   `json:"files,omitempty"`
	Outbox  *Outbox  `json:"outbox,omitempty"`
	Sent    *Sent    `json:"sent,omitempty"`
	Watch   *Watch   `json:"watch,omitempty"`
	Process *Process `json:"process,omitempty"`
	Advice  []Advice `json:"notices,omitempty"`
	TookUS  int64    `json:"took_us,omitempty"` // microseconds the daemon needed to answer
}

// Files counts transcripts on disk now.
type Files struct {
	Tracked   int   `json:"tracked"`
	Sessions  int   `json:"sessions"` // main transcripts among them
	Excluded  int   `json:"excluded"` // opted out: not read
	Bytes     int64 `json:"bytes"`
	ReadBytes int64 `json:"read_bytes"` // of Bytes, those behind the cursors
	Lines     int64 `json:"lines"`      // behind the cursors
	Vanished  int   `json:"vanished"`   // remembered, no longer on disk
	Rewinds   int64 `json:"rewinds"`    // found since start
	Malformed int64 `json:"malformed"`  // lines that are no JSON object, since start
	Oversize  int64 `json:"oversize"`   // lines above the cap, since start
}

// Outbox counts what is not acknowledged, in flight included.
type Outbox struct {
	Batches  int64      `json:"batches"`
	Entries  int64      `json:"entries"`
	Bytes    int64      `json:"bytes"`  // uncompressed
	Stored   int64      `json:"stored"` // compressed, as the cap counts them, dead letters included
	Cap      int64      `json:"cap"`
	OldestAt *time.Time `json:"oldest_at,omitempty"`
	Dead     int64      `json:"dead_letters"`
	Withheld int64      `json:"withheld"` // entries a plain server did not get
}

// Sent counts acknowledged entries since the daemon started.
type Sent struct {
	Entries  int64      `json:"entries"`
	Bytes    int64      `json:"bytes"` // uncompressed
	Requests int64      `json:"requests"`
	LastAt   *time.Time `json:"last_at,omitempty"`
}

// Server is one destination.
type Server struct {
	URL        string     `json:"url"`
	State      string     `json:"state"`    // "ok", "unknown", "retrying", "refused"
	Protocol   string     `json:"protocol"` // "ccship", "plain", "unknown"
	Detail     string     `json:"detail,omitempty"`
	Hint       string     `json:"hint,omitempty"`
	Kind       string     `json:"kind,omitempty"` // of the trouble: "unreachable", "server_error", "busy", "refused_key", "refused", "not_found", "redirect", "protocol"
	RetryAt    *time.Time `json:"retry_at,omitempty"`
	LastOKAt   *time.Time `json:"last_ok_at,omitempty"`
	Batches    int64      `json:"batches"` // waiting for it
	MaxRequest int64      `json:"max_request_bytes,omitempty"`
	Accepts    []string   `json:"accepts,omitempty"` // beside lines: "checkpoints", "documents", "blobs"
	// Since start, of what lies beside lines: taken by the server, withheld for it does not take such things, and files
	// that changed or went away before they were sent.
	Items    int64 `json:"items,omitempty"`
	Unwanted int64 `json:"items_withheld,omitempty"`
	Gone     int64 `json:"files_gone,omitempty"`
}

// Watch says how changes are noticed.
type Watch struct {
	Mode   string   `json:"mode"` // "events" or "poll"
	Reason string   `json:"reason,omitempty"`
	Roots  []string `json:"roots"`
	Unread []string `json:"unread,omitempty"` // folders that could not be listed, with the error
	// Watches are the folders watched, of at most Limit; others are found by listing. Both 0 by polling.
	Watches int `json:"watches,omitempty"`
	Limit   int `json:"limit,omitempty"`
}

// Process is what the daemon costs.
type Process struct {
	RSS        int64   `json:"rss_bytes,omitempty"`
	CPUSeconds float64 `json:"cpu_seconds,omitempty"`
	StateFile  int64   `json:"state_file_bytes,omitempty"`
}

// Advice is something a person should know, with what to do about it.
type Advice struct {
	Kind string `json:"kind"`
	Text string `json:"text"`
	Hint string `json:"hint,omitempty"`
}

// SyncRequest is the body of POST /v1/sync.
type SyncRequest struct {
	Wait    bool   `json:"wait"`
	Timeout string `json:"timeout,omitempty"` // a Go duration
}

// SyncResult says how a sync ended.
type SyncResult struct {
	SchemaVersion int  `json:"schema_version"`
	Done          bool `json:"done"`
	// Reason is set when not done: "timeout", "unreachable", "refused_key", "refused", "no_server", "full",
	// "unreadable", "paused" (by the user, meanwhile).
	Reason       string `json:"reason,omitempty"`
	Detail       string `json:"detail,omitempty"`
	Lines        int64  `json:"lines"`        // lines known of transcripts on disk when it ended
	Acknowledged int64  `json:"acknowledged"` // of them
	Dead         int64  `json:"dead_letters"`
	Excluded     int64  `json:"excluded"`
	Withheld     int64  `json:"withheld"`
	Waiting      int64  `json:"waiting"`
	Resumed      bool   `json:"resumed,omitempty"` // it ended the user's pause
	// Retired are servers that lines no longer go to. What waits for them is not waited for, and not counted above.
	Retired []RetiredServer `json:"retired,omitempty"`
}

// VerifyRequest is the body of POST /v1/verify.
type VerifyRequest struct {
	Session string `json:"session,omitempty"` // only transcripts whose stream name starts with it
	Timeout string `json:"timeout,omitempty"` // for the sync before it
	Deep    bool   `json:"deep,omitempty"`    // the whole history: every generation, transcripts that are gone too
}

// VerifyEvent is one line of the answer of POST /v1/verify (application/x-ndjson): progress, then one report.
type VerifyEvent struct {
	Progress *VerifyProgress `json:"progress,omitempty"`
	Report   *VerifyReport   `json:"report,omitempty"`
	Error    *Error          `json:"error,omitempty"`
}

// VerifyProgress counts bytes of transcripts compared so far.
type VerifyProgress struct {
	Files      int   `json:"files"`
	FilesTotal int   `json:"files_total"`
	Bytes      int64 `json:"bytes"`
	BytesTotal int64 `json:"bytes_total"`
}

// VerifyReport compares the disk with the server.
type VerifyReport struct {
	SchemaVersion int  `json:"schema_version"`
	Equal         bool `json:"equal"`
	// Incomplete says why the sync before it did not finish; then the report is not equal.
	Incomplete    string            `json:"incomplete,omitempty"`
	Proven        bool              `json:"proven"` // false: a plain server, lines are acknowledged, not proven
	Files         int               `json:"files"`
	Lines         int64             `json:"lines"`
	Bytes         int64             `json:"bytes"`
	Excluded      int64             `json:"excluded"`       // lines left out by exclude_types or sent before ccship came
	ExcludedFiles int               `json:"excluded_files"` // transcripts whose project has opted out
	Dead          int64             `json:"dead_letters"`
	Withheld      int64             `json:"withheld"`
	Oversize      int64             `json:"oversize"`
	Waiting       int64             `json:"waiting"`
	Vanished      int               `json:"vanished"`          // no longer on disk, not compared
	Resumed       bool              `json:"resumed,omitempty"` // the sync before it ended the user's pause
	Retired       []RetiredServer   `json:"retired,omitempty"` // as in SyncResult
	Attachments   AttachmentsReport `json:"attachments"`
	Deep          *DeepReport       `json:"deep,omitempty"` // when it was asked for
	Differences   []FileDifference  `json:"differences,omitempty"`
	Transcripts   []FileReport      `json:"transcripts,omitempty"`
}

// AttachmentsReport counts the files beside transcripts: tool output too long for a line, and metadata of agents.
type AttachmentsReport struct {
	Files    int   `json:"files"`     // compared
	Bytes    int64 `json:"bytes"`     // of them
	Missing  int   `json:"missing"`   // of them not on the server as they are on disk; named among the Differences
	Refused  int   `json:"refused"`   // of them refused by the server: dead letters
	TooLarge int   `json:"too_large"` // not sent, for blob_cap
	Unproven int   `json:"unproven"`  // not sent, for the server does not take files
}

// RetiredServer is a server that no more lines go to, and that some still wait for.
type RetiredServer struct {
	URL     string `json:"url"`
	Batches int64  `json:"batches"`
	Entries int64  `json:"entries"`
}

// DeepReport counts what a server has beyond the transcripts on disk. What differs is among the Differences.
type DeepReport struct {
	// Past are generations that a rewind ended, and Gone are transcripts that are no longer on disk: their bytes, read
	// back from the server, have the hashes that were taken when they were read from the disk.
	Past DeepCount `json:"past"`
	Gone DeepCount `json:"gone"`
	// Stored is there without gaps, as far as can be told, but nothing on this machine can prove it any more.
	Stored DeepCount      `json:"stored"`
	Why    []StoredReason `json:"stored_why,omitempty"`
}

// DeepCount counts generations.
type DeepCount struct {
	Generations int   `json:"generations"`
	Lines       int64 `json:"lines"`
	Bytes       int64 `json:"bytes"`
}

// StoredReason is why some generations cannot be proven.
type StoredReason struct {
	Why         string `json:"why"`
	Generations int    `json:"generations"`
}

// FileReport is one transcript's comparison.
type FileReport struct {
	SessionID  string `json:"session_id"`
	Path       string `json:"path"`
	Server     string `json:"server"`
	Generation uint32 `json:"generation"`
	Lines      int64  `json:"lines"`
	Bytes      int64  `json:"bytes"`
	SHA256     string `json:"sha256"`
	Equal      bool   `json:"equal"`
	Note       string `json:"note,omitempty"` // e.g. "excluded by .codetracker/config.json"
}

// FileDifference says which lines of a transcript differ.
type FileDifference struct {
	SessionID  string  `json:"session_id"`
	Path       string  `json:"path"`
	Generation uint32  `json:"generation"`
	Missing    []Range `json:"missing,omitempty"` // on disk, not on the server
	Differ     []Range `json:"differ,omitempty"`  // other bytes
	Extra      []Range `json:"extra,omitempty"`   // on the server, not on disk
	Detail     string  `json:"detail,omitempty"`
}

// Range is lines First to Last, both included.
type Range struct {
	First int64 `json:"first"`
	Last  int64 `json:"last"`
}

// Error is the body of every answer that is not 2xx, and what --json prints when a verb fails.
type Error struct {
	Code      string `json:"code"`
	Message   string `json:"message"`
	Hint      string `json:"hint,omitempty"`
	Retryable bool   `json:"retryable,omitempty"`
}
