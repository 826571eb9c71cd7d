package transcript

import "encoding/json"

// SyntheticModel is the model of answers that Claude Code made up itself: error notices, fillers.
const SyntheticModel = "<synthetic>"

// Message is the message of a user or assistant record. Its content is decoded only by Blocks or Text.
type Message struct {
	ID         string // of the answer; an answer has one line per block, all with this id
	Model      string
	StopReason string
	Usage      *Usage   // nil if the line has none
	Billing    *Billing // nil if the usage is billed as the model's, and is all there is
	blocks     []RawBlock
}

// BlockKind is the kind of a content block.
type BlockKind uint8

const (
	OtherBlock BlockKind = iota // of an unknown type; see Type and Raw
	TextBlock
	ThinkingBlock
	RedactedThinkingBlock
	ToolUseBlock    // tool_use, server_tool_use, mcp_tool_use
	ToolResultBlock // tool_result, web_search_tool_result and other types with this suffix
	ImageBlock
	DocumentBlock
)

// Block is one block of a message's content.
type Block struct {
	Kind      BlockKind
	Type      string // as written
	Text      string // of text and thinking
	ToolID    string // tool_use.id, or the tool_use_id that a result answers
	ToolName  string
	Input     json.RawMessage // of a tool use; nil if absent
	Error     bool            // a tool result with is_error
	Content   []Block         // of a tool result; a plain string is one TextBlock
	MediaType string          // of an image or document
	Data      []byte          // of an image or document: base64 or text, not decoded
	Raw       json.RawMessage // the block as written; for plain text the JSON string
}

// Synthetic reports whether Claude Code rather than a model wrote the message.
func (m *Message) Synthetic() bool { return m.Model == SyntheticModel }

// RawBlocks returns the content's blocks, not decoded. They belong to the message and point into the line.
func (m *Message) RawBlocks() []RawBlock { return m.blocks }
