package session

import (
	"cmp"
	"encoding/json"
	"time"

	"github.com/ccship/ccship/transcript"
)

// DefaultLogSize is how many messages a Log keeps if Size is 0, MaxLogSize how many it can keep.
const (
	DefaultLogSize = 200
	MaxLogSize     = 1000
)

// MessageKind is the kind of a Message. The values are part of the control socket's API.
type MessageKind string

const (
	UserMessage         MessageKind = "user"
	AssistantMessage    MessageKind = "assistant"
	ToolStartMessage    MessageKind = "tool_start"
	ToolCompleteMessage MessageKind = "tool_complete"
	ErrorMessage        MessageKind = "error"
	ResultMessage       MessageKind = "result"
	CommandMessage      MessageKind = "command"     // a slash command of Claude Code's own
	CompactionMessage   MessageKind = "compaction"  // the conversation was compacted
	ClearedMessage      MessageKind = "cleared"     // the context was cleared: by /clear, or for an accepted plan
	InterruptedMessage  MessageKind = "interrupted" // the user interrupted the model
	OthersMessage       MessageKind = "message"     // of another session, an agent, a schedule, a background task
)

// Message is one message of a session's recent history.
type Message struct {
	Kind    MessageKind
	Line    int64
	UUID    string
	Time    time.Time
	Content string // of UserMessage, AssistantMessage, ErrorMessage, OthersMessage, CommandMessage ("/name args")
	From    string // of an OthersMessage, or of a UserMessage over a channel: as transcript.Speech has it

	ToolID    string
	ToolName  string
	ToolInput json.RawMessage // a JSON object made by transcript.ToolInput; nil if the call is not known
	Success   bool
	Output    string // at most MaxOutput characters and a note of what was cut
	Error     string
	Aborted   bool // a ToolStartMessage whose turn has ended

	Duration    time.Duration    // of a ResultMessage, as are the three fields below
	Usage       transcript.Usage // of the turn's answers
	Interrupted bool
	Turn        int64

	Compact transcript.Compact // of a CompactionMessage
}

// Log folds events into the last Size messages of the conversation as it stands; after a rewind, those of the new
// branch. The zero value is empty. It also keeps up to Size messages hidden by rewinds, because a rewind may be undone.
type Log struct {
	// Size is how many messages are kept, at most MaxLogSize; 0: DefaultLogSize. It is not part of the encoded state.
	Size     int
	messages []logEntry
	dropped  int64 // the largest size at which a message was dropped; 0: none was
}

type logEntry struct {
	Message
	hidden int64  // number of the rewind that hid it; 0: visible
	answer uint64 // hash of the id of the model's answer that it is a part of; 0: of none
}

// Add folds the next event.
func (l *Log) Add(e Event) {
	m := Message{Line: e.Line, UUID: e.UUID, Time: e.Time, Content: e.Text}
	switch e.Kind {
	case PromptEvent, TaskEvent, ReplyEvent:
		m.From = e.From
		if m.Kind = UserMessage; m.Content == "" {
			m.Content = transcript.ImageOnly
		}
		l.append(m)
	case MessageEvent:
		m.Kind, m.From = OthersMessage, cmp.Or(e.From, "Claude Code")
		l.append(m)
	case AnswerEvent:
		if !e.Synthetic { // Claude Code's fillers are left out; its error notices are ErrorEvents
			m.Kind = AssistantMessage
			l.append(m)
			l.messages[len(l.messages)-1].answer = hash(e.MessageID)
		}
	case ErrorEvent:
		m.Kind = ErrorMessage
		l.append(m)
	case ToolStartEvent:
		l.start(e)
	case ToolCompleteEvent:
		l.complete(e)
	case TurnEvent:
		if !e.Turn.Unanswered {
			l.result(e)
		}
	case CommandEvent:
		m.Kind = CommandMessage
		l.append(m)
	case CompactionEvent:
		if !e.Compact.Micro {
			m.Kind, m.Compact = CompactionMessage, *e.Compact
			l.append(m)
		}
	case ClearEvent:
		m.Kind = ClearedMessage
		l.append(m)
	case InterruptEvent:
		m.Kind = InterruptedMessage
		l.append(m)
	case RewindEvent:
		l.hide(e.Rewind)
	case RewindUndoneEvent:
		l.show(e.Rewind)
	}
}

// append adds a message and drops the oldest ones beyond the limit.
func (l *Log) append(m Message) {
	l.messages = append(l.messages, logEntry{Message: m})
	l.trim()
}

func (l *Log) trim() {
	size := logSize(l.Size)
	visible := l.Len()
	if visible > size {
		l.dropped = max(l.dropped, int64(size))
	}
	l.forget(visible-size, false)
	l.forget(len(l.messages)-visible-size, true)
}

// logSize returns how many messages a Log with a Size keeps.
func logSize(size int) int {
	if size > 0 {
		return min(size, MaxLogSize)
	}
	return DefaultLogSize
}

// Truncated reports whether messages were dropped that a Log of another Size would have kept. To get them, add all
// events again.
func (l *Log) Truncated(size int) bool { return l.dropped > 0 && int64(logSize(size)) > l.dropped }

// forget removes the oldest n messages, of the hidden or of the visible ones. What lies behind the last of them stays
// in its place: mostly that is all there is, and a log that is full forgets one with each it adds.
func (l *Log) forget(n int, hidden bool) {
	if n <= 0 {
		return
	}
	end := 0
	for ; n > 0 && end < len(l.messages); end++ {
		if (l.messages[end].hidden != 0) == hidden {
			n--
		}
	}
	begin := end
	for i := end - 1; i >= 0; i-- {
		if (l.messages[i].hidden != 0) != hidden {
			begin--
			l.messages[begin] = l.messages[i]
		}
	}
	clear(l.messages[:begin])
	l.messages = l.messages[begin:]
}

