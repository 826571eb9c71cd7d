package transcript

import "encoding/json"

// SyntheticModel is the model of answers that the program made up: notices of errors, fillers.
const SyntheticModel = "<synthetic>"

// Message is the message of a user or assistant record. Its content stays undecoded until Blocks or Text is called.
type Message struct {
	ID         string // the answer's; one answer is one line per block, all with this id
	Role       string
	Model      string
	StopReason string
	Usage      *Usage // nil when the line has none
	pieces     []RawBlock
}

// BlockKind tells content blocks apart.
type BlockKind uint8

const (
	OtherBlock BlockKind = iota // of a type not known; Type and Raw say which
	TextBlock
	ThinkingBlock
	RedactedThinkingBlock
	ToolUseBlock    // tool_use, server_tool_use, mcp_tool_use
	ToolResultBlock // tool_result, web_search_tool_result and others that end so
	ImageBlock
	DocumentBlock
)

// Block is one piece of a message's content.
type Block struct {
	Kind      BlockKind
	Type      string // as written
	Text      string // of text and thinking
	ToolID    string // tool_use.id, or the tool_use_id a result answers
	ToolName  string
	Input     json.RawMessage // of a tool use; nil when absent
	Error     bool            // a tool result with is_error
	Content   []Block         // of a tool result; plain text is one TextBlock
	MediaType string          // of an image or document
	Data      []byte          // of an image or document: base64, or text, still as in the line
	URL       string          // of an image or document that lies elsewhere
	Raw       json.RawMessage // the block as it is; of plain text the JSON string
}

// Synthetic says whether the program, not a model, made the message.
func (m *Message) Synthetic() bool { return m.Model == SyntheticModel }

// RawBlocks are the content's blocks, not decoded: they are the message's own, and point into the line.
func (m *Message) RawBlocks() []RawBlock { return m.pieces }
