// Package control is the daemon's local interface: HTTP and JSON over a Unix socket that only its owner may open. It
// holds the wire types, the handler and the client. It does not know what the answers mean; Daemon makes them.
package control

import "time"

// SchemaVersion is the version of every JSON document of this package. It rises when the meaning of a member changes.
const SchemaVersion = 1

// Values of Status.State.
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
	Config        string    `json:"config,omitempty" doc:"the configuration file; it need not exist"`
	State         string    `json:"state,omitempty" doc:"the state of the whole in one word"`
	Pause         *Pause    `json:"pause,omitempty"`
	Servers       []Server  `json:"servers,omitempty" doc:"your own server first"`
	Files         *Files    `json:"files,omitempty"`
	Outbox        *Outbox   `json:"outbox,omitempty"`
	Sent          *Sent     `json:"sent,omitempty"`
	Watch         *Watch    `json:"watch,omitempty"`
	Process       *Process  `json:"process,omitempty"`
	Advice        []Advice  `json:"advice,omitempty"`
	TookUS        int64     `json:"took_us,omitempty" doc:"time to answer, in microseconds"`
}

// Files counts transcripts on disk now.
type Files struct {
	Tracked   int   `json:"tracked"`
	Sessions  int   `json:"sessions" doc:"main transcripts, without agents"`
	Excluded  int   `json:"excluded" doc:"opted out, not read"`
	Bytes     int64 `json:"bytes"`
	ReadBytes int64 `json:"read_bytes" doc:"bytes before the cursors"`
	Lines     int64 `json:"lines" doc:"lines before the cursors"`
	Vanished  int   `json:"vanished" doc:"remembered, no longer on disk"`
	Rewinds   int64 `json:"rewinds" doc:"found since start"`
	Malformed int64 `json:"malformed" doc:"lines on disk that are not JSON"`
	Oversize  int64 `json:"oversize" doc:"lines on disk that are longer than line_cap"`
	Masked    int64 `json:"masked,omitempty" doc:"secrets masked in lines, since start"`
}

// Outbox counts what is not acknowledged, including requests in flight.
type Outbox struct {
	Batches  int64      `json:"batches"`
	Entries  int64      `json:"entries"`
	Bytes    int64      `json:"bytes" doc:"uncompressed"`
	Stored   int64      `json:"stored" doc:"compressed, including dead letters; compare with cap"`
	Cap      int64      `json:"cap"`
	OldestAt *time.Time `json:"oldest_at,omitempty"`
	Dead     int64      `json:"dead_letters"`
	Withheld int64      `json:"withheld" doc:"entries not sent because the server is plain"`
}

// Sent counts acknowledged entries since the daemon started.
type Sent struct {
	Entries  int64      `json:"entries"`
	Bytes    int64      `json:"bytes" doc:"uncompressed"`
	Requests int64      `json:"requests"`
	LastAt   *time.Time `json:"last_at,omitempty"`
}

// Server is one destination.
type Server struct {
	URL           string     `json:"url"`
	State         string     `json:"state" enum:"ok,unknown,retrying,refused"`
	Protocol      string     `json:"protocol" enum:"ccship,plain,unknown"`
	Detail        string     `json:"detail,omitempty"`
	Hint          string     `json:"hint,omitempty"`
	Kind          string     `json:"kind,omitempty" doc:"the kind of trouble"`
	RetryAt       *time.Time `json:"retry_at,omitempty"`
	LastOKAt      *time.Time `json:"last_ok_at,omitempty" doc:"when it last acknowledged something"`
	LastContactAt *time.Time `json:"last_contact_at,omitempty" doc:"last answer without fault since the daemon started"`
	ContactAge    float64    `json:"last_contact_age_seconds,omitempty" doc:"how long ago that was"`
	Probe         *Probe     `json:"probe,omitempty" doc:"the last probe; none when there was no need"`
	Batches       int64      `json:"batches" doc:"waiting for this server"`
	MaxRequest    int64      `json:"max_request_bytes,omitempty"`
	Accepts       []string   `json:"accepts,omitempty" doc:"besides lines"`
	Items         int64      `json:"items_acknowledged,omitempty" doc:"checkpoints, document events, files: since start"`
	ItemsBefore   int64      `json:"items,omitempty" doc:"items_acknowledged under its former name"`
	Unwanted      int64      `json:"items_withheld,omitempty" doc:"items not sent since start: not accepted by the server"`
	Gone          int64      `json:"files_gone,omitempty" doc:"files changed or gone before they were sent, since start"`
}

// Watch says how the daemon notices changes.
type Watch struct {
	Mode    string   `json:"mode" enum:"events,poll"`
	Reason  string   `json:"reason,omitempty"`
	Roots   []string `json:"roots"`
	Unread  []string `json:"unread,omitempty" doc:"folders that could not be listed, with the error"`
	Watches int      `json:"watches,omitempty" doc:"folders watched; 0 when polling. The others are found by listing"`
	Limit   int      `json:"limit,omitempty"`
	NotReadFiles
}

