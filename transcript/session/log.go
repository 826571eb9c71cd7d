package session

import (
	"encoding/json"
	"time"

	"github.com/ccship/ccship/transcript"
)

// LogSize is how many messages a Log keeps unless it is told otherwise, MaxLogSize how many it can keep.
const (
	DefaultLogSize = 200
	MaxLogSize     = 1000
)

// MessageKind tells the messages of a log apart.
type MessageKind string

const (
	UserMessage         MessageKind = "user"
	AssistantMessage    MessageKind = "assistant"
	ToolStartMessage    MessageKind = "tool_start"
	ToolCompleteMessage MessageKind = "tool_complete"
	ErrorMessage        MessageKind = "error"
	ResultMessage       MessageKind = "result"
)

// Message is one message of a session's short history.
type Message struct {
	Kind    MessageKind
	Line    int64
	UUID    string
	Time    time.Time
	Content string // of user, assistant, error

	ToolID    string
	ToolName  string
	ToolInput json.RawMessage // an object, as ToolInput makes it; nil when the call is not known
	Success   bool
	Output    string // at most MaxOutput characters and a note
	Error     string
	Aborted   bool // a tool_start whose turn is over

	Duration     time.Duration // of a result, as are:
	InputTokens  int64         // all that was sent, cached or not
	OutputTokens int64
	Interrupted  bool
	Turn         int64
}

// Log folds events into the last Size messages of the conversation as it stands: after a rewind those of
// the new branch. The zero value is empty. It keeps as many messages that a rewind hid, for a rewind may turn out to
// be none.
type Log struct {
	// Size is how many messages are kept, up to MaxLogSize; 0: LogSize. It is not part of the encoded state.
	Size     int
	messages []logEntry
}

type logEntry struct {
	Message
	hidden int64 // number of the rewind
}

// Add takes the next event.
func (l *Log) Add(e Event) {
	m := Message{Line: e.Line, UUID: e.UUID, Time: e.Time, Content: e.Text}
	switch e.Kind {
	case PromptEvent, TaskEvent:
		if m.Kind = UserMessage; m.Content == "" {
			m.Content = transcript.ImageOnly
		}
		l.append(m)
	case AnswerEvent:
		if !e.Synthetic { // fillers of the program; its notices of errors come as such
			m.Kind = AssistantMessage
			l.append(m)
		}
	case ErrorEvent:
		m.Kind = ErrorMessage
		l.append(m)
	case ToolStartEvent:
		l.start(e)
	case ToolCompleteEvent:
		l.complete(e)
	case TurnEvent:
		l.result(e)
	case RewindEvent:
		l.hide(e.Rewind)
	case RewindUndoneEvent:
		for i := range l.messages {
			if l.messages[i].hidden == e.Rewind.Number {
				l.messages[i].hidden = 0
			}
		}
		l.trim()
	}
}

// append adds a message, and lets the oldest of its sort go when there are too many.
func (l *Log) append(m Message) {
	l.messages = append(l.messages, logEntry{Message: m})
	l.trim()
}

func (l *Log) trim() {
	size := DefaultLogSize
	if l.Size > 0 {
		size = min(l.Size, MaxLogSize)
	}
	visible := l.Len()
	l.forget(visible-size, false)
	l.forget(len(l.messages)-visible-size, true)
}

// forget removes the oldest n messages that are hidden, or are not.
func (l *Log) forget(n int, hidden bool) {
	if n <= 0 {
		return
	}
	kept := l.messages[:0]
	for _, m := range l.messages {
		if n > 0 && (m.hidden != 0) == hidden {
			n--
			continue
		}
		kept = append(kept, m)
	}
	clear(l.messages[len(kept):])
	l.messages = kept
}

// tool finds a call's message; nil if there is none.
func (l *Log) tool(id string) *Message {
	for i := len(l.messages) - 1; i >= 0; i-- {
		m := &l.messages[i].Message
		if m.ToolID == id && id != "" {
			return m
		}
	}
	return nil
}

func (l *Log) start(e Event) {
	m := l.tool(e.ToolID)
	if m == nil {
		l.append(Message{
			Kind: ToolStartMessage, Line: e.Line, UUID: e.UUID, Time: e.Time,
			ToolID: e.ToolID, ToolName: e.ToolName, ToolInput: json.RawMessage(e.Input),
		})
		return
	}
	// The result came first.
	m.Line, m.UUID, m.Time, m.ToolName, m.ToolInput = e.Line, e.UUID, e.Time, e.ToolName, json.RawMessage(e.Input)
}

func (l *Log) complete(e Event) {
	m := l.tool(e.ToolID)
	if m == nil {
		l.append(Message{Line: e.Line, UUID: e.UUID, Time: e.Time, ToolID: e.ToolID})
		m = &l.messages[len(l.messages)-1].Message
	}
	m.Kind, m.Success, m.Aborted, m.Output, m.Error = ToolCompleteMessage, e.Success, false, e.Text, ""
	if !e.Success {
		m.Output, m.Error = "", e.Text
	}
}

// result puts the turn's figures at the end; what was said of the turn before is replaced.
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
		InputTokens: e.Turn.Usage.Context(), OutputTokens: e.Turn.Usage.Output, Interrupted: e.Turn.Interrupted,
	})
}

// hide takes out what a rewind gave up.
func (l *Log) hide(r *Rewind) {
	for i := range l.messages {
		m := &l.messages[i]
		if m.hidden == 0 && m.Line > r.ToLine {
			m.hidden = r.Number
		}
	}
	l.trim()
}

// Messages are up to limit messages (0: all), oldest first, that end offset before the newest. They are the caller's.
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

// Len is how many there are.
func (l *Log) Len() int {
	n := 0
	for _, m := range l.messages {
		if m.hidden == 0 {
			n++
		}
	}
	return n
}

// Clear forgets all messages. What comes is kept again.
func (l *Log) Clear() { l.messages = nil }

const logVersion = 1

// MarshalBinary encodes the log. The error is always nil.
func (l *Log) MarshalBinary() ([]byte, error) { return encode(logVersion, l.layout), nil }

// UnmarshalBinary replaces the log. The error wraps ErrState; the log is empty then.
func (l *Log) UnmarshalBinary(data []byte) error {
	l.messages = nil
	if err := decode("log", data, logVersion, l.layout); err != nil {
		l.messages = nil
		return err
	}
	return nil
}

func (l *Log) layout(c *codec) {
	list(c, &l.messages, 2*MaxLogSize, func(m *logEntry) {
		kind, input := string(m.Kind), string(m.ToolInput)
		c.text(&kind, &m.UUID, &m.Content, &m.ToolID, &m.ToolName, &input, &m.Output, &m.Error)
		m.Kind = MessageKind(kind)
		if m.ToolInput = nil; input != "" {
			m.ToolInput = json.RawMessage(input)
		}
		c.ints(&m.Line, (*int64)(&m.Duration), &m.InputTokens, &m.OutputTokens, &m.Turn, &m.hidden)
		c.bools(&m.Success, &m.Aborted, &m.Interrupted)
		c.time(&m.Time)
	})
}
