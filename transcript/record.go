package transcript

import (
	"encoding/json"
	"time"
)

// Record is what is understood of one line. Strings are copies; ToolResult, Attachment, and what Message holds point
// into the line, which must not change while they are used. What a line does not say, or says as another kind than
// expected, is the zero value.
type Record struct {
	// Type is the line's own, unknown ones too. Subtype is that of a system record, the kind of an attachment, or the
	// operation of a queue-operation.
	Type, Subtype string

	UUID, ParentUUID  string // the message tree; "" is null or absent
	LogicalParentUUID string // of a compact_boundary: the leaf before it; for lineage only
	SessionID         string // of the writing process; in an agent's file its parent session
	AgentID           string // only in agents' files
	RequestID         string
	PromptID          string // groups what one prompt caused
	LeafUUID          string // of summary and last-prompt

	Time                             time.Time // of the event, UTC; zero when there is none
	Cwd, Branch, Version, Entrypoint string
	Origin                           string // origin.kind: "human", "task-notification", …
	PromptSource                     string // "typed", "queued", "system"
	PermissionMode                   string
	TeamName                         string

	Meta           bool // isMeta: made by the program for the model
	Sidechain      bool
	CompactSummary bool
	VisibleOnly    bool // isVisibleInTranscriptOnly
	APIError       bool // isApiErrorMessage
	FromPlan       bool // a prompt made from an accepted plan

	// Message is set on user and assistant records only: other types that hold a message repeat one.
	Message *Message
	// Text is the content of a system record, of a queue-operation, of last-prompt, or the prompt of a queued_command.
	Text string
	// Title is set when TitleKind is not NoTitle. A summary titles the session that LeafUUID is in.
	Title     string
	TitleKind TitleKind
	Labels    *Labels         // tag, agent-name, pr-link
	Compact   *Compact        // of a compact_boundary or microcompact_boundary
	Duration  time.Duration   // of a turn_duration
	Error     string          // of an API error: its kind or message
	Queued    string          // commandMode of a queued_command: "prompt", "task-notification"
	SourceID  string          // sourceToolAssistantUUID: the line with the call that this result is for
	Lineage   *Lineage        // where copied or continued history belongs
	Attached  json.RawMessage // the attachment as it is
	// ToolResult is toolUseResult as it is: an object, a string or an array.
	ToolResult json.RawMessage
}

// TitleKind says who made a title; a higher one wins.
type TitleKind uint8

const (
	NoTitle      TitleKind = iota
	PromptTitle            // the first prompt stands in for a title
	SummaryTitle           // summary, of old versions
	AITitle                // ai-title
	CustomTitle            // custom-title: by the user
)

// Labels are what a session is marked with beside its title.
type Labels struct {
	Tag, AgentName string
	PRURL          string
	PRNumber       int64
}

// Compact says what a compaction did. Numbers are tokens, 0 when not told.
type Compact struct {
	Trigger   string // "auto", "manual"
	Pre, Post int64
	Micro     bool // tool results were cleared; no new epoch of the conversation
}

// Lineage links a record to another session.
type Lineage struct {
	ForkedFrom        string // the session this record was copied from
	ForkedMessageUUID string
	ContinuedIn       string // the session that goes on with this one
	RelocatedTo       string // the working directory the session moved to
	WorktreePath      string
}
