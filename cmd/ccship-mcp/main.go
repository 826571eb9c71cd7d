// Command ccship-mcp lets Claude ask ccship: a server of the Model Context Protocol on standard input and output, for
// the Claude Code plugin and other clients. `ccship mcp` starts it. It keeps nothing: answers come from the daemon, and
// those of a search from `ccship search`.
package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ccship/ccship/daemon/control"
)

// version is set by the linker.
var version = "dev"

const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// parentBeat is the time between two looks at whether the parent process still runs.
const parentBeat = 2 * time.Second

func main() { os.Exit(command()) }

// command is main with an exit code.
func command() int {
	t := &tools{session: os.Getenv("CLAUDE_CODE_SESSION_ID"), dir: os.Getenv("CLAUDE_PROJECT_DIR")}
	flags := flag.NewFlagSet("ccship-mcp", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&t.ccship, "ccship", "ccship", "")
	flags.Func("socket", "", func(path string) error {
		t.sockets = append(t.sockets, path)
		return nil
	})
	if err := flags.Parse(os.Args[1:]); err != nil || len(t.sockets) == 0 {
		fmt.Fprintln(os.Stderr, "ccship-mcp: --socket is missing\nhint: `ccship mcp` starts this program")
		return exitUsage
	}
	t.flags = flags.Args()
	if t.dir == "" {
		t.dir, _ = os.Getwd() // without one a session has to be named
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go untilOrphaned(ctx, os.Getppid(), cancel)
	served := make(chan error, 1)
	go func() { served <- t.server().Run(ctx, &lines{os.Stdin, os.Stdout}) }()
	select {
	case err := <-served:
		if err != nil && ctx.Err() == nil {
			fmt.Fprintln(os.Stderr, "ccship-mcp:", err)
			return exitFailed
		}
	case <-ctx.Done(): // its read of standard input may never end
	}
	return exitOK
}

// untilOrphaned calls gone when the parent process has ended. Standard input ends then too, unless another process
// holds its other end.
func untilOrphaned(ctx context.Context, parent int, gone func()) {
	tick := time.NewTicker(parentBeat)
	defer tick.Stop()
	for os.Getppid() == parent {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
	gone()
}

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

// tools answers tool calls.
type tools struct {
	sockets []string // where a daemon may listen
	ccship  string   // the program
	flags   []string // of the configuration, for it
	session string   // that the server was started in; "" unknown
	dir     string   // the folder it was started in
}

// daemon returns the daemon that runs.
func (t *tools) daemon(ctx context.Context) (*control.Client, error) {
	client, _, err := control.Reach(ctx, t.sockets)
	return client, err
}

// sessionOf returns the session that a call is about: the one it names, else the one this server was started in, else
// the one that was written last in this folder or below it. After /clear the server still runs but the session is
// another: then only a call that names its session is sure to get it.
func (t *tools) sessionOf(ctx context.Context, client *control.Client, named string) (string, error) {
	if session := cmp.Or(named, t.session); session != "" {
		return session, nil
	}
	if t.dir == "" {
		return "", usage("session must be given here; `ccship list` lists all sessions")
	}
	found, err := client.Sessions(ctx, control.SessionsQuery{Project: t.dir, Page: control.Page{Limit: 1}})
	if err != nil {
		return "", err
	}
	if len(found.Sessions) == 0 {
		return "", control.NoSession("no session was started in "+t.dir,
			"name a session; `ccship list` lists all")
	}
	return found.Sessions[0].Session, nil
}

// about finds the daemon and the session of a call.
func (t *tools) about(ctx context.Context, named string) (*control.Client, string, error) {
	client, err := t.daemon(ctx)
	if err != nil {
		return nil, "", err
	}
	session, err := t.sessionOf(ctx, client, named)
	return client, session, err
}
