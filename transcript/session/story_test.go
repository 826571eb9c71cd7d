package session_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/transcript"
	. "github.com/ccship/ccship/transcript/session"
)

// logged adds lines to a log, and returns it as "line kind text" each, after every line too if each is set.
func logged(t *testing.T, lines []string, each func(line int, log *Log)) []string {
	t.Helper()
	var s Fold
	var log Log
	for i, line := range lines {
		for _, e := range s.Add(int64(i), transcript.Parse([]byte(line))) {
			log.Add(e)
		}
		s = *restore(t, &s)
		if each != nil {
			each(i, &log)
		}
	}
	return short(&log)
}

func short(log *Log) (out []string) {
	for _, m := range log.Messages(0, 0) {
		out = append(out, strings.TrimSpace(fmt.Sprintf("%d %s %s", m.Line, m.Kind, m.Content)))
	}
	return out
}

// answerText is an assistant line with text and tokens.
func answerText(uuid, text string) string {
	return fmt.Sprintf(`{"type":"assistant","uuid":%q,"version":"2.1.42","message":{"id":"m%s","model":"m","usage":{"input_tokens":3,`+
		`"output_tokens":2,"cache_read_input_tokens":50,"cache_creation":{"ephemeral_5m_input_tokens":4,"ephemeral_1h_input_tokens":6}},`+
		`"content":[{"type":"text","text":%q}]}}`, uuid, uuid, text)
}

func turnEnd(uuid string) string {
	return fmt.Sprintf(`{"type":"system","subtype":"turn_duration","uuid":%q,"durationMs":5}`, uuid)
}

// TestQueuedPromptsStandWhereUsed: before Claude Code 2.1.97 a prompt that the model received in the middle of a turn
// has no record. It is shown there, and at once.
func TestQueuedPromptsStandWhereUsed(t *testing.T) {
	got := logged(t, []string{
		promptLine("1", "2.1.42", "first"), answerText("2", "one"), queueLine("enqueue", "second", 1), answerText("3", "two"),
		queueLine("remove", "", 2), answerText("4", "three"), turnEnd("5"),
	}, func(line int, log *Log) {
		kit.Equal(t, fmt.Sprintf("after line %d: shown is", line),
			strings.Contains(strings.Join(short(log), "\n"), "second"), (line >= 4))
	})
	want := []string{"0 user first", "1 assistant one", "3 assistant two", "4 user second", "5 assistant three", "6 result"}
	kit.Same(t, "messages", cmp.Diff(want, got))
}

// below gives a record a parent.
func below(parent, line string) string {
	return strings.Replace(line, `"uuid"`, fmt.Sprintf(`"parentUuid":%q,"uuid"`, parent), 1)
}

// TestQueuedPromptRecordedLater: when a queued prompt has a record of its own in its turn, the prompt is not shown
// twice.
func TestQueuedPromptRecordedLater(t *testing.T) {
	first, enqueue, remove := promptLine("1", "2.1.42", "first"), queueLine("enqueue", "second\n", 1), queueLine("remove", "", 2)
	answer := below("8", answerText("4", "two"))
	attachment := below("1",
		`{"type":"attachment","uuid":"8","attachment":{"type":"queued_command","commandMode":"prompt","prompt":"second"}}`)
	for name, lines := range map[string][]string{
		"user after":        {first, enqueue, remove, below("1", promptLine("8", "2.1.42", "second")), answer},
		"attachment after":  {first, enqueue, remove, attachment, answer},
		"attachment before": {first, enqueue, attachment, remove, answer},
	} {
		diff := cmp.Diff([]string{"0 user first", "2 user second", "4 assistant two"}, logged(t, lines, nil))
		kit.Check(t, diff == "", "%s (-want +got):\n%s", name, diff)
	}
}

// TestLongQueuedPrompt: a prompt that only the queue has is kept in full.
func TestLongQueuedPrompt(t *testing.T) {
	long := strings.Repeat("word ", 1000)
	got := logged(t, []string{promptLine("1", "2.1.42", "x"), queueLine("enqueue", long, 1), queueLine("remove", "", 2)}, nil)
	want := "2 user " + strings.TrimSpace(long)
	kit.Check(t, len(got) == 2 && got[1] == want, "messages: %.80q", got)
}