// NotReadFiles names what is not read, although it may be conversations.
type NotReadFiles struct {
	Stray       []string `json:"stray,omitempty" doc:"*.jsonl files below the roots that are no transcripts"`
	NotFollowed []string `json:"not_followed,omitempty" doc:"links and folders that are not followed, with the reason"`
	Elsewhere   []Home   `json:"elsewhere,omitempty" doc:"folders with conversations that are not among the roots"`
}

// Home is a folder with conversations.
type Home struct {
	Path        string `json:"path"`
	Transcripts int    `json:"transcripts" doc:"of sessions"`
}

// Process is the daemon's resource usage.
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
	Wait    bool   `json:"wait,omitempty" doc:"answer when every line on disk is settled"`
	Timeout string `json:"timeout,omitempty" doc:"a Go duration"`
}

// SyncResult says how a sync ended.
type SyncResult struct {
	SchemaVersion int             `json:"schema_version"`
	Done          bool            `json:"done"`
	Reason        string          `json:"reason,omitempty" doc:"why it is not done"`
	Detail        string          `json:"detail,omitempty"`
	Hint          string          `json:"hint,omitempty" doc:"what to do about the reason, if more is known than it"`
	Lines         int64           `json:"lines" doc:"lines in the transcripts on disk when the sync ended"`
	Acknowledged  int64           `json:"acknowledged" doc:"how many of lines the servers have"`
	Dead          int64           `json:"dead_letters"`
	Excluded      int64           `json:"excluded"`
	Withheld      int64           `json:"withheld"`
	Waiting       int64           `json:"waiting"`
	Resumed       bool            `json:"resumed,omitempty" doc:"the sync ended the user's pause"`
	Retired       []RetiredServer `json:"retired,omitempty" doc:"servers that get no new lines; not waited for or counted"`
}

// VerifyRequest is the body of POST /v1/verify.
type VerifyRequest struct {
	Session string `json:"session,omitempty" doc:"only transcripts whose stream name starts with this"`
	Timeout string `json:"timeout,omitempty" doc:"of the sync that comes first; a Go duration"`
	Deep    bool   `json:"deep,omitempty" doc:"every generation, and transcripts that are no longer on disk"`
	Repair  bool   `json:"repair,omitempty" doc:"send again what is missing or different, and compare once more"`
}

// VerifyEvent is one line of the answer of POST /v1/verify (application/x-ndjson): progress, then one report.
type VerifyEvent struct {
	Progress *VerifyProgress `json:"progress,omitempty"`
	Report   *VerifyReport   `json:"report,omitempty"`
	Error    *Error          `json:"error,omitempty"`
}

// VerifyProgress counts bytes of transcripts compared so far, or sent again.
type VerifyProgress struct {
	Sending    bool  `json:"sending,omitempty" doc:"a repair sends; else transcripts are compared"`
	Files      int   `json:"files"`
	FilesTotal int   `json:"files_total"`
	Bytes      int64 `json:"bytes"`
	BytesTotal int64 `json:"bytes_total"`
}

// VerifyReport compares the disk with the server.
type VerifyReport struct {
	SchemaVersion int               `json:"schema_version"`
	Equal         bool              `json:"equal"`
	Incomplete    string            `json:"incomplete,omitempty" doc:"why the sync before did not finish; then not equal"`
	Proven        bool              `json:"proven" doc:"false with a plain server: acknowledged, but not compared"`
	Files         int               `json:"files"`
	Lines         int64             `json:"lines"`
	Bytes         int64             `json:"bytes"`
	Excluded      int64             `json:"excluded" doc:"lines not sent: exclude_types, or older than the first start"`
	ExcludedFiles int               `json:"excluded_files" doc:"transcripts of projects that opted out"`
	ExcludedWhy   []ExclusionCount  `json:"excluded_why,omitempty" doc:"the rules that leave them out"`
	Dead          int64             `json:"dead_letters" doc:"entries that a server refused; then not equal"`
	Withheld      int64             `json:"withheld" doc:"lines that a plain server cannot take; then not equal"`
	Oversize      int64             `json:"oversize"`
	Masked        int64             `json:"masked,omitempty" doc:"secrets that the server holds masked"`
	ByServer      int64             `json:"masked_by_server,omitempty" doc:"lines that the server masked"`
	ByPolicy      int64             `json:"retired_by_policy,omitempty" doc:"lines that the server's policy removed"`
	ByPolicyOnly  int64             `json:"retired_unproven,omitempty" doc:"of those: masked so that only bytes prove it"`
	Unproven      int64             `json:"masked_unproven,omitempty" doc:"of masked: too short for a proof"`
	Clear         int64             `json:"clear,omitempty" doc:"lines sent before their secrets were masked"`
	Waiting       int64             `json:"waiting"`
	Vanished      int               `json:"vanished" doc:"no longer on disk; not compared"`
	Unfinished    int               `json:"unfinished,omitempty" doc:"transcripts whose last line has no end: not sent"`
	Began         int               `json:"began,omitempty" doc:"began meanwhile; not compared"`
	Resumed       bool              `json:"resumed,omitempty" doc:"the sync before ended the user's pause"`
	Retired       []RetiredServer   `json:"retired,omitempty" doc:"as in the result of a sync"`
	Attachments   AttachmentsReport `json:"attachments"`
	Deep          *DeepReport       `json:"deep,omitempty" doc:"when the request asks for deep"`
	Findings      []VerifyFinding   `json:"findings,omitempty" doc:"why it is not equal, with the commands that fix it"`
	Repaired      *ResendResult     `json:"repaired,omitempty" doc:"what a repair sent before the comparison"`
	Differences   []FileDifference  `json:"differences,omitempty"`
	Transcripts   []FileReport      `json:"transcripts,omitempty"`
	NotReadFiles
}

