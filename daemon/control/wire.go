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
	Config        string    `json:"config,omitempty"` // the configuration file; it need not exist
	State         string    `json:"state,omitempty"`  // the state of the whole in one word
	Pause         *Pause    `json:"pause,omitempty"`
	Servers       []Server  `json:"servers,omitempty"` // your own server first
	Files         *Files    `json:"files,omitempty"`
	Outbox        *Outbox   `json:"outbox,omitempty"`
	Sent          *Sent     `json:"sent,omitempty"`
	Watch         *Watch    `json:"watch,omitempty"`
	Process       *Process  `json:"process,omitempty"`
	Advice        []Advice  `json:"advice,omitempty"`
	TookUS        int64     `json:"took_us,omitempty"` // time to answer, in microseconds
}

// Files counts transcripts on disk now.
type Files struct {
	Tracked   int   `json:"tracked"`
	Sessions  int   `json:"sessions"` // main transcripts, without agents; one in several folders counts once
	Excluded  int   `json:"excluded"` // opted out, not read
	Bytes     int64 `json:"bytes"`
	ReadBytes int64 `json:"read_bytes"` // bytes before the cursors
	Lines     int64 `json:"lines"`      // lines before the cursors
	// Unfinished files end in a line that has no newline and is not delivered.
	Unfinished int   `json:"unfinished,omitempty"`
	Vanished   int   `json:"vanished"`         // remembered, no longer on disk
	Rewinds    int64 `json:"rewinds"`          // found since start
	Malformed  int64 `json:"malformed"`        // lines on disk that are not JSON
	Oversize   int64 `json:"oversize"`         // lines on disk that are longer than line_cap
	Masked     int64 `json:"masked,omitempty"` // secrets masked in lines, since start
}

// Outbox counts what is not acknowledged, including requests in flight.
type Outbox struct {
	Batches  int64      `json:"batches"`
	Entries  int64      `json:"entries"`
	Bytes    int64      `json:"bytes"`  // uncompressed
	Stored   int64      `json:"stored"` // compressed, including dead letters; compare with cap
	Cap      int64      `json:"cap"`
	OldestAt *time.Time `json:"oldest_at,omitempty"`
	Dead     int64      `json:"dead_letters"`
	Withheld int64      `json:"withheld"` // entries not sent because the server is plain
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
	URL      string     `json:"url"`
	State    string     `json:"state"`    // ok, unknown, retrying, refused
	Protocol string     `json:"protocol"` // ccship, plain, unknown
	Detail   string     `json:"detail,omitempty"`
	Hint     string     `json:"hint,omitempty"`
	Kind     string     `json:"kind,omitempty"` // the kind of trouble
	RetryAt  *time.Time `json:"retry_at,omitempty"`
	LastOKAt *time.Time `json:"last_ok_at,omitempty"` // when it last acknowledged something
	// Last answer without fault since the daemon started.
	LastContactAt *time.Time `json:"last_contact_at,omitempty"`
	ContactAge    float64    `json:"last_contact_age_seconds,omitempty"` // how long ago that was
	Probe         *Probe     `json:"probe,omitempty"`                    // the last probe; none when there was no need
	Batches       int64      `json:"batches"`                            // waiting for this server
	MaxRequest    int64      `json:"max_request_bytes,omitempty"`
	Accepts       []string   `json:"accepts,omitempty"` // besides lines
	// Checkpoints, document events, files: since start.
	Items int64 `json:"items_acknowledged,omitempty"`
	// Items not sent since start: not accepted by the server.
	Unwanted int64 `json:"items_withheld,omitempty"`
	// Files changed or gone before they were sent, since start.
	Gone int64 `json:"files_gone,omitempty"`
}

// Watch says how the daemon notices changes.
type Watch struct {
	Mode   string   `json:"mode"` // events, poll
	Reason string   `json:"reason,omitempty"`
	Roots  []string `json:"roots"`
	Unread []string `json:"unread,omitempty"` // folders that could not be listed, with the error
	// Folders watched; 0 when polling. The others are found by listing.
	Watches int `json:"watches,omitempty"`
	Limit   int `json:"limit,omitempty"`
	NotReadFiles
}

