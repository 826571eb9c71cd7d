package kit

import (
	"encoding/json"
	"fmt"
	"time"
)

// Chat is a conversation as Claude Code writes it. Each method returns the next record, as a line.
type Chat struct {
	Session string // a uuid
	Leaf    string // uuid of the last record; "": the next one begins a tree
	N       int    // records so far
}

// Record returns a record with some members set, and the usual ones.
func (c *Chat) Record(members map[string]any) string {
	c.N++
	id := fmt.Sprintf("%s-%012d", c.Session[:23], c.N)
	line := map[string]any{
		"parentUuid": nil, "isSidechain": false, "uuid": id, "cwd": "/home/kim/shop", "sessionId": c.Session,
		"version":   "2.1.235",
		"timestamp": time.Date(2026, 8, 20, 9, 0, c.N, 0, time.UTC).Format("2006-01-02T15:04:05.000Z"),
	}
	if c.Leaf != "" {
		line["parentUuid"] = c.Leaf
	}
	for name, value := range members {
		line[name] = value
	}
	c.Leaf = id
	text, err := json.Marshal(line)
	if err != nil {
		panic(err)
	}
	return string(text) + "\n"
}

// Prompt is what a person typed.
func (c *Chat) Prompt(text string) string {
	return c.Record(map[string]any{
		"type": "user", "origin": map[string]any{"kind": "human"}, "message": map[string]any{"role": "user", "content": text},
	})
}

// Assistant is an answer with one content block.
func (c *Chat) Assistant(block map[string]any) string {
	return c.Record(map[string]any{"type": "assistant", "message": map[string]any{
		"id": fmt.Sprintf("msg_%d", c.N), "role": "assistant", "model": "claude-opus-4-5", "content": []any{block},
		"usage": map[string]any{"input_tokens": 1000, "output_tokens": 50},
	}})
}

// Answer is an answer with text.
func (c *Chat) Answer(text string) string {
	return c.Assistant(map[string]any{"type": "text", "text": text})
}

// Call calls the Bash tool.
func (c *Chat) Call(id, command string) string {
	return c.Assistant(map[string]any{
		"type": "tool_use", "id": id, "name": "Bash", "input": map[string]any{"command": command, "description": "look"},
	})
}

// Result is the result of a tool call.
func (c *Chat) Result(id, output string) string {
	return c.Record(map[string]any{"type": "user", "message": map[string]any{"role": "user", "content": []any{
		map[string]any{"type": "tool_result", "tool_use_id": id, "content": output},
	}}})
}

// Done ends a turn.
func (c *Chat) Done() string {
	return c.Record(map[string]any{"type": "system", "subtype": "turn_duration", "durationMs": 12500})
}

// Compaction is an automatic compaction at 160 000 tokens.
func (c *Chat) Compaction() string {
	return c.Record(map[string]any{"type": "system", "subtype": "compact_boundary", "content": "Conversation compacted",
		"compactMetadata": map[string]any{"trigger": "auto", "preTokens": 160000}})
}

// Turn is a prompt, and an answer with so many tokens in use. The limit of its model is 167 000; 80 % are 133 600.
func (c *Chat) Turn(tokens int64) string {
	return c.Prompt(fmt.Sprintf("prompt %d", c.N)) + c.Record(map[string]any{"type": "assistant",
		"message": map[string]any{
			"id":   fmt.Sprintf("msg_%s%d", c.Session[:4], c.N),
			"role": "assistant", "model": "claude-opus-4-5", "stop_reason": "end_turn",
			"content": []any{map[string]any{"type": "text", "text": fmt.Sprintf("Answer %d.", c.N)}},
			"usage":   map[string]any{"input_tokens": 10, "cache_read_input_tokens": tokens - 10, "output_tokens": 5},
		}})
}