// tool returns where the message of a tool call is; -1 if there is none.
func (l *Log) tool(id string) int {
	for i := len(l.messages) - 1; i >= 0; i-- {
		if l.messages[i].ToolID == id && id != "" {
			return i
		}
	}
	return -1
}

func (l *Log) start(e Event) {
	i, answer := l.tool(e.ToolID), hash(e.MessageID)
	if i < 0 {
		l.append(Message{
			Kind: ToolStartMessage, Line: e.Line, UUID: e.UUID, Time: e.Time,
			ToolID: e.ToolID, ToolName: e.ToolName, ToolInput: json.RawMessage(e.Input),
		})
		l.messages[len(l.messages)-1].answer = answer
		return
	}
	// The result came first. What the same answer said before the call goes before it, what followed stays behind it.
	for ; i+1 < len(l.messages) && answer != 0 && l.messages[i+1].answer == answer; i++ {
		l.messages[i], l.messages[i+1] = l.messages[i+1], l.messages[i]
	}
	m := &l.messages[i]
	m.Line, m.UUID, m.Time, m.ToolName, m.ToolInput = e.Line, e.UUID, e.Time, e.ToolName, json.RawMessage(e.Input)
	m.answer = answer
}

func (l *Log) complete(e Event) {
	i := l.tool(e.ToolID)
	if i < 0 {
		l.append(Message{Line: e.Line, UUID: e.UUID, Time: e.Time, ToolID: e.ToolID})
		i = len(l.messages) - 1
	}
	m := &l.messages[i]
	m.Kind, m.Success, m.Aborted, m.Output, m.Error = ToolCompleteMessage, e.Success, false, e.Text, ""
	if !e.Success {
		m.Output, m.Error = "", e.Text
	}
}

// result appends the figures of a turn and replaces earlier figures of the same turn.
func (l *Log) result(e Event) {
	for i := len(l.messages) - 1; i >= 0; i-- {
		m := &l.messages[i]
		if m.Kind == ResultMessage && m.Turn == e.Turn.Number {
			l.messages = append(l.messages[:i], l.messages[i+1:]...)
			break
		}
	}
	for i := range l.messages {
		if m := &l.messages[i]; m.Kind == ToolStartMessage {
			m.Aborted = true
		}
	}
	l.append(Message{
		Kind: ResultMessage, Line: e.Line, UUID: e.UUID, Time: e.Time, Turn: e.Turn.Number, Duration: e.Turn.Duration,
		Usage: e.Turn.Usage, Interrupted: e.Turn.Interrupted,
	})
}

// hide hides what a rewind abandoned.
func (l *Log) hide(r *Rewind) {
	for i := range l.messages {
		m := &l.messages[i]
		if m.hidden == 0 && r.Leaves(m.Line) {
			m.hidden = r.Number
		}
	}
	l.trim()
}

// show undoes hide.
func (l *Log) show(r *Rewind) {
	for i := range l.messages {
		if l.messages[i].hidden == r.Number {
			l.messages[i].hidden = 0
		}
	}
	l.trim()
}

// Messages returns up to limit messages (0: all), oldest first, ending offset messages before the newest. The caller
// owns them.
func (l *Log) Messages(limit, offset int) []Message {
	var out []Message
	for _, m := range l.messages {
		if m.hidden == 0 {
			out = append(out, m.Message)
		}
	}
	end := max(0, len(out)-max(0, offset))
	begin := 0
	if limit > 0 {
		begin = max(0, end-limit)
	}
	return out[begin:end]
}

// Len returns the number of visible messages.
func (l *Log) Len() int {
	n := 0
	for _, m := range l.messages {
		if m.hidden == 0 {
			n++
		}
	}
	return n
}

// Clear removes all messages. Later events are logged again.
func (l *Log) Clear() { l.messages, l.dropped = nil, 0 }

const logVersion = 3

// MarshalBinary encodes the log. The error is always nil.
func (l *Log) MarshalBinary() ([]byte, error) { return encode(logVersion, l.layout), nil }

// UnmarshalBinary replaces the log. The error wraps ErrState; the log is then empty.
func (l *Log) UnmarshalBinary(data []byte) error {
	l.messages, l.dropped = nil, 0
	if err := decode("log", data, logVersion, l.layout); err != nil {
		l.messages, l.dropped = nil, 0
		return err
	}
	return nil
}

func (l *Log) layout(c *codec) {
	c.int(&l.dropped)
	list(c, &l.messages, 2*MaxLogSize, func(m *logEntry) {
		kind, input := string(m.Kind), string(m.ToolInput)
		c.text(&kind, &m.UUID, &m.Content, &m.From, &m.ToolID, &m.ToolName, &input, &m.Output, &m.Error)
		m.Kind = MessageKind(kind)
		if m.ToolInput = nil; input != "" {
			m.ToolInput = json.RawMessage(input)
		}
		c.ints(&m.Line, (*int64)(&m.Duration), &m.Turn, &m.hidden)
		c.fixed(&m.answer)
		if c.flag(m.Usage != transcript.Usage{}) {
			layoutUsage(c, &m.Usage)
		}
		if c.flag(m.Kind == CompactionMessage) {
			c.text(&m.Compact.Trigger)
			c.ints(&m.Compact.Pre, &m.Compact.Post)
		}
		c.bools(&m.Success, &m.Aborted, &m.Interrupted)
		c.time(&m.Time)
	})
}
