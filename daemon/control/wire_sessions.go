package control

import (
	"encoding/json"
	"time"
)

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

// Document is a file that belongs to a session for its whole life.
type Document struct {
	Path      string    `json:"path"` // relative to the session's working directory, with slashes
	AddedAt   time.Time `json:"added_at"`
	ChangedAt time.Time `json:"changed_at,omitzero"` // when the newest version was found
	Version   int64     `json:"version"`             // from 1; 0 before the first is read
	Size      int64     `json:"size,omitempty"`
	SHA256    string    `json:"sha256,omitempty"` // hex
	Deleted   bool      `json:"deleted,omitempty"`
	TooLarge  bool      `json:"too_large,omitempty"` // larger than document_cap: the content is not sent
	Problem   string    `json:"problem,omitempty"`   // why it cannot be read or sent now
}

// Documents is the answer of GET /v1/documents?session= and of POST and DELETE /v1/documents.
type Documents struct {
	SchemaVersion int        `json:"schema_version"`
	Session       string     `json:"session"`
	Cwd           string     `json:"cwd"`       // the session's working directory
	Documents     []Document `json:"documents"` // in the order of linking
}

// DocumentRequest is the body of POST /v1/documents (link) and DELETE /v1/documents (unlink).
type DocumentRequest struct {
	Session string `json:"session"`        // its id, or a beginning of it that only one has
	Path    string `json:"path"`           // absolute or relative to base; inside the session's working directory
	Base    string `json:"base,omitempty"` // empty: the session's working directory
	// AllowSecret is only for a command that a person types.
	// Link a file even if its name says it holds keys or passwords.
	AllowSecret bool `json:"allow_secret,omitempty"`
}

// LinkAnswerRequest is the body of POST /v1/documents/answer.
type LinkAnswerRequest struct {
	Action string `json:"action"` // link or unlink
	Path   string `json:"path"`   // as Claude named it
}

// LinkAnswer is the answer to POST /v1/documents/answer.
type LinkAnswer struct {
	SchemaVersion int    `json:"schema_version"`
	Nonce         string `json:"nonce"` // good for one answer with this action and path, in any session
}

// InitQuery is the query of GET /v1/init.
type InitQuery struct {
	Session string
	Cwd     string
	Confirm bool   // return a receipt
	Title   string // the name that the user gave the session; "" if none is known
	Source  string // why the session starts, as Claude Code says it: "startup", "resume", "fork", …
}

// Init is the answer of GET /v1/init: what a session's Claude is shown at its start. The text is the same at every
// start of the session until its documents or its name change.
type Init struct {
	SchemaVersion int    `json:"schema_version"`
	Text          string `json:"text"` // in the language of option locale
	// For POST /v1/pending, once the text was passed on; with confirm.
	Receipt string `json:"receipt,omitempty"`
}

// What a caller's checkpoint may be made for.
const (
	TriggerManual   = "manual"
	TriggerPreHeavy = "pre_heavy"
)

// Checkpoint is a mark in a session: how full its context was, and what it was about then.
type Checkpoint struct {
	ID        string `json:"id"` // 'cp-' and 12 hex digits
	SessionID string `json:"session_id"`
	// The caller's name for the work; only for manual and pre_heavy.
	PortID      string    `json:"port_id,omitempty"`
	TokensUsed  int64     `json:"tokens_used"`  // tokens in the context; at a compaction, before it
	TokenBudget int64     `json:"token_budget"` // tokens at which Claude Code compacts
	TriggerType string    `json:"trigger_type"` // auto_80, auto_90, compact, manual, pre_heavy
	ContextHash string    `json:"context_hash"` // hex; equal conversations have equal hashes
	Summary     string    `json:"summary"`
	ActiveFiles []string  `json:"active_files"` // that tools worked on, the newest first
	CreatedAt   time.Time `json:"created_at"`
}

// CheckpointsQuery is the query of GET /v1/checkpoints.
type CheckpointsQuery struct {
	Session string // a stream's name, or a beginning of one that only one has; "" all sessions
	Page
}

// Checkpoints is the answer of GET /v1/checkpoints, newest first.
type Checkpoints struct {
	SchemaVersion int          `json:"schema_version"`
	Checkpoints   []Checkpoint `json:"checkpoints"`
	Next          int          `json:"next,omitempty"` // offset of the next page; missing on the last
}

// CheckpointAnswer is the answer of GET /v1/checkpoint?id= and of POST /v1/checkpoints.
type CheckpointAnswer struct {
	SchemaVersion int        `json:"schema_version"`
	Checkpoint    Checkpoint `json:"checkpoint"`
}

// CheckpointRequest is the body of POST /v1/checkpoints.
type CheckpointRequest struct {
	Session string `json:"session"`
	Trigger string `json:"trigger,omitempty"` // empty means manual; "", manual, pre_heavy
	Summary string `json:"summary,omitempty"` // empty: made from the conversation
	PortID  string `json:"port_id,omitempty"`
}

