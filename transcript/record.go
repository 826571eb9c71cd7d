package transcript

import (
	"encoding/json"
	"time"
)

// Record is what is understood of one line. Strings are copies; ToolResult, Attached, Snapshot and the contents of
// Message point into the line, which must not change while they are in use. What a line does not say, or says in an
// unexpected kind, is the zero value.
type Record struct {
	// Type is the line's own, even if unknown. Subtype is that of a system record, the type of an attachment, or the
	// operation of a queue-operation.
	Type, Subtype string

	UUID, ParentUUID  string // the message tree; "" is null or absent
	LogicalParentUUID string // of a compact_boundary: the leaf before it; only for lineage
	SessionID         string // of the process that wrote it; in an agent's file the parent session
	AgentID           string // only in agents' files
	RequestID         string
	LeafUUID          string // of summary and last-prompt

	Time                             time.Time // of the event, UTC; zero if absent
	Cwd, Branch, Version, Entrypoint string
	Origin                           string // origin.kind: "human", "task-notification", …
	OriginName                       string // who that is: a session's name, a channel's, a subkind
	TurnOrigin                       string // of the record that begins a turn: "human", "scheduled", …
	PromptSource                     string // "typed", "queued", "system"
	PermissionMode                   string
	TeamName, TeamAgent              string
	// AskedModel is the model that was asked for, as its name says the size of the window: "claude-opus-4-6[1m]". Answers
	// have it, and the attachment that tells the model its own name.
	AskedModel string

	Meta           bool // isMeta: written by Claude Code for the model
	Sidechain      bool
	CompactSummary bool
	VisibleOnly    bool   // isVisibleInTranscriptOnly
	APIError       bool   // isApiErrorMessage
	FromPlan       bool   // a prompt made from an accepted plan
	StartedBy      string // why a SessionStart hook ran that the record is of: "startup", "resume", "clear", "compact"
	Scheduled      bool   // scheduledTaskId, wakeupSource: a schedule started the turn
	Companion      bool   // turnCompanion: context that goes with the next record

	// Message is set on user and assistant records only: in other types it repeats another record's.
	Message *Message
	// Text is the content of a system record, queue-operation or last-prompt, or the prompt of a queued_command.
	Text string
	// Title is set if TitleKind is not NoTitle. A summary is the title of the session that contains LeafUUID.
	Title     string
	TitleKind TitleKind
	Labels    *Labels         // tag, agent-name, pr-link
	Compact   *Compact        // of a compact_boundary or microcompact_boundary
	Duration  time.Duration   // of a turn_duration
	Error     string          // of an API error: its kind or message
	Queued    string          // commandMode of a queued_command: "prompt", "task-notification"
	SourceID  string          // sourceToolAssistantUUID: the line with the tool call that this result answers
	Lineage   *Lineage        // origin of copied or continued history
	Attached  json.RawMessage // the attachment as written
	Snapshot  json.RawMessage // the snapshot of a file-history-snapshot, or the path of a file-history-delta, as written
	// AgentAnswer is set on a progress record that repeats an answer of a subagent, as Claude Code 2.1.12 to 2.1.76
	// wrote them. Sometimes no other record has the answer. Its Line is 0.
	AgentAnswer *UsageSample
	// AgentRecord is the record of a subagent that a progress record of those versions repeats, as written.
	AgentRecord json.RawMessage
	// ToolResult is toolUseResult as written: an object, a string or an array.
	ToolResult json.RawMessage
}

// TitleKind is the source of a title; a higher one takes precedence.
type TitleKind uint8

const (
	NoTitle      TitleKind = iota
	OtherTitle             // what another than the person says first, where no prompt says something
	PromptTitle            // the first prompt that says something, instead of a title
	PlanTitle              // the heading of a plan
	SummaryTitle           // summary, written by old versions
	AITitle                // ai-title
	CustomTitle            // custom-title: set by the user
)

// Labels are a session's markings other than its title.
type Labels struct {
	Tag, AgentName string
	PRURL          string
	PRNumber       int64
}

// Compact describes a compaction. Pre, Post and Saved are tokens. What is not recorded is 0.
type Compact struct {
	Trigger   string // "auto", "manual"
	Pre, Post int64  // in use before and after; of a microcompact_boundary both are 0
	Saved     int64  // of a microcompact_boundary, which says how many results could be cleared, not what is in use
	Took      time.Duration
	Micro     bool // only tool results were cleared; no new epoch
}

// Lineage links a record to another session.
type Lineage struct {
	ForkedFrom  string // the session that this record was copied from
	ContinuedIn string // the session that continues this one
}
