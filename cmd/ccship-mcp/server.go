package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ccship/ccship/daemon/control"
)

// server returns the MCP server with all tools.
func (t *tools) server() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "ccship", Version: version}, &mcp.ServerOptions{
		Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}},
	})
	t.documentTools(s)
	t.checkpointTools(s)
	t.historyTools(s)
	return s
}

// loaded makes Claude Code show a tool to the model at once. Without it, newer versions hide it behind a tool search.
var loaded = mcp.Meta{"anthropic/alwaysLoad": true}

// tool is what the model reads of a tool.
type tool struct {
	name, description string
	properties        string   // members of the JSON schema's "properties", without the braces
	required          []string // the properties that must be given
}

// schema returns the JSON schema of a tool's arguments.
func (t tool) schema() json.RawMessage {
	required := ""
	if len(t.required) > 0 {
		names, _ := json.Marshal(t.required) // strings
		required = fmt.Sprintf(`,"required":%s`, names)
	}
	return json.RawMessage(
		fmt.Sprintf(`{"type":"object","properties":{%s}%s,"additionalProperties":false}`, t.properties, required))
}

// add gives a server a tool. f returns the texts of its answer. An error of f is an answer too, not a protocol error,
// because the model has to read it.
func add[A any](s *mcp.Server, t tool, f func(context.Context, A) ([]string, error)) {
	described := &mcp.Tool{Meta: loaded, Name: t.name, Description: t.description, InputSchema: t.schema()}
	s.AddTool(described, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		var args A
		err := decode(r.Params.Arguments, &args)
		var texts []string
		if err == nil {
			texts, err = f(ctx, args)
		}
		if err != nil {
			return &mcp.CallToolResult{IsError: true, Content: contents(words(err))}, nil
		}
		return &mcp.CallToolResult{Content: contents(texts...)}, nil
	})
}

func contents(texts ...string) []mcp.Content {
	all := make([]mcp.Content, len(texts))
	for i, text := range texts {
		all[i] = &mcp.TextContent{Text: text}
	}
	return all
}

// decode reads a tool's arguments. An unknown member is an error: the model must not believe that it had an effect.
func decode(arguments json.RawMessage, into any) error {
	if len(arguments) == 0 {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(arguments))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil && !errors.Is(err, io.EOF) {
		return usage("bad arguments: " + err.Error())
	}
	return nil
}

func usage(message string) error { return control.Usage(message, "") }

// words returns an error as the model reads it: what is wrong, and what can be done.
func words(err error) string {
	var known *control.Error
	if !errors.As(err, &known) {
		return err.Error()
	}
	if hint := hintOf(known); hint != "" {
		return known.Message + "\nhint: " + hint
	}
	return known.Message
}

// hintOf returns what to do about an error: its own hint comes first.
func hintOf(e *control.Error) string {
	switch {
	case e.Hint != "":
		return e.Hint
	case e.Code == control.CodeNoSession:
		return "leave session out for this one; `ccship list` names all"
	case e.Code == control.CodeNoCheckpoint:
		return "checkpoint_list names them"
	}
	return ""
}

// text returns a document as a tool answers it, unless there is an error.
func text(document any, err error) ([]string, error) {
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(document); err != nil {
		return nil, fmt.Errorf("write answer: %w", err)
	}
	return []string{string(bytes.TrimSpace(b.Bytes()))}, nil
}
