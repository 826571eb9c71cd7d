package session

import (
	"cmp"
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

// A compaction's record has no parent: the context begins with it. For a person the conversation goes on, and the user
// can go back to what was said before it. So it is a child of the record that the conversation had come to. Of what was
// said before, a compaction may keep the end: copies with the same ids that hang below the summary. In the tree the
// compaction then stands before them.

// before returns the record that the conversation had come to when it was compacted; 0 if there is none.
func (b *branches) before(g *treeRecord, l *leaf) uint64 {
	if id := hash(g.logical); b.find(id) != nil {
		return id
	}
	if b.find(l.id) != nil {
		return l.id
	}
	return 0
}

// moveTo gives a record the parent that a copy of it has. When the parent is below the record, because a compaction
// kept it, the compaction moves to the record's position.
func (b *branches) moveTo(n *node, parent uint64) {
	compaction := int32(-1)
	below := false
	b.walkUp(parent, n.id, func(i int32) {
		below = b.nodes[i].parent == n.id
		if b.nodes[i].flags&isBoundary != 0 {
			compaction = i
		}
	})
	switch {
	case parent == n.id:
	case !below:
		n.parent = parent
	case compaction >= 0:
		b.nodes[compaction].parent, n.parent = n.parent, parent
	}
}

// maxSpans is how many spans of lines are remembered of a rewind. One is usual: Claude Code writes branches one after
// the other.
const maxSpans = 16

// left returns the lines that a rewind by a prompt on a line abandoned. Lines without a record of the tree belong to
// the one before them: a prompt that only the queue has, for example.
func (b *branches) left(number, line int64) (spans []Span) {
	open := false
	for i := range b.nodes {
		n := &b.nodes[i]
		switch abandoned := int64(n.abandonedBy) == number; {
		case abandoned && !open:
			if len(spans) == maxSpans {
				return spans
			}
			spans, open = append(spans, Span{n.line, n.line}), true
		case abandoned:
			spans[len(spans)-1].Last = n.line
		case open && n.line > spans[len(spans)-1].Last:
			spans[len(spans)-1].Last, open = n.line-1, false
		}
	}
	if open {
		spans[len(spans)-1].Last = max(spans[len(spans)-1].Last, line-1)
	}
	return spans
}

// secondRoot reports whether only records of Claude Code's own lie between a message and the beginning of its branch,
// and the conversation began elsewhere.
func (b *branches) secondRoot(id uint64) bool {
	spoken := false
	var root node
	b.walkUp(id, 0, func(i int32) {
		root = b.nodes[i]
		spoken = spoken || root.flags&(isPrompt|isAnswer|isBoundary) != 0
	})
	if spoken || root.parent != 0 {
		return false
	}
	for i := range b.nodes {
		if n := &b.nodes[i]; n.line < root.line && n.flags&(isPrompt|isAnswer) != 0 {
			return true
		}
	}
	return false
}

// mostSilent is how many records without speech are looked at above a prompt: what hooks and commands write is short.
const mostSilent = 64

// belowClear reports whether what a hook wrote because the context was cleared stands above a prompt, with nothing said
// in between. parent is the prompt's.
func (b *branches) belowClear(parent uint64) bool {
	for range mostSilent {
		n := b.find(parent)
		if n == nil || n.flags&(isPrompt|isAnswer|isBoundary|isClear) != 0 {
			return n != nil && n.flags&isClear != 0
		}
		parent = n.parent
	}
	return false
}

// Sources of a budget: which rule determined its limit, or its window if the limit follows from that.
const (
	ConfiguredBudget = "configured" // set by the user
	ModelBudget      = "model"      // the model's native window, or the larger one that the transcript says was asked for
	SeenBudget       = "seen"       // more than 200 000 tokens were in use
	BoundaryBudget   = "boundary"   // an automatic compaction of this session
	LearnedBudget    = "learned"    // automatic compactions of other sessions with this model
	DerivedBudget    = "derived"    // a compaction of this session shows which window it has
	DefaultBudget    = "default"    // nothing is known: 200 000
)

// BudgetOptions is what is known from outside the transcript. The zero value is nothing.
type BudgetOptions struct {
	Learned map[string]int64 // by model, the fewest tokens in use at an automatic compaction; may be nil; only read
	Stated  int64            // window that was asked for, as far as the transcript says
	// Pins are limits set by the user, by model; "" applies to all models and takes precedence. A pin above the
	// inferred window means that the window is larger. May be nil; only read.
	Pins map[string]int64
}

// Budget is how many tokens a conversation can hold. The window is not in the transcript: it is inferred.
type Budget struct {
	Window, Limit int64 // Limit is where compaction really happens
	Source        string
}

// reserve is what Claude Code keeps free before it compacts: space for an answer, and 13 000 tokens.
const reserve = 20_000 + 13_000

// BudgetFor determines a model's budget. most is the highest number of tokens in use so far, boundary the lowest at an
// automatic compaction, 0 if there was none. A rule that contradicts these observations is skipped.
func BudgetFor(model string, most, boundary int64, o BudgetOptions) Budget {
	size, source := window(model, most, boundary, o)
	pin := o.Pins[""]
	if pin <= 0 {
		pin = o.Pins[model]
	}
	if pin > 0 {
		return Budget{max(size, pin), pin, ConfiguredBudget}
	}
	limit, by := limit(size, model, most, boundary, o)
	return Budget{size, limit, cmp.Or(by, source)}
}

func window(model string, most, boundary int64, o BudgetOptions) (int64, string) {
	native := transcript.NativeWindow(model)
	switch {
	case o.Stated > 0 && o.Stated >= most:
		return o.Stated, ModelBudget
	case native > 0 && native >= most:
		return native, ModelBudget
	case most > transcript.StandardWindow:
		return transcript.LargeWindow, SeenBudget
	case boundary > transcript.StandardWindow-reserve-transcript.StandardWindow/10:
		return transcript.StandardWindow, DerivedBudget
	}
	return transcript.StandardWindow, DefaultBudget
}

// limit returns where compaction happens, and the rule that says so; "" if it follows from the window.
func limit(window int64, model string, most, boundary int64, o BudgetOptions) (int64, string) {
	derived := max(window-reserve, window/2)
	// A limit that was exceeded by far is no longer the limit. One tool result exceeds it by a little; so it did when a
	// compaction followed.
	holds := func(limit int64) bool {
		compacted := overshoots(boundary, limit) && most <= boundary+boundary/10
		return limit > 0 && limit <= window && (most <= limit+limit/10 || compacted)
	}
	learned := o.Learned[model]
	if !holds(learned) {
		learned = 0
	}
	switch {
	case learned > 0 && (!holds(boundary) || overshoots(boundary, learned)):
		return learned, LearnedBudget
	case holds(boundary) && (boundary <= derived+derived/50 || !overshoots(boundary, derived)):
		return boundary, BoundaryBudget
	}
	return derived, ""
}

// overshoots reports whether a compaction may have come only at a boundary though the limit was lower: a tool result
// can jump over it. Farther above it the limit is another one.
func overshoots(boundary, limit int64) bool { return boundary > limit && boundary <= limit+limit/4 }
