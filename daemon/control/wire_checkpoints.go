package control

import "time"

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
