package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/tail"
)

// chat writes a conversation as Claude Code does.
type chat struct {
	session, leaf string
	n             int
}

func (c *chat) record(members map[string]any) string {
	c.n++
	id := fmt.Sprintf("%s-%012d", c.session[:23], c.n)
	line := map[string]any{
		"parentUuid": nil, "isSidechain": false, "uuid": id, "cwd": "/home/kim/shop", "sessionId": c.session, "version": "2.1.235",
		"timestamp": time.Date(2026, 8, 20, 9, 0, c.n, 0, time.UTC).Format("2006-01-02T15:04:05.000Z"),
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
	return string(text) + "\n"
}

func (c *chat) prompt(text string) string {
	return c.record(map[string]any{
		"type": "user", "origin": map[string]any{"kind": "human"}, "message": map[string]any{"role": "user", "content": text},
	})
}

func (c *chat) assistant(block map[string]any) string {
	return c.record(map[string]any{"type": "assistant", "message": map[string]any{
		"id": fmt.Sprintf("msg_%d", c.n), "role": "assistant", "model": "claude-opus-4-5", "content": []any{block},
		"usage": map[string]any{"input_tokens": 1000, "output_tokens": 50},
	}})
}

func (c *chat) answer(text string) string {
	return c.assistant(map[string]any{"type": "text", "text": text})
}

func (c *chat) call(id, command string) string {
	return c.assistant(map[string]any{"type": "tool_use", "id": id, "name": "Bash", "input": map[string]any{"command": command, "description": "look"}})
}

func (c *chat) result(id, output string) string {
	return c.record(map[string]any{"type": "user", "message": map[string]any{"role": "user", "content": []any{
		map[string]any{"type": "tool_result", "tool_use_id": id, "content": output},
	}}})
}

func (c *chat) done() string {
	return c.record(map[string]any{"type": "system", "subtype": "turn_duration", "durationMs": 12500})
}

func (c *chat) compaction() string {
	return c.record(map[string]any{"type": "system", "subtype": "compact_boundary", "content": "Conversation compacted",
		"compactMetadata": map[string]any{"trigger": "auto", "preTokens": 160000}})
}

func (w *world) messages(session string) control.Messages {
	w.t.Helper()
	m, err := w.client.Messages(context.Background(), control.MessagesQuery{Session: session})
	if err != nil {
		w.t.Fatalf("messages: %v", err)
	}
	return m
}

// said is the messages in short.
func said(m control.Messages) (lines []string) {
	for _, x := range m.Messages {
		lines = append(lines, strings.TrimSpace(x.Type+" "+x.Role+" "+x.Content+x.ToolUseID+" "+x.Output))
	}
	return lines
}

// figure is one of the metrics.
func (w *world) figure(name string) (value int64) {
	w.t.Helper()
	res, err := w.contract().http.Get("http://localhost/metrics")
	if err != nil {
		w.t.Fatal(err)
	}
	defer res.Body.Close()
	var text bytes.Buffer
	if _, err := text.ReadFrom(res.Body); err != nil {
		w.t.Fatal(err)
	}
	for line := range strings.Lines(text.String()) {
		if n, err := fmt.Sscanf(line, "ccship_"+name+" %d", &value); n == 1 && err == nil {
			return value
		}
	}
	w.t.Fatalf("no metric %s in\n%s", name, text.String())
	return 0
}

func transcriptOf(session string) string { return "-home-kim-shop/" + session + ".jsonl" }

func whereNothing(tail.FileID) (tail.Tracked, bool) { return tail.Tracked{}, false }

// openTestState opens the state of a world whose daemon is stopped.
func openTestState(t *testing.T, w *world) *state.DB {
	t.Helper()
	db, err := state.Open(t.Context(), state.Options{Path: filepath.Join(w.cfg.StateDir, "state.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func loadFacts(t *testing.T, db *state.DB) map[tail.FileID]state.Facts {
	t.Helper()
	facts, err := db.LoadFacts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return facts
}
