package control

import "time"

// What makes a checkpoint.
const (
	TriggerAuto80   = "auto_80"
	TriggerAuto90   = "auto_90"
	TriggerCompact  = "compact"
	TriggerManual   = "manual"
	TriggerPreHeavy = "pre_heavy"
)

// Checkpoint is a mark in a session: how full its context was, and what it was about then.
type Checkpoint struct {
	ID          string    `json:"id"` // "cp-" and 12 hex digits
	SessionID   string    `json:"session_id"`
	PortID      string    `json:"port_id,omitempty"` // the caller's own name for the work, of manual and pre_heavy
	TokensUsed  int64     `json:"tokens_used"`
	TokenBudget int64     `json:"token_budget"` // where the program compacts
	TriggerType string    `json:"trigger_type"`
	ContextHash string    `json:"context_hash"` // hex; equal for equal conversations
	Summary     string    `json:"summary"`
	ActiveFiles []string  `json:"active_files"`
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
	Next          int          `json:"next,omitempty"` // offset of the next page; none when this is the last
}

// CheckpointAnswer is the answer of GET /v1/checkpoint?id= and of POST /v1/checkpoints.
type CheckpointAnswer struct {
	SchemaVersion int        `json:"schema_version"`
	Checkpoint    Checkpoint `json:"checkpoint"`
}

// CheckpointRequest is the body of POST /v1/checkpoints.
type CheckpointRequest struct {
	Session string `json:"session"`
	Trigger string `json:"trigger,omitempty"` // manual (also ""), or pre_heavy
	Summary string `json:"summary,omitempty"` // "": made from the conversation
	PortID  string `json:"port_id,omitempty"`
}

// Budget is how many tokens a conversation can hold, and how that is known.
type Budget struct {
	Session string `json:"session,omitempty"` // of one session, else
	Model   string `json:"model,omitempty"`   // of all with this model
	Window  int64  `json:"window,omitempty"`
	Limit   int64  `json:"limit"`
	Used    int64  `json:"used,omitempty"`   // tokens in use, of a session
	Source  string `json:"source"`           // configured, learned, boundary, seen, model, derived, default
	Seen    int64  `json:"seen,omitempty"`   // tokens at the automatic compaction that taught a learned one
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
	Limit   int64  `json:"limit"` // tokens; 0 forgets what the user set
}

// PendingRequest is the body of POST /v1/pending: a hook of the session takes what its Claude has not been told yet.
type PendingRequest struct {
	Session string `json:"session"`
	Event   string `json:"event,omitempty"` // of the hook, for the log
	// Confirm asks for a receipt: unless it comes back within a second, the notices are handed over again.
	Confirm bool   `json:"confirm,omitempty"`
	Receipt string `json:"receipt,omitempty"` // confirms an answer, and asks for nothing
}

// Pending is the answer of POST /v1/pending. A notice is handed over once, or confirmed once.
type Pending struct {
	SchemaVersion int    `json:"schema_version"`
	Text          string `json:"text"` // of all of them, in the language of option locale; "" when there are none
	Notices       int    `json:"notices"`
	Receipt       string `json:"receipt,omitempty"` // "" when nothing is to be confirmed
}
