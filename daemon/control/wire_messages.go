package control

import "encoding/json"

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
