//go:build unix

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
)

// talk writes one conversation as Claude Code does, with what a conversation means: a tree of messages, the tokens of
// each answer, tool calls with their results, compactions. Every method answers the lines it adds.
type talk struct {
	session, cwd string
	model        string
	leaf         string // uuid the next record hangs off; "" for the beginning
	n            int    // records so far
	clock        time.Time
}

func newTalk(session, cwd string) *talk {
	return &talk{session: session, cwd: cwd, model: "claude-opus-4-5", clock: time.Date(2026, 8, 20, 9, 0, 0, 0, time.UTC)}
}

func (c *talk) uuid() string {
	c.n++
	return fmt.Sprintf("%s-%012d", c.session[:23], c.n)
}

// record is a line of the message tree.
func (c *talk) record(members map[string]any) []byte {
	c.clock = c.clock.Add(time.Second)
	id := c.uuid()
	line := map[string]any{
		"parentUuid": nil, "isSidechain": false, "uuid": id, "timestamp": c.clock.Format("2006-01-02T15:04:05.000Z"),
		"userType": "external", "entrypoint": "cli", "cwd": c.cwd, "sessionId": c.session, "version": "2.1.235", "gitBranch": "main",
	}
	if c.leaf != "" {
		line["parentUuid"] = c.leaf
	}
	for name, value := range members {
		line[name] = value
	}
	c.leaf = id
	text, err := json.Marshal(line)
	if err != nil {
		panic(err)
	}
	return append(text, '\n')
}

func (c *talk) prompt(text string) []byte {
	return c.record(map[string]any{
		"type": "user", "promptSource": "typed", "origin": map[string]any{"kind": "human"},
		"message": map[string]any{"role": "user", "content": text},
	})
}

// answer is one of the model's, with so many tokens in use.
func (c *talk) answer(tokens int, blocks ...map[string]any) []byte {
	return c.record(map[string]any{
		"type": "assistant", "requestId": fmt.Sprintf("req_%s_%d", c.session[:8], c.n),
		"message": map[string]any{
			"model": c.model, "id": fmt.Sprintf("msg_%s_%d", c.session[:8], c.n), "type": "message", "role": "assistant",
			"content": blocks, "stop_reason": "end_turn", "stop_sequence": nil,
			"usage": map[string]any{
				"input_tokens": 1000, "cache_creation_input_tokens": 0, "cache_read_input_tokens": tokens - 1000, "output_tokens": 50,
			},
		},
	})
}

func (c *talk) says(tokens int, text string) []byte {
	return c.answer(tokens, map[string]any{"type": "text", "text": text})
}

// calls is an answer that calls a tool, and returns gives its result.
func (c *talk) calls(tokens int, id, tool string, input map[string]any) []byte {
	return c.answer(tokens, map[string]any{"type": "tool_use", "id": id, "name": tool, "input": input})
}

func (c *talk) returns(id, output string, failed bool) []byte {
	return c.record(map[string]any{
		"type": "user", "toolUseResult": output,
		"message": map[string]any{"role": "user", "content": []any{
			map[string]any{"type": "tool_result", "tool_use_id": id, "content": output, "is_error": failed},
		}},
	})
}

// turn is a prompt and its answer.
func (c *talk) turn(tokens int, prompt, answer string) []byte {
	return bytes.Join([][]byte{c.prompt(prompt), c.says(tokens, answer)}, nil)
}

// compact is the boundary of an automatic compaction and its summary.
func (c *talk) compact(before, after int) []byte {
	last := c.leaf
	c.leaf = ""
	boundary := c.record(map[string]any{
		"type": "system", "subtype": "compact_boundary", "content": "Conversation compacted", "logicalParentUuid": last, "level": "info",
		"compactMetadata": map[string]any{"trigger": "auto", "preTokens": before, "postTokens": after, "durationMs": 41200},
	})
	summary := c.record(map[string]any{
		"type": "user", "isCompactSummary": true, "isVisibleInTranscriptOnly": true,
		"message": map[string]any{"role": "user", "content": "This session is being continued from a previous conversation."},
	})
	return append(boundary, summary...)
}
