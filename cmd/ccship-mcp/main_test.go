package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/e2e/kit"
)

// TestMain lets this binary be the programs the tests run: ccship-mcp itself, a ccship that searches, and a parent.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"ccship-mcp": func() { os.Exit(command()) },
		"ccship":     fakeSearch,
		"parent":     parent,
	})
}

// fakeSearch answers `ccship … search` with its own arguments, and refuses to look for "refuse" and "break".
func fakeSearch() {
	args := os.Args[1:]
	words := strings.Fields(args[len(args)-1])
	switch words[len(words)-1] {
	case "refuse":
		_ = json.NewEncoder(os.Stdout).Encode(control.Error{Code: control.CodeUnreachable, Message: "the server is away", Hint: "wait"})
		os.Exit(4)
	case "break":
		fmt.Fprintln(os.Stderr, "panic: no")
		os.Exit(2)
	case "whose":
		session := func(name, user string, own bool) map[string]any {
			return map[string]any{"session_id": name, "user": user, "own": own, "title": "title of " + name,
				"prompts": []any{map[string]any{"line": 7, "text": "prompt of " + name}}}
		}
		_ = json.NewEncoder(os.Stdout).Encode(map[string]any{"schema_version": 1, "lines": []any{map[string]any{"line": 1, "sessions": []any{
			session("mine", "kim", true), session("anns", "ann", false), session("bobs", "bob", false)}}}})
		os.Exit(0)
	}
	_ = json.NewEncoder(os.Stdout).Encode(map[string]any{"schema_version": 1, "hits": args, "sessions": []any{map[string]any{
		"session": "s-9", "user": "kim", "project": "shop", "title": strings.ReplaceAll(strings.Join(args, " "), `"`, "'")}}})
	os.Exit(0)
}

// parent starts ccship-mcp with an input that a third process holds open, says its pid, and ends when told.
func parent() {
	cmd := exec.Command("ccship-mcp", os.Args[1:]...)
	cmd.Stdin, cmd.Stdout = os.NewFile(3, "held"), os.Stdout
	if err := cmd.Start(); err != nil {
		os.Exit(1)
	}
	fmt.Fprintln(os.Stderr, cmd.Process.Pid)
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

// asked is what a daemon was asked.
type asked struct {
	mu       sync.Mutex
	requests []string
}

func (a *asked) last() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.requests) == 0 {
		return ""
	}
	return a.requests[len(a.requests)-1]
}

// answering is a daemon that answers from a table of paths, with the status as the text before a space in the answer.
func answering(t *testing.T, answers map[string]string) (socket string, a *asked) {
	t.Helper()
	dir := kit.Try(os.MkdirTemp("", "ccmc")).Must(t)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket, a = filepath.Join(dir, "c.sock"), &asked{}
	ln := kit.Try(net.Listen("unix", socket)).Must(t)
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.URL.Path != "/v1/status" {
			kit.Locked(&a.mu, func() {
				a.requests = append(a.requests, strings.TrimSpace(r.Method+" "+r.URL.String()+" "+string(body)))
			})
		}
		answer, known := answers[r.URL.Path]
		switch {
		case r.URL.Path == "/v1/status":
			answer = `{"schema_version":1,"running":true}`
		case !known:
			w.WriteHeader(http.StatusNotFound)
			answer = `{"code":"not_found","message":"there is no ` + r.URL.Path + `"}`
		case strings.HasPrefix(answer, "refused "):
			w.WriteHeader(http.StatusNotFound)
			answer = strings.TrimPrefix(answer, "refused ")
		}
		_, _ = io.WriteString(w, answer)
	})}
	go func() { _ = server.Serve(ln) }()
	t.Cleanup(func() { _ = server.Close() })
	return socket, a
}

// connect starts the server as Claude Code does.
func connect(t *testing.T, env []string, args ...string) *mcp.ClientSession {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, "ccship-mcp", args...)
	cmd.Dir = t.TempDir()
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH")}, env...)
	session := kit.Try(mcp.NewClient(&mcp.Implementation{Name: "test"}, nil).Connect(ctx, &mcp.CommandTransport{Command: cmd}, nil)).Must(t)
	t.Cleanup(func() { _ = session.Close() })
	return session
}

// call calls a tool and returns its texts, and whether it failed.
func call(t *testing.T, s *mcp.ClientSession, tool, args string) (texts []string, failed bool) {
	t.Helper()
	r, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: json.RawMessage(args)})
	kit.Require(t, err == nil, "%s %s: %v", tool, args, err)
	kit.Check(t, r.StructuredContent == nil, "%s has structured content, which takes the text's place", tool)
	for _, c := range r.Content {
		texts = append(texts, c.(*mcp.TextContent).Text)
	}
	return texts, r.IsError
}
