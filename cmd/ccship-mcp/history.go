package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ccship/ccship/daemon/control"
)

// find is what search_history is asked.
type find struct {
	Text    string `json:"text"`
	Session string `json:"session"`
	Project string `json:"project"`
	Kind    string `json:"kind"`
	Since   string `json:"since"`
	Limit   int    `json:"limit"`
}

// recent is what get_messages is asked.
type recent struct {
	Session string `json:"session"`
	Limit   int    `json:"limit"`
	Offset  int    `json:"offset"`
}

// historyTools are search_history and get_messages.
func (t *tools) historyTools(s *mcp.Server) {
	add(s, tool{
		name:        "search_history",
		description: "Search all recorded conversations for lines that contain all the words.",
		properties: `"text":{"type":"string"}` +
			`,"session":{"type":"string","description":"Only in this session"}` +
			`,"project":{"type":"string","description":"Only in this project"}` +
			`,"kind":{"type":"string","description":` +
			`"Only these kinds, separated by commas: prompt, answer, thinking, tool, result, title, other"}` +
			`,"since":{"type":"string","description":"2026-11-01, 36h or 7d"}` +
			`,"limit":{"type":"integer","minimum":1,"maximum":100,"default":10}`,
		required: []string{"text"},
	}, t.search)
	add(s, tool{
		name:        "get_messages",
		description: "Get the last messages of this session, shortened, oldest first.",
		properties: sessionProperty +
			`,"limit":{"type":"integer","minimum":1,"maximum":200,"default":20}` +
			`,"offset":{"type":"integer","minimum":0,"description":"Skip this many of the newest messages"}`,
	}, t.messages)
}

// messages answers get_messages.

func (t *tools) messages(ctx context.Context, a recent) ([]string, error) {
	limit, err := atMost(a.Limit, 20, 200)
	if err != nil {
		return nil, err
	}
	if a.Offset < 0 {
		return nil, usage("offset must be 0 or more")
	}
	client, name, err := t.about(ctx, a.Session)
	if err != nil {
		return nil, err
	}
	page := control.Page{Offset: a.Offset, Limit: limit}
	found, err := client.Messages(ctx, control.MessagesQuery{Session: name, Page: page})
	if err != nil {
		return nil, err
	}
	return text(found)
}

// search answers search_history. It runs `ccship search`, which knows the server's current address and key.
func (t *tools) search(ctx context.Context, a find) ([]string, error) {
	if strings.TrimSpace(a.Text) == "" || strings.ContainsRune(a.Text, 0) {
		return nil, usage("text must contain the words to search for")
	}
	limit, err := atMost(a.Limit, 10, 100)
	if err != nil {
		return nil, err
	}
	args := append(slices.Clone(t.flags), "search", "--json", "--limit", strconv.Itoa(limit))
	for _, f := range []struct{ flag, value string }{
		{"--session", a.Session}, {"--project", a.Project}, {"--kind", a.Kind}, {"--since", a.Since},
	} {
		if strings.ContainsRune(f.value, 0) {
			return nil, usage(strings.TrimLeft(f.flag, "-") + " must not contain a NUL character")
		}
		if f.value != "" {
			args = append(args, f.flag+"="+f.value)
		}
	}
	out, err := exec.CommandContext(ctx, t.ccship, append(args, "--", a.Text)...).Output()
	if err == nil {
		return []string{string(bytes.TrimSpace(out))}, nil
	}
	var refusal control.Error
	if json.Unmarshal(out, &refusal) == nil && refusal.Message != "" {
		return nil, &refusal
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = fmt.Errorf("%w: %s", err, bytes.TrimSpace(exit.Stderr))
	}
	return nil, fmt.Errorf("run `ccship search`: %w", err)
}