// TestPlanAfterMetaRoot: the context was cleared too when Claude Code wrote a record of its own as the new root, before
// the prompt that is made from the plan.
func TestPlanAfterMetaRoot(t *testing.T) {
	plan := func(parent string) string {
		return fmt.Sprintf(`{"type":"user","uuid":"p","parentUuid":%s,"planContent":"# Plan","message":{"content":"do it"}}`, parent)
	}
	meta := `{"type":"user","uuid":"m","parentUuid":null,"isMeta":true,"message":{"content":"<local-command-caveat>x"}}`
	child := func(uuid, parent, text string) string { return below(parent, answerText(uuid, text)) }
	hook := `{"type":"progress","uuid":"h","parentUuid":null,"data":{"type":"hook_progress","hookName":"SessionStart:clear"}}`
	old := func(parent, text string) string {
		return fmt.Sprintf(`{"type":"user","uuid":"p","parentUuid":%s,"message":{"content":"%s"}}`, parent, text)
	}
	for _, tt := range []struct {
		name    string
		lines   []string
		cleared int
	}{
		{"below the first conversation", []string{promptLine("1", "2.1.42", "x"), child("2", "1", "a"), plan(`"2"`)}, 0},
		{"a root", []string{promptLine("1", "2.1.42", "x"), child("2", "1", "a"), plan(`null`)}, 1},
		{"below a second root", []string{promptLine("1", "2.1.42", "x"), child("2", "1", "a"), meta, plan(`"m"`)}, 1},
		{"text below a hook's root", []string{
			promptLine("1", "2.1.12", "x"), child("2", "1", "a"), hook, old(`"h"`, `Implement the following plan:\n\n# Plan`),
		}, 1},
		{"text as a root", []string{
			promptLine("1", "2.1.12", "x"), child("2", "1", "a"), old(`null`, `Implement the following plan:\n\n# Plan`),
		}, 1},
		{"below the only root", []string{meta, plan(`"m"`)}, 0},
		{"below a compaction", []string{
			promptLine("1", "2.1.42", "x"), child("2", "1", "a"),
			`{"type":"system","subtype":"compact_boundary","uuid":"b","parentUuid":null,"compactMetadata":{"trigger":"auto","preTokens":9}}`,
			plan(`"b"`),
		}, 0},
	} {
		var s Fold
		cleared, rewinds := 0, 0
		for i, line := range tt.lines {
			for _, e := range s.Add(int64(i), transcript.Parse([]byte(line))) {
				switch e.Kind {
				case ClearEvent:
					cleared++
				case RewindEvent:
					rewinds++
				}
			}
			s = *restore(t, &s)
		}
		kit.Check(t, cleared == tt.cleared && rewinds == 0, "%s: cleared %d times and %d rewinds, want %d and 0", tt.name,
			cleared, rewinds, tt.cleared)
	}
}

// TestLogTellsTheStory: the log shows what a person would tell of a session, not only what was said.
func TestLogTellsTheStory(t *testing.T) {
	got := logged(t, []string{
		promptLine("1", "2.1.42", "first"), answerText("2", "one"),
		`{"type":"user","uuid":"3","message":{"content":[{"type":"text","text":"[Request interrupted by user]"}]}}`,
		`{"type":"user","uuid":"4","message":{"content":"<command-name>/model</command-name><command-args>opus</command-args>"}}`,
		`{"type":"system","subtype":"compact_boundary","uuid":"5","compactMetadata":{"trigger":"auto","preTokens":167000,"postTokens":9000}}`,
		`{"type":"user","uuid":"6","planContent":"# Plan","message":{"content":"do it"}}`,
	}, nil)
	want := []string{"0 user first", "1 assistant one", "2 interrupted", "2 result", "3 command /model opus", "4 compaction",
		"5 cleared", "5 user do it"}
	kit.Same(t, "messages", cmp.Diff(want, got))
}

// TestTurnTokensAreSplit: a turn's input is distinguished by what it costs.
func TestTurnTokensAreSplit(t *testing.T) {
	var s Fold
	var log Log
	for i, line := range []string{promptLine("1", "2.1.42", "x"), answerText("2", "one"), answerText("3", "two"), turnEnd("4")} {
		for _, e := range s.Add(int64(i), transcript.Parse([]byte(line))) {
			log.Add(e)
		}
	}
	list := log.Messages(0, 0)
	m := list[len(list)-1]
	want := transcript.Usage{Input: 6, Output: 4, CacheRead: 100, CacheWrite5m: 8, CacheWrite1h: 12}
	kit.Check(t, m.Kind == ResultMessage && m.Usage == want, "the turn is %s with %+v, want %+v", m.Kind, m.Usage, want)
}

// TestLogSaysWhatItDropped: a log that is enlarged can say that a larger one would have kept more.
func TestLogSaysWhatItDropped(t *testing.T) {
	log := Log{Size: 3}
	for i := range 5 {
		if log.Truncated(4) != (i > 3) || log.Truncated(3) || log.Truncated(2) {
			t.Errorf("after %d messages: %v %v %v", i, log.Truncated(4), log.Truncated(3), log.Truncated(2))
		}
		log.Add(Event{Kind: PromptEvent, Line: int64(i), Text: "x"})
	}
	state := kit.Try(log.MarshalBinary()).Must(t)
	var again Log
	if err := again.UnmarshalBinary(state); err != nil || !again.Truncated(4) || again.Truncated(3) {
		t.Errorf("decoded: %v, %v %v", err, again.Truncated(4), again.Truncated(3))
	}
	kit.Check(t, again.Truncated(0), "the default size is larger")
}

// TestResultBeforeCall: a result may be written before its call. What the same answer said before the call stands
// before it, and what followed stays behind it.
func TestResultBeforeCall(t *testing.T) {
	result := `{"type":"user","uuid":"r","message":{"content":[{"type":"tool_result","tool_use_id":"t","content":"ok"}]}}`
	call := `{"type":"assistant","uuid":"c","message":{"id":"m1","model":"m","content":[{"type":"tool_use","id":"t","name":"Bash","input":{}}]}}`
	text := `{"type":"assistant","uuid":"a","message":{"id":"m1","model":"m","content":[{"type":"text","text":"I look."}]}}`
	for _, x := range []struct {
		lines, want []string
	}{
		{[]string{result, text, call}, []string{"0 user go", "2 assistant I look.", "3 tool_complete"}},
		{[]string{result, answerText("n", "Found."), call}, []string{"0 user go", "3 tool_complete", "2 assistant Found."}},
		{[]string{result, text, answerText("n", "Found."), call},
			[]string{"0 user go", "2 assistant I look.", "4 tool_complete", "3 assistant Found."}},
		{[]string{call, text, result}, []string{"0 user go", "1 tool_complete", "2 assistant I look."}},
	} {
		got := logged(t, append([]string{promptLine("1", "2.1.98", "go")}, x.lines...), nil)
		kit.Same(t, "differs", cmp.Diff(x.want, got))
	}
}