// NotReadFiles names what is not read, although it may be conversations.
type NotReadFiles struct {
	Stray []string `json:"stray,omitempty"` // *.jsonl files below the roots that are no transcripts
	// Links and folders that are not followed, with the reason.
	NotFollowed []string `json:"not_followed,omitempty"`
	Elsewhere   []Home   `json:"elsewhere,omitempty"` // folders with conversations that are not among the roots
}

// Home is a folder with conversations.
type Home struct {
	Path        string `json:"path"`
	Transcripts int    `json:"transcripts"` // of sessions
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
	Wait    bool   `json:"wait,omitempty"`    // answer when every line on disk is settled
	Timeout string `json:"timeout,omitempty"` // a Go duration
}

// SyncResult says how a sync ended.
type SyncResult struct {
	SchemaVersion int    `json:"schema_version"`
	Done          bool   `json:"done"`
	Reason        string `json:"reason,omitempty"` // why it is not done
	Detail        string `json:"detail,omitempty"`
	// What to do about the reason, if more is known than it.
	Hint         string `json:"hint,omitempty"`
	Lines        int64  `json:"lines"`        // lines in the transcripts on disk when the sync ended
	Acknowledged int64  `json:"acknowledged"` // how many of lines the servers have
	Dead         int64  `json:"dead_letters"`
	Excluded     int64  `json:"excluded"`
	Withheld     int64  `json:"withheld"`
	Waiting      int64  `json:"waiting"`
	Resumed      bool   `json:"resumed,omitempty"` // the sync ended the user's pause
	// Servers that get no new lines; not waited for or counted.
	Retired []RetiredServer `json:"retired,omitempty"`
}

// VerifyRequest is the body of POST /v1/verify.
type VerifyRequest struct {
	Session string `json:"session,omitempty"` // only transcripts whose stream name starts with this
	Timeout string `json:"timeout,omitempty"` // of the sync that comes first; a Go duration
	Deep    bool   `json:"deep,omitempty"`    // every generation, and transcripts that are no longer on disk
	Repair  bool   `json:"repair,omitempty"`  // send again what is missing or different, and compare once more
}

// VerifyEvent is one line of the answer of POST /v1/verify (application/x-ndjson): progress, then one report.
type VerifyEvent struct {
	Progress *VerifyProgress `json:"progress,omitempty"`
	Report   *VerifyReport   `json:"report,omitempty"`
	Error    *Error          `json:"error,omitempty"`
}

// VerifyProgress counts bytes of transcripts compared so far, or sent again.
type VerifyProgress struct {
	Sending    bool  `json:"sending,omitempty"` // a repair sends; else transcripts are compared
	Files      int   `json:"files"`
	FilesTotal int   `json:"files_total"`
	Bytes      int64 `json:"bytes"`
	BytesTotal int64 `json:"bytes_total"`
}

