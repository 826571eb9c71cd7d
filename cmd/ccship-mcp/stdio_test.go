package main

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

// raw is a server that is spoken to line by line.
type raw struct {
	t   *testing.T
	in  io.WriteCloser
	out *bufio.Scanner
}

func start(t *testing.T, args ...string) (*raw, *exec.Cmd) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "ccship-mcp", args...)
	cmd.Stderr = os.Stderr
	in := kit.Try(cmd.StdinPipe()).Must(t)
	out := kit.Try(cmd.StdoutPipe()).Must(t)
	kit.Must(t, cmd.Start())
	return &raw{t, in, bufio.NewScanner(out)}, cmd
}

// ask sends a line and reads one.
func (r *raw) ask(line string) (answer struct {
	ID     any
	Result json.RawMessage
	Error  *struct{ Code int }
}) {
	r.t.Helper()
	kit.Try(io.WriteString(r.in, line+"\n")).Must(r.t)
	kit.Require(r.t, r.out.Scan(), "no answer to %s", line)
	kit.Must(r.t, json.Unmarshal(r.out.Bytes(), &answer))
	return answer
}

// end ends the input, and with it the program.
func (r *raw) end(cmd *exec.Cmd) {
	r.t.Helper()
	kit.Must(r.t, r.in.Close())
	err := cmd.Wait()
	kit.Check(r.t, err == nil, "at the end of its input it ends with %v", err)
}

// TestUnknownMethods: newer clients ask what older servers do not know, before anything else, and wait for the answer.
func TestUnknownMethods(t *testing.T) {
	r, cmd := start(t, "-socket", "/nowhere")
	a := r.ask(`{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{}}`)
	kit.Check(t, a.Error != nil && a.Error.Code == -32601, "server/discover before the handshake: %+v, want -32601", a)
	a = r.ask(`{"jsonrpc":"2.0","id":1,"method":"no/such","params":{}}`)
	kit.Check(t, a.Error != nil, "an unknown method before the handshake: %+v, want an error", a)
	a = r.ask(hello)
	kit.Require(t, a.Error == nil && strings.Contains(string(a.Result), `"name":"ccship"`), "initialize: %+v", a)
	a = r.ask(`{"jsonrpc":"2.0","id":3,"method":"no/such"}`)
	kit.Check(t, a.Error != nil && a.Error.Code == -32601, "an unknown method: %+v, want -32601", a)
	r.end(cmd)
}

// TestStartedByHand: without the arguments that `ccship mcp` gives it, it says how it is started.
func TestStartedByHand(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "ccship-mcp")
	var said strings.Builder
	cmd.Stderr = &said
	if err := cmd.Run(); cmd.ProcessState.ExitCode() != exitUsage || !strings.Contains(said.String(), "\nhint: `ccship mcp`") {
		t.Errorf("ends with %v, saying %q", err, said.String())
	}
}

// TestOrphan: it ends when the program that started it has ended, though its standard input stays open.
func TestOrphan(t *testing.T) {
	read, hold, err := os.Pipe()
	kit.Must(t, err)
	defer read.Close()
	defer hold.Close()
	cmd := exec.CommandContext(t.Context(), "parent", "-socket", "/nowhere")
	cmd.ExtraFiles = []*os.File{read}
	in := kit.Try(cmd.StdinPipe()).Must(t)
	out := kit.Try(cmd.StdoutPipe()).Must(t)
	said := kit.Try(cmd.StderrPipe()).Must(t)
	if err := cmd.Start(); err != nil {
		t.Skip(err) // a system whose processes inherit no other files
	}
	line := kit.Try(bufio.NewReader(said).ReadString('\n')).Must(t)
	pid := kit.Try(strconv.Atoi(strings.TrimSpace(line))).Must(t)
	r := &raw{t, hold, bufio.NewScanner(out)}
	r.ask(`{"jsonrpc":"2.0","id":1,"method":"ping"}`) // it works
	kit.Require(t, alive(pid), "it did not live")
	kit.Must(t, in.Close())
	kit.Must(t, cmd.Wait())
	kit.Eventually(t, "it ends with its parent", 10*time.Second, func() bool { return !alive(pid) })
}