// Budget is how many tokens a conversation can hold, and how that is known.
type Budget struct {
	Session string `json:"session,omitempty"` // set for the budget of one session
	Model   string `json:"model,omitempty"`   // set for the budget of every session with this model
	Window  int64  `json:"window,omitempty"`
	Limit   int64  `json:"limit"`
	Used    int64  `json:"used,omitempty"`   // tokens in use; only for a session
	Source  string `json:"source"`           // configured, learned, boundary, seen, model, derived, default
	Seen    int64  `json:"seen,omitempty"`   // tokens at the automatic compaction that a learned limit comes from
	Pinned  bool   `json:"pinned,omitempty"` // set by the user
}

// Budgets is the answer of GET /v1/budget?session= and of PUT /v1/budget.
type Budgets struct {
	SchemaVersion int      `json:"schema_version"`
	Budgets       []Budget `json:"budgets"`
}

// BudgetRequest is the body of PUT /v1/budget: Session or Model is set.
type BudgetRequest struct {
	Session string `json:"session,omitempty"`
	Model   string `json:"model,omitempty"`
	Limit   int64  `json:"limit"` // tokens; 0 removes the user's setting
}

// PendingRequest is the body of POST /v1/pending: a hook of the session takes what its Claude has not been shown yet.
type PendingRequest struct {
	Session string `json:"session"`
	// Of the hook; for the introduction of a session that is not known yet.
	Cwd string `json:"cwd,omitempty"`
	// Id of a tool call: the answer may wait until it is read, at most 900 ms.
	Tool  string `json:"tool,omitempty"`
	Event string `json:"event,omitempty"` // the hook's event, for the log
	// Return the receipt once the text is passed on, or it comes again.
	Confirm bool   `json:"confirm,omitempty"`
	Receipt string `json:"receipt,omitempty"` // confirms an earlier answer and takes nothing
}

// Pending is the answer of POST /v1/pending.
type Pending struct {
	SchemaVersion int `json:"schema_version"`
	// Introduction if it was missed, and notices; in the language of option locale.
	Text    string `json:"text"`
	Notices int    `json:"notices"`
	Receipt string `json:"receipt,omitempty"` // empty when there is nothing to confirm
}

// MessagesQuery is the query of GET /v1/messages.
type MessagesQuery struct {
	Session string // a stream's name, or a beginning of one that only one has
	// Page counts back from the newest message: Offset 0 ends with the newest. Limit 0 is all.
	Page
}

// Messages is the answer of GET /v1/messages: the short history of the current conversation, oldest first.
type Messages struct {
	SchemaVersion int       `json:"schema_version"`
	Session       string    `json:"session"`
	Title         string    `json:"title,omitempty"`
	Total         int       `json:"total"` // messages kept
	Offset        int       `json:"offset"`
	Messages      []Message `json:"messages"`
	UpdatedAt     int64     `json:"updated_at,omitempty"` // Unix milliseconds of the newest record
}

// Message is one message of a short history. Which members are set depends on Type.
type Message struct {
	Role string `json:"role"` // user, assistant, system
	// Type is text, tool_start, tool_complete, error, result, command, compaction, cleared, interrupted or message.
	Type      string `json:"type"`
	Line      int64  `json:"line"`
	UUID      string `json:"uuid,omitempty"`
	Timestamp int64  `json:"timestamp"` // Unix milliseconds

	Content string `json:"content,omitempty"` // of text, error, message and command (/name args)
	From    string `json:"from,omitempty"`    // of message: who or what sent it; of text: the channel

	// ToolUseID and what follows up to Aborted are of tool_start and tool_complete.
	ToolUseID string          `json:"toolUseId,omitempty"`
	ToolName  string          `json:"toolName,omitempty"`
	ToolInput json.RawMessage `json:"toolInput,omitempty"` // the call's input as an object, shortened
	Success   *bool           `json:"success,omitempty"`
	Output    string          `json:"output,omitempty"`
	Error     *string         `json:"error,omitempty"`
	Aborted   bool            `json:"aborted,omitempty"` // a tool_start whose turn ended

	Duration    float64 `json:"duration,omitempty"`    // seconds; Duration to Interrupted: of result
	InputTokens int64   `json:"inputTokens,omitempty"` // all input: the sum of the next three
	// Input that was neither read from the cache nor written to it.
	NewTokens    int64 `json:"newTokens,omitempty"`
	CacheWrite   int64 `json:"cacheWriteTokens,omitempty"`
	CacheRead    int64 `json:"cacheReadTokens,omitempty"`
	OutputTokens int64 `json:"outputTokens,omitempty"`
	Interrupted  bool  `json:"interrupted,omitempty"`

	Trigger      string `json:"trigger,omitempty"`      // auto or manual; Trigger to TokensAfter: of compaction
	TokensBefore int64  `json:"tokensBefore,omitempty"` // in use
	TokensAfter  int64  `json:"tokensAfter,omitempty"`
}

// ClearResult is the answer of DELETE /v1/messages?session=: the session's short history is empty, and new messages are
// kept again. The transcript does not change.
type ClearResult struct {
	SchemaVersion int    `json:"schema_version"`
	Session       string `json:"session"`
	Cleared       int    `json:"cleared"` // messages
}
