package session_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

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

// TestPlanInNewTranscript: newer versions of Claude Code go on in a new transcript when a plan is accepted with cleared
// context. The plan is its first prompt, and an interruption left over from the old transcript is none here.
func TestPlanInNewTranscript(t *testing.T) {
	leftover := `{"type":"user","uuid":"0","parentUuid":"gone","sessionId":"old","message":{"content":[{"type":"text",` +
		`"text":"[Request interrupted by user for tool use]"}]}}`
	plan := `{"type":"user","uuid":"1","parentUuid":null,"origin":{"kind":"auto-continuation"},"planContent":"# Plan",` +
		`"message":{"content":"Implement the following plan"}}`
	other := `{"type":"user","uuid":"3","parentUuid":"2","origin":{"kind":"auto-continuation"},"message":{"content":"Go on"}}`
	got := logged(t, []string{leftover, plan, below("1", answerText("2", "Done.")), other}, nil)
	want := []string{"1 user Implement the following plan", "2 assistant Done.", "2 result", "3 message Go on"}
	kit.Same(t, "messages", cmp.Diff(want, got))
}

// TestImageInPrompt: an image is in the history, whether the prompt's text names it or not.
func TestImageInPrompt(t *testing.T) {
	image := `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBO"}}`
	for content, want := range map[string]string{
		`[{"type":"text","text":"look at "},` + image + `]`:           "0 user look at [image]",
		`[{"type":"text","text":"look at [Image #1]"},` + image + `]`: "0 user look at [Image #1]",
		`[` + image + `]`: "0 user [image]",
		`"look at"`:       "0 user look at",
	} {
		got := logged(t, []string{`{"type":"user","uuid":"1","message":{"content":` + content + `}}`}, nil)
		diff := cmp.Diff([]string{want}, got)
		kit.Check(t, diff == "", "%s (-want +got):\n%s", content, diff)
	}
}

func TestBudget(t *testing.T) {
	const k = 1000
	learned := map[string]int64{"claude-opus-4-5": 155 * k}
	for _, tt := range []struct {
		name           string
		model          string
		most, boundary int64
		options        BudgetOptions
		want           Budget
	}{
		{"nothing known", "", 0, 0, BudgetOptions{}, Budget{200 * k, 167 * k, DefaultBudget}},
		{"native", "claude-sonnet-5", 0, 0, BudgetOptions{}, Budget{1000 * k, 967 * k, ModelBudget}},
		{"native, elsewhere", "us.anthropic.claude-opus-4-8-v1:0", 0, 0, BudgetOptions{}, Budget{200 * k, 167 * k, ModelBudget}},
		{"asked for", "claude-sonnet-4-6", 134 * k, 0, BudgetOptions{Stated: 1000 * k}, Budget{1000 * k, 967 * k, ModelBudget}},
		{"more than native", "claude-opus-4-6", 230 * k, 0, BudgetOptions{}, Budget{1000 * k, 967 * k, SeenBudget}},
		{"boundary", "gateway-model", 174 * k, 167_412, BudgetOptions{}, Budget{200 * k, 167_412, BoundaryBudget}},
		{"boundary of a large window", "gateway-model", 967 * k, 967 * k, BudgetOptions{}, Budget{1000 * k, 967 * k, BoundaryBudget}},
		{"boundary long passed", "claude-sonnet-5", 400 * k, 167 * k, BudgetOptions{}, Budget{1000 * k, 967 * k, ModelBudget}},
		{"learned", "claude-opus-4-5", 150 * k, 0, BudgetOptions{Learned: learned}, Budget{200 * k, 155 * k, LearnedBudget}},
		{"learned, and passed", "claude-opus-4-5", 190 * k, 0, BudgetOptions{Learned: learned}, Budget{200 * k, 167 * k, ModelBudget}},
		{"one overshoot", "claude-opus-4-5", 176_700, 176_700, BudgetOptions{}, Budget{200 * k, 167 * k, ModelBudget}},
		{"one overshoot, and lower ones elsewhere", "claude-opus-4-5", 176_700, 176_700, BudgetOptions{Learned: learned}, Budget{200 * k, 155 * k, LearnedBudget}},
		{"lower than elsewhere", "claude-opus-4-5", 120 * k, 120 * k, BudgetOptions{Learned: learned}, Budget{200 * k, 120 * k, BoundaryBudget}},
		{"much higher than elsewhere", "claude-opus-4-8", 900 * k, 900 * k, BudgetOptions{Learned: map[string]int64{"claude-opus-4-8": 155 * k}}, Budget{1000 * k, 900 * k, BoundaryBudget}},
		{"passed since the overshoot", "claude-opus-4-5", 199 * k, 176_700, BudgetOptions{Learned: learned}, Budget{200 * k, 167 * k, ModelBudget}},
		{"pinned", "claude-haiku-4-5", 0, 160 * k, BudgetOptions{Pins: map[string]int64{"claude-haiku-4-5": 100 * k}}, Budget{200 * k, 100 * k, ConfiguredBudget}},
		{"pinned beyond the window", "claude-haiku-4-5", 0, 0, BudgetOptions{Pins: map[string]int64{"claude-haiku-4-5": 960 * k}}, Budget{960 * k, 960 * k, ConfiguredBudget}},
		{"the session's pin", "m", 0, 0, BudgetOptions{Pins: map[string]int64{"": 50 * k, "m": 60 * k}}, Budget{200 * k, 50 * k, ConfiguredBudget}},
		{"another's pin", "m", 0, 0, BudgetOptions{Pins: map[string]int64{"n": 60 * k}}, Budget{200 * k, 167 * k, DefaultBudget}},
	} {
		diff := cmp.Diff(tt.want, BudgetFor(tt.model, tt.most, tt.boundary, tt.options))
		kit.Check(t, diff == "", "%s (-want +got):\n%s", tt.name, diff)
	}
}
