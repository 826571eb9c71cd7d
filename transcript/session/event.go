package session

import (
	"time"

	"github.com/ccship/ccship/transcript"
)

// EventKind says what happened in a session.
type EventKind uint8

const (
	// PromptEvent: a human said something. Text is all of it, up to MaxText.
	PromptEvent EventKind = iota + 1
	// TaskEvent: an agent was given its task, in Text.
	TaskEvent
	// CommandEvent: a built-in command was typed; Text is "/name args".
	CommandEvent
	// AnswerEvent: the model wrote Text (up to MaxText), part of the answer MessageID.
	AnswerEvent
	// ToolStartEvent: ToolID, ToolName, Input, Path.
	ToolStartEvent
	// ToolCompleteEvent: ToolID, Success, Text (output or error, cut at MaxOutput). It may come before its start, and
	// either may be missing.
	ToolCompleteEvent
	// InterruptEvent: the user stopped the model.
	InterruptEvent
	// ErrorEvent: the API refused for good; Text says why. Nothing is sent for each retry.
	ErrorEvent
	// TurnEvent: the turn Turn.Number is over. It may come again for the same number with better figures.
	TurnEvent
	// CompactionEvent: Compact.
	CompactionEvent
	// TitleEvent: the session has another title, Text, made by TitleKind.
	TitleEvent
	// UsageEvent: Usage. One for each assistant line that tells tokens; sidechains' too.
	UsageEvent
	// RewindEvent: the user went back; Rewind.
	RewindEvent
	// RewindUndoneEvent: the abandoned branch goes on, so Rewind was none (two writers).
	RewindUndoneEvent
	// ContextEvent: the tokens in use changed; Context.
	ContextEvent
	// AgentEvent: a tool call started the agent Agent, or tells more of it.
	AgentEvent
	// FileEvent: a tool of the program has changed the file Path, which is not cut; ToolID, ToolName.
	FileEvent
	// LinkEvent: the model asked for the file Path to be linked to the session as a document, by an MCP tool named
	// link_document that has not refused; Path is as the tool's result names it. ToolID, ToolName.
	LinkEvent
	// UnlinkEvent: the same of unlink_document.
	UnlinkEvent
)

// Limits of what events carry, in characters.
const (
	MaxText   = 16 << 10 // prompts and answers
	MaxOutput = 500      // tool outputs and errors
)

// Event is one thing that a line brought. Only the fields that its kind names are set beside the first five.
type Event struct {
	Kind      EventKind
	Line      int64
	UUID      string
	SessionID string
	Time      time.Time

	Text      string
	MessageID string
	ToolID    string
	ToolName  string
	Input     string // ToolInput of the call: a JSON object
	Path      string // the file the tool works on, as the call names it; "" when it is none
	Success   bool
	Queued    bool // a prompt typed while the model was working
	Synthetic bool // an answer that the program made up
	TitleKind transcript.TitleKind

	Turn    *Turn
	Compact *transcript.Compact
	Usage   *transcript.UsageSample
	Rewind  *Rewind
	Context *Context
	Agent   *Agent
}

// Turn is what happened between a prompt and the end of the work on it.
type Turn struct {
	Number      int64            // from 1; 0 is what came before the first prompt
	Duration    time.Duration    // told by the program, else between the first and the last record
	Usage       transcript.Usage // of its answers, each once
	Interrupted bool
}

// Rewind is a step back in the conversation: the next prompt hangs off an older message, and what came after that is
// no longer part of it.
type Rewind struct {
	Number   int64  // from 1 in a stream
	From, To string // uuids: the leaf that was left, and the message gone back to ("" for the beginning)
	FromLine int64
	ToLine   int64 // -1 for the beginning, or when To is not known any more
	Line     int64 // of the prompt that came next
}

// Context is how full the model's window is.
type Context struct {
	Tokens int64
	Known  bool // false between a boundary that does not tell and the next answer
	Model  string
	// Epoch rises with everything after which a mark that was passed may be passed again: a compaction, a rewind, a
	// drop of more than 30 % that has no record.
	Epoch int64
	Cause ContextCause
}

// ContextCause is why the tokens in use changed.
type ContextCause uint8

const (
	AnswerCause ContextCause = iota + 1
	CompactionCause
	RewindCause
	DropCause // an answer with more than 30 % less than before, without any record of why
)

// Agent is a subagent that a session started.
type Agent struct {
	ID          string // of its transcript: agent-<ID>; "" until the result tells
	ToolID      string // of the call that started it
	Type        string
	Description string
	Background  bool
	Done        bool
}
