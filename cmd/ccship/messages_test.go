package main

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ccship/ccship/cmd/ccship/showtest"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/e2e/kit"
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

func TestMessagesCommand(t *testing.T) {
	jsonHome(t)
	t.Setenv("TZ", "UTC")
	var asked control.MessagesQuery
	socket := listen(t, talkative{messages: showtest.Messages(), asked: &asked})
	code, out, words := inProcess(t, "messages", "3f2a", "--socket", socket, "--limit", "5", "--offset", "2")
	kit.Check(t, code == 0 && strings.Contains(out, "cart.go") && asked.Session == "3f2a" && asked.Limit == 5 && asked.Offset == 2,
		"%d %q %q %+v", code, out, words, asked)
	_, out, _ = inProcess(t, "messages", "3f2a", "--socket", socket, "--json")
	showtest.Golden(t, filepath.Join("json", "messages.json"), out)
	kit.Check(t, asked.Limit == 0, "asked %+v", asked)
	_, out, _ = inProcess(t, "messages", "3f2a", "--socket", socket, "--clear", "--json")
	showtest.Golden(t, filepath.Join("json", "messages_clear.json"), out)
	for _, args := range [][]string{{"--limit", "-1"}, {"--offset", "-1"}, {"--follow", "--clear"}, {"--follow", "--offset", "3"}} {
		code, _, words := inProcess(t, append([]string{"messages", "3f2a", "--socket", socket}, args...)...)
		kit.Check(t, code == 2 && strings.Count(words, "\n") <= 2, "%v: %d %q", args, code, words)
	}
	unknown := listen(t, talkative{err: &control.Error{Code: control.CodeNoSession, Message: "there is no session x", Hint: "h"}})
	for _, args := range [][]string{nil, {"--follow"}, {"--clear"}} {
		code, _, words := inProcess(t, append([]string{"messages", "x", "--socket", unknown}, args...)...)
		kit.Check(t, code == 1 && strings.Contains(words, "there is no session x"), "%v: %d %q", args, code, words)
	}
}