// VerifyReport compares the disk with the server.
type VerifyReport struct {
	SchemaVersion int  `json:"schema_version"`
	Equal         bool `json:"equal"`
	// Why the sync before did not finish; then not equal.
	Incomplete string `json:"incomplete,omitempty"`
	Proven     bool   `json:"proven"` // false with a plain server: acknowledged, but not compared
	Files      int    `json:"files"`
	Lines      int64  `json:"lines"`
	Bytes      int64  `json:"bytes"`
	// Lines not sent: exclude_types, or older than the first start.
	Excluded      int64            `json:"excluded"`
	ExcludedFiles int              `json:"excluded_files"`         // transcripts of projects that opted out
	ExcludedWhy   []ExclusionCount `json:"excluded_why,omitempty"` // the rules that leave them out
	Dead          int64            `json:"dead_letters"`           // entries that a server refused; then not equal
	Withheld      int64            `json:"withheld"`               // lines that a plain server cannot take; then not equal
	Oversize      int64            `json:"oversize"`
	Masked        int64            `json:"masked,omitempty"`           // secrets that the server holds masked
	ByServer      int64            `json:"masked_by_server,omitempty"` // lines that the server masked
	// Lines that the server's policy removed.
	ByPolicy int64 `json:"retired_by_policy,omitempty"`
	// Of those: masked so that only bytes prove it.
	ByPolicyOnly int64 `json:"retired_unproven,omitempty"`
	Unproven     int64 `json:"masked_unproven,omitempty"` // of masked: too short for a proof
	Clear        int64 `json:"clear,omitempty"`           // lines sent before their secrets were masked
	Waiting      int64 `json:"waiting"`
	Vanished     int   `json:"vanished"` // no longer on disk; not compared
	// Transcripts whose last line has no end: not sent.
	Unfinished  int               `json:"unfinished,omitempty"`
	Began       int               `json:"began,omitempty"`   // began meanwhile; not compared
	Resumed     bool              `json:"resumed,omitempty"` // the sync before ended the user's pause
	Retired     []RetiredServer   `json:"retired,omitempty"` // as in the result of a sync
	Attachments AttachmentsReport `json:"attachments"`
	Deep        *DeepReport       `json:"deep,omitempty"` // when the request asks for deep
	// Why it is not equal, with the commands that fix it.
	Findings    []VerifyFinding  `json:"findings,omitempty"`
	Repaired    *ResendResult    `json:"repaired,omitempty"` // what a repair sent before the comparison
	Differences []FileDifference `json:"differences,omitempty"`
	Transcripts []FileReport     `json:"transcripts,omitempty"`
	NotReadFiles
}

// AttachmentsReport counts the files next to transcripts: tool output too long for a line, and metadata of agents.
type AttachmentsReport struct {
	Files    int   `json:"files"`     // compared
	Bytes    int64 `json:"bytes"`     // bytes of the files compared
	Missing  int   `json:"missing"`   // not on the server as they are on disk; listed in differences
	Refused  int   `json:"refused"`   // refused by the server: dead letters
	TooLarge int   `json:"too_large"` // not sent: larger than blob_cap
	Unproven int   `json:"unproven"`  // not sent: the server does not accept files
}

// RetiredServer is a server that no more lines go to, and that some still wait for.
type RetiredServer struct {
	URL     string `json:"url"`
	Batches int64  `json:"batches"`
	Entries int64  `json:"entries"`
}

// DeepReport counts what a server has beyond the transcripts on disk. What differs is among the Differences.
type DeepReport struct {
	// Generations that a rewind ended; the server's bytes match their hashes.
	Past    DeepCount      `json:"past"`
	Gone    DeepCount      `json:"gone"`    // transcripts no longer on disk; the server's bytes match their hashes
	Earlier DeepCount      `json:"earlier"` // of earlier states; equal to lines still on disk
	Retired DeepCount      `json:"retired"` // with lines that the server's policy removed; it has their hashes
	Stored  DeepCount      `json:"stored"`  // complete on the server; no hash is left to compare with
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
	Clear      int64  `json:"clear,omitempty"` // lines sent before their secrets were masked
	Note       string `json:"note,omitempty"`  // for example: excluded by .codetracker/config.json
}

// FileDifference says which lines of a transcript differ.
type FileDifference struct {
	SessionID  string  `json:"session_id"`
	Path       string  `json:"path"`
	Epoch      string  `json:"epoch,omitempty"` // of an earlier state file; else that of the transcript
	Generation uint32  `json:"generation"`
	Past       bool    `json:"past,omitempty"`    // of the past: nothing here can repair it
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

// ContactFresh is how long a server's last answer counts as current; a later request for the status probes the server.
const ContactFresh = 10 * time.Second

// Probe is the result of a probe: a request that only asks a server to answer. The daemon probes only when a status is
// requested.
type Probe struct {
	At     time.Time `json:"at"`             // when the probe ended
	Age    float64   `json:"age_seconds"`    // how long ago, when the status was made
	OK     bool      `json:"ok"`             // the server answers and accepts the API key
	Kind   string    `json:"kind,omitempty"` // the kind of trouble, as in a server's kind
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
