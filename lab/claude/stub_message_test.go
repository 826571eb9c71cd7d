//go:build unix

package claude_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"unicode/utf8"
)

// message is one message of a request.
type message struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

// block is one part of a message, in both directions.
type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Thinking  string          `json:"thinking"`
	Signature string          `json:"signature"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
}

func (m message) blocks() []block {
	var text string
	if json.Unmarshal(m.Content, &text) == nil {
		return []block{{Type: "text", Text: text}}
	}
	var parts []block
	_ = json.Unmarshal(m.Content, &parts) // what it cannot read says nothing
	return parts
}

// MarshalJSON writes only the members that a block of its type has.
func (b block) MarshalJSON() ([]byte, error) {
	switch b.Type {
	case "thinking":
		return json.Marshal(map[string]any{"type": b.Type, "thinking": b.Thinking, "signature": b.Signature})
	case "tool_use":
		return json.Marshal(map[string]any{"type": b.Type, "id": b.ID, "name": b.Name, "input": b.Input})
	}
	return json.Marshal(map[string]any{"type": b.Type, "text": b.Text})
}

// usage is what an answer claims to have cost.
type usage struct {
	Input         int `json:"input_tokens"`
	CacheCreation int `json:"cache_creation_input_tokens"`
	CacheRead     int `json:"cache_read_input_tokens"`
	Output        int `json:"output_tokens"`
}

// completion is an answer as the API has it.
type completion struct {
	ID           string  `json:"id"`
	Type         string  `json:"type"`
	Role         string  `json:"role"`
	Model        string  `json:"model"`
	Content      []block `json:"content"`
	StopReason   *string `json:"stop_reason"`
	StopSequence *string `json:"stop_sequence"`
	Usage        usage   `json:"usage"`
}

// render gives an answer the API's shape.
func (s *stub) render(req *request, a answer) completion {
	var content []block
	if a.thinking != "" {
		content = append(content, block{Type: "thinking", Thinking: a.thinking, Signature: "c2lnbmVk"})
	}
	if a.text != "" || len(a.tools) == 0 {
		content = append(content, block{Type: "text", Text: a.text})
	}
	stop, said := "end_turn", len(a.text)+len(a.thinking)
	for _, t := range a.tools {
		content = append(content, block{Type: "tool_use", ID: t.id, Name: t.name, Input: t.input})
		stop, said = "tool_use", said+len(t.input)
	}
	total := req.size / 40 // a tenth of the truth: no version is to compact of its own accord
	if a.used > 0 {
		total = a.used
	}
	u := usage{Input: min(total, 3), Output: said/4 + 1}
	u.CacheCreation = min(total-u.Input, 1000)
	u.CacheRead = total - u.Input - u.CacheCreation
	return completion{ID: newID("msg_"), Type: "message", Role: "assistant", Model: req.Model, Content: content, StopReason: &stop, Usage: u}
}

// stream writes the answer as the API's server-sent events.
func (m completion) stream(w io.Writer) {
	send := func(name string, members map[string]any) {
		members["type"] = name
		data, err := json.Marshal(members)
		if err != nil {
			panic(err) // a tool input that is no JSON: the test that wrote it is wrong
		}
		fmt.Fprintf(w, "event: %s\ndata: %s\n\n", name, data)
	}
	start := m
	start.Content, start.StopReason, start.Usage.Output = []block{}, nil, 1
	send("message_start", map[string]any{"message": start})
	for i, b := range m.Content {
		empty, deltas := b.parts()
		send("content_block_start", map[string]any{"index": i, "content_block": empty})
		for _, delta := range deltas {
			send("content_block_delta", map[string]any{"index": i, "delta": delta})
		}
		send("content_block_stop", map[string]any{"index": i})
	}
	send("message_delta", map[string]any{"delta": map[string]any{"stop_reason": m.StopReason, "stop_sequence": nil}, "usage": m.Usage})
	send("message_stop", map[string]any{})
}

// parts is a block as it begins, and the deltas that fill it; texts and tool inputs come in two.
func (b block) parts() (block, []map[string]string) {
	switch b.Type {
	case "thinking":
		return block{Type: b.Type}, []map[string]string{
			{"type": "thinking_delta", "thinking": b.Thinking}, {"type": "signature_delta", "signature": b.Signature},
		}
	case "tool_use":
		head, rest := halves(string(b.Input))
		return block{Type: b.Type, ID: b.ID, Name: b.Name, Input: json.RawMessage("{}")}, []map[string]string{
			{"type": "input_json_delta", "partial_json": head}, {"type": "input_json_delta", "partial_json": rest},
		}
	}
	head, rest := halves(b.Text)
	return block{Type: b.Type}, []map[string]string{{"type": "text_delta", "text": head}, {"type": "text_delta", "text": rest}}
}

// halves cuts a text between two characters.
func halves(s string) (string, string) {
	at := len(s) / 2
	for at < len(s) && !utf8.RuneStart(s[at]) {
		at++
	}
	return s[:at], s[at:]
}

// planFile stands in a tool's input for the file that Claude Code has the model write its plan into.
const planFile = "PLAN-FILE"

// planPath finds that file in a request, as JSON.
var planPath = regexp.MustCompile(`[^\s"\\` + "`" + `]+/plans/[\w-]+\.md`)

// withPlanFile puts the file's name in.
func withPlanFile(input json.RawMessage, messages []message) json.RawMessage {
	if !bytes.Contains(input, []byte(planFile)) {
		return input
	}
	for _, m := range messages {
		if path := planPath.Find(m.Content); path != nil {
			return bytes.ReplaceAll(input, []byte(planFile), path)
		}
	}
	return input
}