// AttachmentsReport counts the files next to transcripts: tool output too long for a line, and metadata of agents.
type AttachmentsReport struct {
	Files    int   `json:"files" doc:"compared"`
	Bytes    int64 `json:"bytes" doc:"bytes of the files compared"`
	Missing  int   `json:"missing" doc:"not on the server as they are on disk; listed in differences"`
	Refused  int   `json:"refused" doc:"refused by the server: dead letters"`
	TooLarge int   `json:"too_large" doc:"not sent: larger than blob_cap"`
	Unproven int   `json:"unproven" doc:"not sent: the server does not accept files"`
}

// RetiredServer is a server that no more lines go to, and that some still wait for.
type RetiredServer struct {
	URL     string `json:"url"`
	Batches int64  `json:"batches"`
	Entries int64  `json:"entries"`
}

// DeepReport counts what a server has beyond the transcripts on disk. What differs is among the Differences.
type DeepReport struct {
	Past    DeepCount      `json:"past" doc:"generations that a rewind ended; the server's bytes match their hashes"`
	Gone    DeepCount      `json:"gone" doc:"transcripts no longer on disk; the server's bytes match their hashes"`
	Earlier DeepCount      `json:"earlier" doc:"of earlier states; equal to lines still on disk"`
	Retired DeepCount      `json:"retired" doc:"with lines that the server's policy removed; it has their hashes"`
	Stored  DeepCount      `json:"stored" doc:"complete on the server; no hash is left to compare with"`
	Why     []StoredReason `json:"stored_why,omitempty"`
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
	Clear      int64  `json:"clear,omitempty" doc:"lines sent before their secrets were masked"`
	Note       string `json:"note,omitempty" doc:"for example: excluded by .codetracker/config.json"`
}

// FileDifference says which lines of a transcript differ.
type FileDifference struct {
	SessionID  string  `json:"session_id"`
	Path       string  `json:"path"`
	Epoch      string  `json:"epoch,omitempty" doc:"of an earlier state file; else that of the transcript"`
	Generation uint32  `json:"generation"`
	Past       bool    `json:"past,omitempty" doc:"of the past: nothing here can repair it"`
	Missing    []Range `json:"missing,omitempty" doc:"on disk, not on the server"`
	Differ     []Range `json:"differ,omitempty" doc:"other bytes"`
	Extra      []Range `json:"extra,omitempty" doc:"on the server, not on disk"`
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

// ContactFresh is how long a server's last answer counts as current; a later request for the status probes the server.
const ContactFresh = 10 * time.Second

// Probe is the result of a probe: a request that only asks a server to answer. The daemon probes only when a status is
// requested.
type Probe struct {
	At     time.Time `json:"at" doc:"when the probe ended"`
	Age    float64   `json:"age_seconds" doc:"how long ago, when the status was made"`
	OK     bool      `json:"ok" doc:"the server answers and accepts the API key"`
	Kind   string    `json:"kind,omitempty" doc:"the kind of trouble, as in a server's kind"`
	Detail string    `json:"detail,omitempty"`
	Hint   string    `json:"hint,omitempty"`
}

// StatusQuery says how fresh a status must be.
type StatusQuery struct {
	// Probe selects how to probe the servers silent for ContactFresh: ProbeWait, ProbeBehind, or "" for none.
	Probe string
}

// Values of StatusQuery.Probe.
const (
	ProbeWait   = "wait"   // the answer has what the probes found; it takes up to a second
	ProbeBehind = "behind" // the answer does not wait: a later status has the results
)
