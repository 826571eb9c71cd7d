package session

import (
	"slices"
	"time"

	"github.com/ccship/ccship/transcript"
)

// EventKind is the kind of an Event.
type EventKind uint8

const (
	// PromptEvent: the person sent a prompt. Text is the prompt, cut at MaxText; Speaker, From.
	PromptEvent EventKind = iota + 1
	// TaskEvent: an agent received its task, in Text.
	TaskEvent
	// CommandEvent: a built-in command was entered; Text is "/name args".
	CommandEvent
	// AnswerEvent: the model wrote Text (cut at MaxText), part of the answer MessageID.
	AnswerEvent
	// ToolStartEvent: a tool call began; ToolID, ToolName, Input, Path.
	ToolStartEvent
	// ToolCompleteEvent: a tool call ended; ToolID, Success, Text (output or error, cut at MaxOutput). It may precede
	// its start, and either may be missing.
	ToolCompleteEvent
	// InterruptEvent: the user interrupted the model.
	InterruptEvent
	// ErrorEvent: the API returned an error that was not retried any more; Text is the message.
	ErrorEvent
	// TurnEvent: turn Turn.Number ended. It may be emitted again for the same number with more accurate figures.
	TurnEvent
	// CompactionEvent: the conversation was compacted; Compact.
	CompactionEvent
	// TitleEvent: the session's title changed to Text.
	TitleEvent
	// UsageEvent: an assistant line, also a sidechain's, or an agent's answer repeated in a progress record reported
	// tokens; Usage.
	UsageEvent
	// RewindEvent: the user went back to an earlier message; Rewind.
	RewindEvent
	// RewindUndoneEvent: the abandoned branch continues, so Rewind was not one: two processes write the transcript.
	RewindUndoneEvent
	// ContextEvent: the number of tokens in use changed; Context.
	ContextEvent
	// AgentEvent: a tool call started the agent Agent, or more is known of it.
	AgentEvent
	// FileEvent: a tool of Claude Code changed the file Path, which is not cut; ToolID, ToolName.
	FileEvent
	// LinkEvent: the model asked to link the file Path to the session as a document, with the tool link_document of
	// ccship's plugin, which did not refuse. Path and Nonce are those in the tool's result. ToolID, ToolName.
	LinkEvent
	// UnlinkEvent: the same with unlink_document.
	UnlinkEvent
	// ClearEvent: the context was cleared, and the conversation goes on in the same transcript with an accepted plan. What
	// was said before stays.
	ClearEvent
	// MessageEvent: another speaker than the person said Text to the model (cut at MaxText); Speaker, From.
	MessageEvent
	// ReplyEvent: the person answered a question, or said why a tool must not run, in Text; ToolID.
	ReplyEvent
	// RefusedLinkEvent: the model was shown that a file was not linked to the session. Text is its path and the reason.
	RefusedLinkEvent
)

// Limits on texts in events, in characters.
const (
	MaxText   = 16 << 10 // prompts and answers
	MaxOutput = 500      // tool outputs and errors
)

// Event is one thing that a line caused. Besides the first five fields, only those named by its kind are set.
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
	Input     string // of the call, as transcript.ToolInput makes it: a JSON object
	Path      string // file that the tool works on, as the call names it; "" if none
	Nonce     string // of a link's answer; "" if it has none
	Success   bool
	Queued    bool // a prompt or a message that came while the model was working
	Speaker   transcript.Speaker
	From      string // as Speech.From
	Synthetic bool   // an answer that Claude Code made up

	Turn    *Turn
	Compact *transcript.Compact
	Usage   *transcript.UsageSample
	Rewind  *Rewind
	Context *Context
	Agent   *Agent
}

// Turn is a prompt or a message, and the work on it.
type Turn struct {
	Number      int64            // from 1; 0 is what preceded the first prompt
	Duration    time.Duration    // as recorded, otherwise the time between the first and the last record
	Usage       transcript.Usage // of its answers, each counted once
	Interrupted bool
	Unanswered  bool // nothing came of it: it has no result and is not counted
}

// Rewind is a step back in the conversation: the next prompt's parent is an older message, and what followed that
// message is no longer part of the conversation.
type Rewind struct {
	Number   int64  // from 1 in each stream
	From, To string // uuids: the abandoned leaf, and the message gone back to ("" for the beginning)
	FromLine int64
	ToLine   int64  // of the last message that stays; -1 for the beginning, or when To is no longer remembered
	Line     int64  // of the next prompt
	Left     []Span // the lines that are no longer part of the conversation, ascending; at most 16 spans
}

// Span is lines of a transcript, both ends included.
type Span struct{ First, Last int64 }

// Leaves reports whether a line is no longer part of the conversation.
func (r *Rewind) Leaves(line int64) bool {
	return slices.ContainsFunc(r.Left, func(s Span) bool { return s.First <= line && line <= s.Last })
}

// Context is how many tokens of the model's context window are in use.
type Context struct {
	Tokens int64
	Known  bool // false between a boundary without numbers and the next answer
	Model  string
	// Epoch increases with everything after which a threshold may be exceeded again: a compaction, a rewind, a cleared
	// context, a drop of more than 30 % that no record explains.
	Epoch int64
	Cause ContextCause
}

// ContextCause is why the number of tokens in use changed.
type ContextCause uint8

const (
	AnswerCause ContextCause = iota + 1
	CompactionCause
	RewindCause
	DropCause // more than 30 % fewer tokens than before, and no record explains it
	ClearCause
)

// Agent is a subagent that the session started.
type Agent struct {
	ID          string // of its transcript agent-<ID>; "" until the result names it
	ToolID      string // of the call that started it
	Type        string
	Description string
	Background  bool
	Done        bool
}
