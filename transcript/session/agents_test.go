package session_test

import (
	"fmt"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/transcript"
	. "github.com/ccship/ccship/transcript/session"
)

// TestAgentsEnd: no agent works for ever, whatever tells that it has ended.
func TestAgentsEnd(t *testing.T) {
	const call = `{"type":"assistant","uuid":"1","message":{"id":"m","model":"m","content":[{"type":"tool_use","id":"t","name":"Agent","input":` +
		`{"description":"count"}}]}}`
	result := func(text string, failed bool, more string) string {
		return fmt.Sprintf(`{"type":"user","uuid":"2","parentUuid":"1","message":{"content":[{"type":"tool_result","tool_use_id":"t",`+
			`"content":%q,"is_error":%t}]},"toolUseResult":%s}`, text, failed, more)
	}
	started := result("Async agent launched", false, `{"isAsync":true,"status":"async_launched","agentId":"a1"}`)
	notice := func(status string) string {
		return `<task-notification>\n<task-id>a1</task-id>\n<tool-use-id>t</tool-use-id>\n<status>` + status + `</status>\n</task-notification>`
	}
	for _, x := range []struct {
		name  string
		lines []string
		done  bool
	}{
		{"no result", nil, false},
		{"in the background", []string{started}, false},
		{"a teammate", []string{result("spawned", false, `{"status":"teammate_spawned","agentId":"a1"}`)}, false},
		{"completed", []string{result("26", false, `{"status":"completed","agentId":"a1"}`)}, true},
		{"a result that says nothing of it", []string{result("26", false, `"26"`)}, true},
		{"rejected", []string{result("The user doesn't want to proceed with this tool use.", true, `"User rejected tool use"`)}, true},
		{"a notice", []string{started, `{"type":"user","uuid":"3","parentUuid":"2","origin":{"kind":"task-notification"},"message":{"content":"` +
			notice("completed") + `"}}`}, true},
		{"a notice that it still works", []string{started, `{"type":"user","uuid":"3","parentUuid":"2","message":{"content":"` +
			notice("running") + `"}}`}, false},
		{"a notice in the middle of a turn", []string{started, `{"type":"attachment","uuid":"3","parentUuid":"2","attachment":{"type":` +
			`"queued_command","commandMode":"task-notification","prompt":"` + notice("failed") + `"}}`}, true},
		{"a notice that only the queue has", []string{started, `{"type":"queue-operation","operation":"enqueue","content":"` +
			notice("killed") + `"}`}, true},
		{"a hand-back", []string{started, `{"type":"user","uuid":"3","parentUuid":"2","isMeta":true,"origin":{"kind":"peer","from":"a1"},` +
			`"message":{"content":"<agent-message from=\"a1\">\n[Subagent hand-back] The report follows:\n  26\n</agent-message>"}}`}, true},
		{"a message of the agent that works on", []string{started, `{"type":"attachment","uuid":"3","parentUuid":"2","attachment":{"type":` +
			`"queued_command","commandMode":"prompt","isMeta":true,"prompt":"<agent-message from=\"a1\">half</agent-message>"}}`}, false},
		{"all are killed", []string{started, `{"type":"system","subtype":"agents_killed","uuid":"3","parentUuid":"2"}`}, true},
	} {
		var s Fold
		for i, line := range append([]string{call}, x.lines...) {
			s.Add(int64(i), transcript.Parse([]byte(line)))
			s = *restore(t, &s)
		}
		agents := s.Summary().Agents
		kit.Check(t, len(agents) == 1 && agents[0].Done == x.done, "%s: %+v, want done %v", x.name, agents, x.done)
	}
}
