package main

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/daemon/control"
)

// talkative is a daemon with one session's messages.
type talkative struct {
	scripted
	messages control.Messages
	asked    *control.MessagesQuery
	err      error
}

func (d talkative) Messages(_ context.Context, q control.MessagesQuery) (control.Messages, error) {
	if d.asked != nil {
		*d.asked = q
	}
	return d.messages, d.err
}

func (d talkative) ClearMessages(context.Context, string) (control.ClearResult, error) {
	return control.ClearResult{SchemaVersion: control.SchemaVersion, Session: "s", Cleared: 2}, d.err
}

func allMessages() control.Messages {
	at := time.Date(2026, 8, 20, 9, 5, 0, 0, time.UTC).UnixMilli()
	yes, no, refused := true, false, "permission denied\x1b[2J\nsecond line"
	return control.Messages{
		SchemaVersion: control.SchemaVersion, Session: "3f2a9c01-0000-4000-8000-000000000001", Title: "장바구니 반올림", Total: 9, UpdatedAt: at,
		Messages: []control.Message{
			{Role: "user", Type: "text", Line: 1, UUID: "u1", Timestamp: at, Content: "장바구니의 반올림을\n고쳐 주세요"},
			{Role: "assistant", Type: "text", Line: 2, UUID: "u2", Timestamp: at, Content: "I will look."},
			{Role: "assistant", Type: "tool_complete", Line: 3, Timestamp: at, ToolUseID: "t1", ToolName: "Bash", ToolInput: json.RawMessage(`{"description":"look","command":"ls"}`), Success: &yes, Output: "cart.go"},
			{Role: "assistant", Type: "tool_complete", Line: 4, Timestamp: at, ToolUseID: "t2", ToolName: "Edit", ToolInput: json.RawMessage(`{"file_path":"/cart.go"}`), Success: &no, Error: &refused},
			{Role: "assistant", Type: "tool_start", Line: 5, Timestamp: at, ToolUseID: "t3", ToolName: "Read", ToolInput: json.RawMessage(`{"file_path":"/b.go"}`)},
			{Role: "assistant", Type: "tool_start", Line: 6, ToolUseID: "t4", Aborted: true},
			{Role: "system", Type: "error", Line: 7, Timestamp: at, Content: "overloaded"},
			{Role: "system", Type: "result", Line: 8, Timestamp: at, Duration: 12.5, InputTokens: 1000, OutputTokens: 500, Interrupted: true},
		},
	}
}

func TestMessagesView(t *testing.T) {
	v := sessionView{zone: time.UTC}
	text := v.messages(allMessages())
	want := `장바구니 반올림

09:05  user    장바구니의 반올림을 고쳐 주세요
09:05  claude  I will look.
09:05  tool    Bash look ls → cart.go
09:05  tool    Edit /cart.go ✗ permission denied [2J second line
09:05  tool    Read /b.go …
       tool    ? (stopped)
09:05  error   overloaded
09:05  turn    12.5 s, 1k tokens in, 500 out, interrupted
there are 1 older one: --limit, or --offset 8
`
	if text != strings.Replace(want, "are 1 older one", "are 1 older one", 1) {
		t.Errorf("got:\n%s", text)
	}
	v.columns, v.colours = 24, true
	for line := range strings.Lines(v.messages(allMessages())) {
		if n := term.Width(uncoloured(strings.TrimSuffix(line, "\n"))); n > 24 && !strings.HasPrefix(line, "there are") {
			t.Errorf("%d columns: %q", n, line)
		}
		if strings.Count(line, "\x1b[") == 1 {
			t.Errorf("a colour that does not end: %q", line)
		}
	}
}

func TestMessagesCommand(t *testing.T) {
	jsonHome(t)
	t.Setenv("TZ", "UTC")
	var asked control.MessagesQuery
	socket := listen(t, talkative{messages: allMessages(), asked: &asked})
	code, out, words := inProcess(t, "messages", "3f2a", "--socket", socket, "--limit", "5", "--offset", "2")
	if code != 0 || !strings.Contains(out, "cart.go") || asked.Session != "3f2a" || asked.Limit != 5 || asked.Offset != 2 {
		t.Errorf("%d %q %q %+v", code, out, words, asked)
	}
	_, out, _ = inProcess(t, "messages", "3f2a", "--socket", socket, "--json")
	golden(t, filepath.Join("json", "messages.json"), out)
	if asked.Limit != 0 {
		t.Errorf("asked %+v", asked)
	}
	_, out, _ = inProcess(t, "messages", "3f2a", "--socket", socket, "--clear", "--json")
	golden(t, filepath.Join("json", "messages_clear.json"), out)
	for _, args := range [][]string{{"--limit", "-1"}, {"--offset", "-1"}, {"--follow", "--clear"}, {"--follow", "--offset", "3"}} {
		if code, _, words := inProcess(t, append([]string{"messages", "3f2a", "--socket", socket}, args...)...); code != 2 || strings.Count(words, "\n") > 2 {
			t.Errorf("%v: %d %q", args, code, words)
		}
	}
	unknown := listen(t, talkative{err: &control.Error{Code: control.CodeNoSession, Message: "there is no session x", Hint: "h"}})
	for _, args := range [][]string{nil, {"--follow"}, {"--clear"}} {
		if code, _, words := inProcess(t, append([]string{"messages", "x", "--socket", unknown}, args...)...); code != 1 || !strings.Contains(words, "there is no session x") {
			t.Errorf("%v: %d %q", args, code, words)
		}
	}
}

// Following tells each message once, and a call once more when it has its result.
func TestFreshMessages(t *testing.T) {
	var seen seenMessages
	all := allMessages().Messages
	if n := len(seen.fresh(all[:5])); n != 5 {
		t.Errorf("%d at first", n)
	}
	if fresh := seen.fresh(all[:5]); len(fresh) != 0 {
		t.Errorf("the same again: %+v", fresh)
	}
	yes := true
	all[4].Type, all[4].Success, all[4].Output = "tool_complete", &yes, "package b"
	fresh := seen.fresh(all[1:7])
	if len(fresh) != 3 || fresh[0].Output != "package b" || fresh[2].Content != "overloaded" {
		t.Errorf("%+v", fresh)
	}
}
